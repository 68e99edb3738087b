"""Empirical risk minimisation in a kernel's space."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from fastml._runtime.callbacks import CallbackSupportMixin, fit_context, fit_task
from fastml._runtime.dispatch import accelerated
from fastml._runtime.versioned import Versioned
from fastml.kernel_erm._descent import Objective, Space, descend
from fastml.kernel_erm._losses import (
    NAMES,
    SIGNS,
    SMOOTHED,
    Corners,
    Risk,
    named,
    of_user,
    regulariser,
)
from fastml.kernel_logistic._estimator import RANK
from fastml.kernel_logistic._newton import Model, fit, nothing
from fastml.kernel_logistic._operators import Factor, KeptGram, LowRank, gram_of
from fastml.metrics._dispatch import KERNEL
from fastml.metrics._kernel_function import expansion, is_precomputed, validated


class KernelERM(Versioned, CallbackSupportMixin, RegressorMixin, BaseEstimator):
    """Minimise any loss of any kernel machine, with any regulariser of its norm.

    Over functions f of the kernel's space and intercepts b, ``Σ w_i ℓ(y_i, f(x_i) + b) +
    alpha R(|f|)``. Whatever the loss, and whatever R that does not decrease, the best f is a sum
    of the kernel's values at the rows of the fit (the representer theorem).

    Predictions are the scores f(x) + b. For losses of margins, such as "hinge", targets are -1 and
    1, and the sign of a prediction is the class.

    Parameters
    ----------
    loss : str, callable or tuple of two, default="squared"
        Of a target y and a score f, e = y - f: "squared", e² / 2; "absolute", \\|e\\|; "huber",
        quadratic up to `delta`; "quantile", the pinball loss of `quantile`;
        "epsilon_insensitive" and its half square "squared_epsilon_insensitive", from `epsilon` on;
        "hinge", max(0, 1 - y f), and its half square "squared_hinge"; "log"; "exponential";
        "sigmoid", 1 / (1 + exp(y f)), which is not convex; "poisson", exp(f) - y f. Or a function
        ``loss(y, f)`` of two numbers, which Numba compiles, or a tuple of it and its derivative by
        f, which is otherwise taken by differences.

    alpha : float, default=1.0
        How much the regulariser counts.

    regularizer : {"squared", "norm"}, callable or tuple of two, default="squared"
        R: \\|f\\|² / 2, \\|f\\|, a function of the norm that does not decrease, or it and its
        derivative.

    kernel : str, kernel object or callable, default="rbf"
        A name that `fastml.metrics.pairwise_kernels` knows; "precomputed", if `X` is
        the Gram matrix; a kernel of `gaussian_process.kernels`; a function made by
        `fastml.jit.kernel`; or a function of two rows. It must be positive definite.

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
        Whether there is an intercept, which is not regularised.

    delta : float, default=1.0
        Where "huber" becomes linear.

    quantile : float, default=0.5
        Of the targets, what the loss "quantile" estimates.

    epsilon : float, default=0.1
        Errors that "epsilon_insensitive" and its square do not count.

    solver : {"auto", "newton", "gradient"}, default="auto"
        "newton", for the named convex losses and the squared norm: Newton's method, a
        factorisation a step. "gradient", for all: limited memory BFGS along the functional
        gradient. "auto": "newton" where it applies.

    tol : float, default=1e-10
        Stop when the duality gap, or what would be it, is at most this part of the objective.

    max_iter : int, default=1000
        The most steps.

    max_gram_mb : float, default=4096
        The most memory for the Gram matrix, in MiB; one that needs more is computed again a block
        at a time whenever it is multiplied. None: any.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (n_samples,)
        The weight of each row of the fit in the scores.

    intercept_ : float
        What is added to the scores.

    X_fit_ : {ndarray, sparse matrix} of shape (n_samples, n_features)
        The rows of the fit; None if the kernel is precomputed.

    objective_ : float
        What was minimised, where it ended.

    dual_gap_ : float
        Half the squared norm of the gradient in the kernel's space over `alpha`, and what rounding
        off corners hides. For a convex loss and the squared norm the objective is at most this far
        from its minimum.

    n_iter_ : int
        The number of steps.

    n_features_in_ : int
        The number of features.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        The names of the features, if all of them are strings.

    See Also
    --------
    fastml.kernel_ridge.KernelRidge : The squared loss, in one step.
    fastml.kernel_logistic.KernelLogisticRegression : The logistic loss, also of several classes.
    fastml.svm.SVC : The hinge loss, with sparse solutions.

    References
    ----------
    Schölkopf, Herbrich and Smola, "A Generalized Representer Theorem" (2001).

    Examples
    --------
    >>> import numpy as np
    >>> from fastml.kernel_erm import KernelERM
    >>> X = np.linspace(0, 6, 100)[:, None]
    >>> y = np.sin(X[:, 0])
    >>> y[::10] += 5  # errors that are gross
    >>> model = KernelERM("absolute", alpha=0.1, gamma=1.0).fit(X, y)
    >>> bool(abs(model.predict(X) - np.sin(X[:, 0])).max() < 0.1)
    True
    >>> def cauchy(y, f):
    ...     return np.log(1 + (y - f) ** 2)
    >>> model = KernelERM(cauchy, alpha=0.1, gamma=1.0).fit(X, y)
    >>> bool(abs(model.predict(X) - np.sin(X[:, 0])).max() < 0.1)
    True
    """

    _parameter_constraints: ClassVar[dict] = {
        "loss": [StrOptions(set(NAMES)), callable, tuple],
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "regularizer": [StrOptions({"squared", "norm"}), callable, tuple],
        "kernel": KERNEL,
        "gamma": [Interval(Real, 0, None, closed="left"), None],
        "degree": [Interval(Real, 0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "kernel_params": [dict, None],
        "fit_intercept": ["boolean"],
        "delta": [Interval(Real, 0, None, closed="neither")],
        "quantile": [Interval(Real, 0, 1, closed="neither")],
        "epsilon": [Interval(Real, 0, None, closed="left")],
        "solver": [StrOptions({"auto", "newton", "gradient"})],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "max_gram_mb": [Interval(Real, 0, None, closed="left"), None],
    }

    def __init__(
        self,
        loss="squared",
        *,
        alpha=1.0,
        regularizer="squared",
        kernel="rbf",
        gamma=None,
        degree=3,
        coef0=1,
        kernel_params=None,
        fit_intercept=True,
        delta=1.0,
        quantile=0.5,
        epsilon=0.1,
        solver="auto",
        tol=1e-10,
        max_iter=1000,
        max_gram_mb=4096,
    ):
        self.loss = loss
        self.alpha = alpha
        self.regularizer = regularizer
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.fit_intercept = fit_intercept
        self.delta = delta
        self.quantile = quantile
        self.epsilon = epsilon
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.max_gram_mb = max_gram_mb

    @accelerated
    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None):
        """Find the function of least risk.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows; the Gram matrix if the kernel is precomputed.

        y : array-like of shape (n_samples,)
            The targets.

        sample_weight : array-like of shape (n_samples,), default=None
            The weight of each row; None for equal ones.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        X, y = validated(self, X, reset=True, y=y, y_numeric=True)
        if is_precomputed(self.kernel) and X.shape[0] != X.shape[1]:
            raise ValueError(f"Precomputed kernel must be a square matrix; got {X.shape}.")
        y = np.asarray(y, dtype=np.float64)
        if self.loss in SIGNS and not (abs(y) == 1).all():
            raise ValueError(f"The targets of loss={self.loss!r} must be -1 or 1.")
        if self.loss == "poisson" and (y < 0).any():
            raise ValueError("The targets of loss='poisson' must not be negative.")
        w = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        by_newton = self._by_newton()
        gram = gram_of(self, X, None)

        def attributes(model: Model) -> dict[str, Any]:
            return {
                "dual_coef_": model.beta[:, 0],
                "intercept_": float(model.b[0]),
                "X_fit_": None if is_precomputed(self.kernel) else X,
                "objective_": model.objective,
                "dual_gap_": model.gap,
                "n_iter_": max(1, model.n_iter),
            }

        metadata = {"sample_weight": sample_weight}
        with fit_task(self, None, X=X, y=y, metadata=metadata) as task:
            solve = self._newton if by_newton else self._descend
            model, goal = self._rounded(solve, gram, y, w, task, attributes)
        vars(self).update(attributes(model))
        if not model.gap <= goal:
            warnings.warn(
                f"The duality gap is {model.gap:.2g} after {model.n_iter} steps, above {goal:.2g}. "
                "Increase max_iter, tol or alpha.",
                ConvergenceWarning,
                stacklevel=4,
            )
        return self

    def _by_newton(self) -> bool:
        applies = (
            isinstance(self.loss, str)
            and self.loss != "sigmoid"
            and isinstance(self.regularizer, str)
            and self.regularizer == "squared"
        )
        if self.solver == "newton" and not applies:
            raise ValueError(
                "solver='newton' is for named convex losses and regularizer='squared'. Use "
                "solver='auto'."
            )
        return applies and self.solver != "gradient"

    def _rounded(
        self, solve: Any, gram: Any, y: np.ndarray, w: np.ndarray, task: Any, attributes: Any
    ) -> tuple[Model, float]:
        """The model, and what its gap should be; corners are rounded off less and less."""
        loss: Any
        if isinstance(self.loss, str):
            options = {"delta": self.delta, "quantile": self.quantile, "epsilon": self.epsilon}
            loss = named(self.loss, **options)
        else:
            loss = of_user(self.loss)
        single = gram.dtype == np.float32
        tol = max(self.tol, 1e-5 if single else 0.0)
        model = nothing((len(y), 1))
        if not isinstance(loss, Corners) or loss.width > 0:
            at = loss.at if isinstance(loss, Corners) else loss
            model = solve(gram, Risk(at, y, w), model, tol, self.max_iter, task, attributes)
            return model, tol * abs(model.objective)
        unit, n_iter = (1.0 if loss.margin else float(np.std(y)) or 1.0), 0
        for width in SMOOTHED[:3] if single else SMOOTHED:
            smooth = loss._replace(width=width * unit)
            risk, left = Risk(smooth.at, y, w), max(1, self.max_iter - n_iter)
            model = solve(gram, risk, model, tol, left, task, attributes)
            n_iter += model.n_iter
            hidden = float(w.sum()) * smooth.error()
            goal = tol * abs(model.objective)
            model = model._replace(gap=model.gap + hidden, n_iter=n_iter)
            if model.gap <= goal or model.gap - hidden > goal:
                break
        # The last of the widths is as small as its square is to arithmetic.
        return model, goal + hidden

    def _newton(
        self, gram: Any, risk: Risk, start: Model, tol: float, most: int, task: Any, attributes: Any
    ) -> Model:
        kept = isinstance(gram, KeptGram)

        def scaled(model: Model) -> Model:
            objective, gap = self.alpha * model.objective, self.alpha * model.gap
            return model._replace(objective=objective, gap=gap)

        risk.w = risk.w / self.alpha
        model = fit(
            gram,
            risk,
            precondition=Factor(gram) if kept else LowRank(gram, RANK, 1),
            intercept=self.fit_intercept,
            tol=1e-4 * tol,  # one step more, and that is about exact
            max_iter=most,
            task=task,
            attributes=lambda model: attributes(scaled(model)),
            start=start,
        )
        return scaled(model)

    def _descend(
        self, gram: Any, risk: Risk, start: Model, tol: float, most: int, task: Any, attributes: Any
    ) -> Model:
        unit = float(np.mean(gram.diagonal)) or 1.0
        R = regulariser(self.regularizer)
        objective = Objective(gram, risk, R, self.alpha, self.fit_intercept, unit)
        model = descend(
            objective,
            Space(unit),
            start,
            tol=tol * self.alpha,
            max_iter=most,
            task=task,
            attributes=attributes,
        )
        return model._replace(gap=model.gap / self.alpha)

    @accelerated
    def predict(self, X):
        """The score of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            The values of the function, and the intercept.
        """
        check_is_fitted(self)
        X = validated(self, X, reset=False)
        return expansion(self, X, self.dual_coef_[:, None])[:, 0] + self.intercept_

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = is_precomputed(self.kernel)
        tags.input_tags.sparse = not tags.input_tags.pairwise
        return tags
