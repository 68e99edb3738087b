"""Kernel logistic regression."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import compute_class_weight
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from fastml._runtime.callbacks import CallbackSupportMixin, fit_context, fit_task
from fastml._runtime.dispatch import accelerated
from fastml._runtime.versioned import Versioned
from fastml.kernel_logistic._loss import Loss
from fastml.kernel_logistic._newton import Model, fit
from fastml.kernel_logistic._operators import (
    Factor,
    KeptGram,
    LowRank,
    StreamedGram,
    gram_of,
)
from fastml.metrics._dispatch import KERNEL
from fastml.metrics._kernel_function import expansion, is_precomputed, validated

RANK = 512  # of what stands for a Gram matrix, of two classes; of more, twice that in all


class KernelLogisticRegression(Versioned, CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    """Logistic regression in the feature space of a kernel.

    Probabilities where a support vector machine has margins, also for more than two classes, by
    one convex problem. Minimises, over functions f of the kernel's space and intercepts b,
    ``|f|² / 2 + C Σ w_i log-loss(y_i, f(x_i) + b)``; for the linear kernel that is scikit-learn's
    `LogisticRegression`.

    Parameters
    ----------
    C : float, default=1.0
        How much the loss counts: the smaller, the stronger the regularisation. It is
        ``1 / alpha`` for those who prefer to penalise.

    kernel : str, kernel object or callable, default="rbf"
        A name that `fastml.metrics.pairwise_kernels` knows; "precomputed", if `X` is
        the Gram matrix (`predict` then takes the kernel between new rows and those of the fit);
        a kernel of `gaussian_process.kernels`; a function made by `fastml.jit.kernel`; or a
        function of two rows. It must be positive definite.

    gamma : float, default=None
        Gamma of the rbf, laplacian, polynomial, sigmoid and chi2 kernels. None: the kernel's
        default.

    degree : float, default=3
        The degree of the polynomial kernel.

    coef0 : float, default=1
        The constant of the polynomial and sigmoid kernels.

    kernel_params : dict, default=None
        Further arguments of a kernel that is a function.

    fit_intercept : bool, default=True
        Whether there are intercepts, which are not regularised.

    class_weight : dict or "balanced", default=None
        Weights of the classes. "balanced": so that all count the same in sum.

    solver : {"auto", "newton", "newton-cg", "gradient"}, default="auto"
        "newton": keep the Gram matrix; for two classes factorise it once a step, for more solve for
        the step of all classes by conjugate gradients, preconditioned by a matrix of low rank.
        "newton-cg": by conjugate gradients, without ever forming the Gram matrix. "gradient":
        follow the gradient in the kernel's space, by conjugate directions; keep the Gram matrix if
        it fits `max_gram_mb` or is given. "auto": for two classes "newton" if the Gram matrix may
        be kept, else "newton-cg"; for more "gradient", which takes less time.

    tol : float, default=1e-8
        Stop when the duality gap is at most this part of the objective. In single precision no
        less than 1e-5 is asked for.

    max_iter : int, default=1000
        The most steps.

    max_gram_mb : float, default=4096
        The most memory for the Gram matrix, in MiB, but for "newton"; one that needs more is
        computed again a block at a time whenever it is multiplied. None: any.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.

    dual_coef_ : ndarray of shape (1, n_samples) or (n_classes, n_samples)
        The weight of each row of the fit in the scores: one score for two classes, which is that
        of the second, else one for each class.

    intercept_ : ndarray of shape (1,) or (n_classes,)
        What is added to the scores.

    X_fit_ : {ndarray, sparse matrix} of shape (n_samples, n_features)
        The rows of the fit; None if the kernel is precomputed.

    objective_ : float
        What was minimised, where it ended.

    dual_gap_ : float
        The objective is at most this far from its minimum. It is half the squared norm of the
        gradient in the kernel's space.

    n_iter_ : int
        The number of steps.

    n_features_in_ : int
        The number of features.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        The names of the features, if all of them are strings.

    See Also
    --------
    sklearn.linear_model.LogisticRegression : For the linear kernel, and much faster.
    sklearn.svm.SVC : Margins in place of probabilities, from few rows.
    sklearn.gaussian_process.GaussianProcessClassifier : Tunes the kernel.

    References
    ----------
    Zhu and Hastie, "Kernel Logistic Regression and the Import Vector Machine" (2005).

    Examples
    --------
    >>> from fastml.kernel_logistic import KernelLogisticRegression
    >>> from sklearn.datasets import make_circles
    >>> X, ring = make_circles(200, factor=0.3, noise=0.05, random_state=0)
    >>> model = KernelLogisticRegression(C=10, gamma=2).fit(X, ring)
    >>> model.predict_proba([[0, 0.3], [1, 0]]).round(1)
    array([[0., 1.],
           [1., 0.]])
    >>> bool(model.dual_gap_ <= 1e-8 * model.objective_)
    True
    """

    _parameter_constraints: ClassVar[dict] = {
        "C": [Interval(Real, 0, None, closed="neither")],
        "kernel": KERNEL,
        "gamma": [Interval(Real, 0, None, closed="left"), None],
        "degree": [Interval(Real, 0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "kernel_params": [dict, None],
        "fit_intercept": ["boolean"],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "solver": [StrOptions({"auto", "newton", "newton-cg", "gradient"})],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "max_gram_mb": [Interval(Real, 0, None, closed="left"), None],
    }

    def __init__(
        self,
        C=1.0,
        *,
        kernel="rbf",
        gamma=None,
        degree=3,
        coef0=1,
        kernel_params=None,
        fit_intercept=True,
        class_weight=None,
        solver="auto",
        tol=1e-8,
        max_iter=1000,
        max_gram_mb=4096,
    ):
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.max_gram_mb = max_gram_mb

    @accelerated
    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None):
        """Find the scores that explain `y`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows; the Gram matrix if the kernel is precomputed.

        y : array-like of shape (n_samples,)
            The label of each row.

        sample_weight : array-like of shape (n_samples,), default=None
            The weight of each row; None for equal ones.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        X, y = validated(self, X, reset=True, y=y)
        check_classification_targets(y)
        if is_precomputed(self.kernel) and X.shape[0] != X.shape[1]:
            raise ValueError(f"Precomputed kernel must be a square matrix; got {X.shape}.")
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                "This solver needs samples of at least 2 classes in the data, but the data "
                f"contains only one class: {self.classes_[0]!r}"
            )
        w = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        w = self.C * w * self._class_weights(y, codes, w)[codes]
        binary = len(self.classes_) == 2
        Y = codes[:, None].astype(float) if binary else np.eye(len(self.classes_))[codes]

        def attributes(model: Model) -> dict[str, Any]:
            return {
                "dual_coef_": np.ascontiguousarray(model.beta.T),
                "intercept_": model.b,
                "X_fit_": None if is_precomputed(self.kernel) else X,
                "objective_": model.objective,
                "dual_gap_": model.gap,
                "n_iter_": max(1, model.n_iter),
                "classes_": self.classes_,
            }

        gram, precondition = self._way(X)
        tol = max(self.tol, 1e-5 if gram.dtype == np.float32 else 0.0)
        metadata = {"sample_weight": sample_weight}
        with fit_task(self, None, X=X, y=y, metadata=metadata) as task:
            model = fit(
                gram,
                Loss(Y, w),
                precondition=precondition,
                intercept=self.fit_intercept,
                tol=tol,
                max_iter=self.max_iter,
                task=task,
                attributes=attributes,
            )
        vars(self).update(attributes(model))
        if model.gap > tol * model.objective:
            warnings.warn(
                f"The duality gap is {model.gap:.2g} after {model.n_iter} steps, above "
                f"{tol * model.objective:.2g}, which is {tol:g} of the objective. Increase "
                "max_iter or tol, or decrease C.",
                ConvergenceWarning,
                stacklevel=4,
            )
        return self

    @accelerated
    def decision_function(self, X):
        """Scores: of the second class if there are two, else of each.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            The logarithm of the odds, for two classes; else logarithms of probabilities, up to a
            constant for each row.
        """
        check_is_fitted(self)
        X = validated(self, X, reset=False)
        scores = expansion(self, X, self.dual_coef_.T) + self.intercept_
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X):
        """The likeliest class of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            The labels.
        """
        scores = self.decision_function(X)
        return self.classes_[
            (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        ]

    def predict_proba(self, X):
        """The probability of each class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            In the order of `classes_`.
        """
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([expit(-scores), expit(scores)])
        return softmax(scores, axis=1)

    def predict_log_proba(self, X):
        """The logarithm of the probability of each class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        logarithms : ndarray of shape (n_samples, n_classes)
            In the order of `classes_`.
        """
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([log_expit(-scores), log_expit(scores)])
        return log_softmax(scores, axis=1)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = is_precomputed(self.kernel)
        tags.input_tags.sparse = not tags.input_tags.pairwise
        return tags

    def _class_weights(self, y: np.ndarray, codes: np.ndarray, w: np.ndarray) -> np.ndarray:
        if self.class_weight != "balanced":
            return compute_class_weight(self.class_weight, classes=self.classes_, y=y)
        # Rows count by their weights, as in LogisticRegression.
        count = np.bincount(codes, w)
        return np.divide(w.sum(), len(count) * count, out=np.zeros_like(count), where=count > 0)

    def _way(self, X: Any) -> tuple[KeptGram | StreamedGram, Factor | LowRank | None]:
        """The Gram matrix, and what Newton's method solves with; None: follow the gradient."""
        binary = len(self.classes_) == 2
        gram = gram_of(self, X, {"newton": True, "newton-cg": False}.get(self.solver))
        if self.solver == "gradient" or (self.solver == "auto" and not binary):
            return gram, None
        if not binary:
            return gram, LowRank(gram, 2 * RANK, len(self.classes_))
        return gram, Factor(gram) if isinstance(gram, KeptGram) else LowRank(gram, RANK, 1)
