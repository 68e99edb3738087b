"""Multiclass machines whose scores are linear in features of a row and a class together."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from fastml._native import linear_svm as native
from fastml._runtime.callbacks import CallbackSupportMixin, fit_context, fit_task
from fastml._runtime.dispatch import accelerated
from fastml._runtime.sparse import with_short_indices
from fastml._runtime.versioned import Versioned
from fastml.jit._function import unwrap
from fastml.jit._scalar import ScalarKernel, scalar_kernel
from fastml.svm._linear_solvers import Machine, Solution, run, solve_jointly

# Of two vectors, which are as long as the longer has to be.
_OF_PAIRS = "def of_pairs(x, y):\n    return f(x[: int(y[2])], int(y[0]), int(y[1]))\n"


def _scalar_features(f: Callable[..., Any], X: np.ndarray, k: int, size: int) -> np.ndarray:
    """f(x, c, j) for rows x, c < k and j < size, (n, k size)."""
    function = unwrap(f)
    namespace: dict[str, Any] = {"f": function.python, "__name__": function.plain.__module__}
    exec(_OF_PAIRS, namespace)
    of_pairs = namespace["of_pairs"]
    of_pairs.__name__ = function.name
    d = X.shape[1]
    pairs = np.zeros((k * size, max(d, 3)), X.dtype)
    pairs[:, 0], pairs[:, 1] = np.divmod(np.arange(k * size), size)
    pairs[:, 2] = d
    rows = X if d >= 3 else np.pad(X, ((0, 0), (0, 3 - d)))
    kernel = ScalarKernel(of_pairs, symmetric=False, reassociate=False)
    return scalar_kernel(kernel, rows, pairs, {})


class CompatibilityClassifier(Versioned, CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    """Multiclass support vector machine on features psi(x, y) of a row and a class.

    The class of a row is the one of the largest score <w, psi(x, y)>, and w minimises
    ``|w|² / 2 + C Σ_i max_y ([y != y_i] + <w, psi(x_i, y) - psi(x_i, y_i)>)``. Classes may thus
    share weights, or have features of their own kinds. By default psi has a block for each class,
    which holds the row in the block of y and zeros elsewhere: then it is the machine of Crammer and
    Singer.

    Parameters
    ----------
    psi : callable, default=None
        With `n_psi`, ``psi(x, c, j)``: feature j of a row and a class, a function of one row, of
        the index of the class in `classes_` and of j to a number, which Numba compiles. Without
        it, ``psi(X, c)``: all features of all rows with a class, (n_samples, n_features of psi),
        by NumPy. None: the block map.

    n_psi : int, default=None
        How many features psi(x, c, j) has.

    C : float, default=1.0
        How much the loss counts: the smaller, the stronger the regularisation.

    fit_intercept : bool, default=True
        Whether the block map has a constant. Another psi brings its own.

    class_weight : dict or "balanced", default=None
        What `C` is multiplied by for rows of a class.

    tol : float, default=1e-4
        Stop when the optimality conditions of no row are violated by more.

    max_iter : int, default=10000
        The most sweeps over the rows.

    random_state : int, RandomState instance or None, default=None
        Of the order of the rows.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.

    coef_ : ndarray of shape (n_classes, n_features) or (n_features of psi,)
        The weights w, for the block map a row for each class.

    intercept_ : ndarray of shape (n_classes,)
        What is added to the scores.

    dual_gap_ : float
        The objective is at most this far above its least value.

    n_iter_ : int
        The number of sweeps.

    n_features_in_ : int
        The number of features of a row.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        The names of the features, if all of them are strings.

    See Also
    --------
    LinearSVC : The block map, one class against the rest or all at once.

    References
    ----------
    Crammer and Singer, "On the Algorithmic Implementation of Multiclass Kernel-based Vector
    Machines" (2001). Tsochantaridis et al., "Large Margin Methods for Structured and
    Interdependent Output Variables" (2005).

    Examples
    --------
    Grades that are ordered: one direction for all, and a place on it for each.

    >>> import numpy as np
    >>> from fastml.svm import CompatibilityClassifier
    >>> def psi(x, c, j):
    ...     if j < len(x):
    ...         return c * x[j]
    ...     return 1.0 if j == len(x) + c else 0.0
    >>> X = np.arange(12.0)[:, None]
    >>> grades = np.repeat([1, 2, 3], 4)
    >>> model = CompatibilityClassifier(psi, n_psi=4, C=100).fit(X, grades)
    >>> model.score(X, grades), model.coef_.shape
    (1.0, (4,))
    """

    _parameter_constraints: ClassVar[dict] = {
        "psi": [callable, None],
        "n_psi": [Interval(Integral, 1, None, closed="left"), None],
        "C": [Interval(Real, 0, None, closed="neither")],
        "fit_intercept": ["boolean"],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        psi=None,
        *,
        n_psi=None,
        C=1.0,
        fit_intercept=True,
        class_weight=None,
        tol=1e-4,
        max_iter=10_000,
        random_state=None,
    ):
        self.psi = psi
        self.n_psi = n_psi
        self.C = C
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    @accelerated
    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None):
        """Find the weights.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows; dense, but for the block map.

        y : array-like of shape (n_samples,)
            The label of each row.

        sample_weight : array-like of shape (n_samples,), default=None
            The weight of each row; None for equal ones.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        X, y = self._validated(X, reset=True, y=y)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        k = len(self.classes_)
        if k < 2:
            raise ValueError(
                "This solver needs samples of at least 2 classes in the data, but the data "
                f"contains only one class: {self.classes_[0]!r}"
            )
        w = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        weights = compute_class_weight(self.class_weight, classes=self.classes_, y=y)
        C = self.C * weights[codes] * w
        counts = np.flatnonzero(C > 0)
        if not len(counts):
            raise ValueError("Every sample has weight zero: there is nothing to fit.")
        if len(counts) < len(C):
            X, codes, C = X[counts], codes[counts], C[counts]
        codes = codes.astype(np.int32)
        seed = check_random_state(self.random_state).randint(np.iinfo("i").max)
        metadata = {"sample_weight": sample_weight}
        with fit_task(self, None, X=X, y=y, metadata=metadata) as task:
            if self.psi is None:
                bias = float(self.fit_intercept)
                machine = Machine(
                    False, False, 0.0, bias, False, float(self.tol), self.max_iter, seed
                )
                solution = solve_jointly(machine, X, codes, C, k, task)
            else:
                psi = self._features(X)
                solver = native.compatibility_solver(psi, codes, C, self.tol, self.max_iter, seed)
                solution = run([solver], psi.shape[2], "compatibility", True, task, self._fitted)
        vars(self).update(self._fitted(solution))
        if not solution.converged:
            warnings.warn(
                f"The duality gap is {solution.gap:.2g} after {solution.n_iter} sweeps. Increase "
                "max_iter or tol, or decrease C.",
                ConvergenceWarning,
                stacklevel=4,
            )
        return self

    def _validated(self, X: Any, *, reset: bool, **targets: Any) -> Any:
        X = validate_data(
            self,
            X,
            reset=reset,
            accept_sparse="csr" if self.psi is None else False,
            dtype=[np.float64, np.float32],
            order="C",
            accept_large_sparse=False,
            **targets,
        )
        X, *rest = X if isinstance(X, tuple) else (X,)
        if issparse(X):
            X = with_short_indices(X)
            if not X.has_canonical_format:
                X = X.copy()
                X.sum_duplicates()
        return (X, *rest) if rest else X

    def _fitted(self, solution: Solution) -> dict[str, Any]:
        weights = solution.weights
        if self.psi is None:
            coef, last = np.ascontiguousarray(weights[:, :-1]), weights[:, -1].copy()
        else:
            coef, last = weights[0], np.zeros(len(self.classes_))
        return {
            "coef_": coef,
            "intercept_": last,
            "dual_gap_": float(solution.gap),
            "n_iter_": int(solution.n_iter),
        }

    def _features(self, X: np.ndarray) -> np.ndarray:
        """Of each row with each class, (n, k, D)."""
        k = len(self.classes_)
        if self.n_psi is not None:
            psi = _scalar_features(self.psi, X, k, self.n_psi)
        else:
            found = [np.asarray(self.psi(X, c)) for c in range(k)]
            if any(part.ndim != 2 or part.shape != (len(X), found[0].shape[1]) for part in found):
                shapes = ", ".join(str(part.shape) for part in found)
                raise ValueError(
                    f"psi(X, c) must have a row for each of X and as many columns for each class; "
                    f"got {shapes}."
                )
            psi = np.stack(found, axis=1)
        psi = np.ascontiguousarray(psi.reshape(len(X), k, -1))
        psi = psi if psi.dtype == np.float32 else psi.astype(np.float64, copy=False)
        if not np.isfinite(psi).all():
            raise ValueError("psi must be finite.")
        return psi

    @accelerated
    def decision_function(self, X):
        """The scores of each class; of two classes, how much the second has more.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            The scores.
        """
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        scores = X @ self.coef_.T if self.psi is None else self._features(X) @ self.coef_
        scores = scores + self.intercept_
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X):
        """The class of the largest score of each row.

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
        best = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[best]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.psi is None
        return tags
