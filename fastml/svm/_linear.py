"""Linear support vector machines, without kernels."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn import svm as stock
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm._base import _get_liblinear_solver_type
from sklearn.svm._classes import _validate_dual_parameter
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, validate_data

from fastml._native import linear_svm as native
from fastml._native.rows import Rows
from fastml._runtime.callbacks import CallbackSupportMixin, fit_context, fit_task
from fastml._runtime.dispatch import accelerated
from fastml._runtime.docs import documented_by
from fastml._runtime.sparse import with_short_indices
from fastml._runtime.versioned import Versioned
from fastml.svm._linear_solvers import Machine, Solution, solve, solve_jointly
from fastml.svm._machine import Checked

StockLinearSVC = stock.LinearSVC
StockLinearSVR = stock.LinearSVR

# Numbers so close together are classes that are counted.
_CLOSE = 256
_WEIGHTED_CLASSES = "sample_weight" in inspect.signature(compute_class_weight).parameters


class _LinearMachine(Checked, Versioned, CallbackSupportMixin):
    """What both have in common."""

    def _validated(self, X: Any, y: Any) -> tuple[Any, np.ndarray]:
        if self._is_plain(X, y):
            return X, y
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            order="C",
            accept_large_sparse=False,
        )
        if issparse(X):
            X = with_short_indices(X)
            # The order of columns is of no account, and sorting them would take long.
            if not X.has_canonical_format and native.repeats(Rows(X)):
                X = X.copy()
                X.sum_duplicates()
        return X, y

    def _machine(self, penalty: str) -> Machine:
        return Machine(
            squared=self.loss.startswith("squared"),
            regression="epsilon" in self.loss,
            epsilon=float(getattr(self, "epsilon", 0)),
            bias=float(self.intercept_scaling) if self.fit_intercept else 0.0,
            lasso=penalty == "l1",
            tol=float(self.tol),
            max_iter=int(self.max_iter),
            seed=check_random_state(self.random_state).randint(np.iinfo("i").max),
        )

    def _keep(self, solution: Solution) -> None:
        if self.verbose:
            print(
                f"[{type(self).__name__}] {solution.method}: {solution.n_iter} iterations, "
                f"duality gap {solution.gap:.3g}"
            )
        if not solution.converged or solution.n_iter >= self.max_iter:
            warnings.warn(
                "Liblinear failed to converge, increase the number of iterations.",
                ConvergenceWarning,
                stacklevel=3,
            )
        vars(self).update(self._fitted(solution))

    def _fitted(self, solution: Solution) -> dict[str, Any]:
        coef, last = solution.weights[:, :-1], solution.weights[:, -1]
        return {
            "coef_": np.asfortranarray(coef),
            "intercept_": self.intercept_scaling * last if self.fit_intercept else 0.0,
            "n_iter_": int(solution.n_iter),
            "dual_gap_": float(solution.gap),
        }

    def __to_sklearn_state__(self, state: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in state.items() if key != "dual_gap_"}


@documented_by(StockLinearSVC)
class LinearSVC(_LinearMachine, StockLinearSVC):
    """Linear support vector classification.

    The same problems as scikit-learn's, solved by what is quickest for the shape of the data,
    whatever `dual` asks for: the optimum is the same. See the chapter on linear support vector
    machines.

    Attributes
    ----------
    dual_gap_ : float
        How far the primal objective can be from its least value: the largest duality gap of the
        problems solved.

    Examples
    --------
    >>> from fastml.svm import LinearSVC
    >>> model = LinearSVC().fit([[0, 1], [1, 1], [2, 0], [3, 0]], [0, 0, 1, 1])
    >>> model.predict([[0, 0], [4, 1]])
    array([0, 1])
    >>> bool(model.dual_gap_ < 1e-6)
    True
    """

    @accelerated
    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None):
        """Fit the model to rows of `X` and their classes `y`."""
        X, y = self._validated(X, y)
        coded = _counted(y)
        if coded is None:
            check_classification_targets(y)
            coded = np.unique(y, return_inverse=True)
        self.classes_, codes = coded
        dual = _validate_dual_parameter(self.dual, self.loss, self.penalty, self.multi_class, X)
        if len(self.classes_) < 2:
            raise ValueError(
                "This solver needs samples of at least 2 classes in the data, but the data "
                f"contains only one class: {self.classes_[0]!r}"
            )
        weighted = {"sample_weight": sample_weight} if _WEIGHTED_CLASSES else {}
        by_class = compute_class_weight(self.class_weight, classes=self.classes_, y=y, **weighted)
        w = _check_sample_weight(sample_weight, X, dtype=np.float64)
        _get_liblinear_solver_type(self.multi_class, self.penalty, self.loss, dual)
        joint = self.multi_class == "crammer_singer"
        machine = self._machine("l2" if joint else self.penalty)
        X, codes, w = _weighty(X, codes.astype(np.int32, copy=False), w)
        weight = by_class * self.C
        with fit_task(self, None, X=X, y=y, metadata={"sample_weight": sample_weight}) as task:
            if joint:
                solution = solve_jointly(machine, X, codes, weight[codes] * w, len(weight), task)
            else:
                problems = _one_vs_rest(codes, weight, self.C, w)
                solution = solve(machine, X, problems, task, self._fitted)
        self._keep(solution)
        return self

    def _fitted(self, solution: Solution) -> dict[str, Any]:
        if self.multi_class == "crammer_singer" and len(self.classes_) == 2:
            solution = solution._replace(weights=np.diff(solution.weights, axis=0))
        return super()._fitted(solution)


@documented_by(StockLinearSVR)
class LinearSVR(_LinearMachine, StockLinearSVR):
    """Linear support vector regression.

    The same problems as scikit-learn's, solved by what is quickest for the shape of the data,
    whatever `dual` asks for: the optimum is the same. See the chapter on linear support vector
    machines.

    Attributes
    ----------
    dual_gap_ : float
        How far the primal objective can be from its least value.

    Examples
    --------
    >>> from fastml.svm import LinearSVR
    >>> model = LinearSVR(C=100.0).fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0])
    >>> model.predict([[3.0]]).round(2)
    array([7.])
    """

    @accelerated
    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None):
        """Fit the model to rows of `X` and their targets `y`."""
        X, y = self._validated(X, y)
        dual = _validate_dual_parameter(self.dual, self.loss, "l2", "ovr", X)
        w = _check_sample_weight(sample_weight, X, dtype=np.float64)
        _get_liblinear_solver_type("ovr", "l2", self.loss, dual)
        if self.epsilon < 0:
            raise ValueError(f"epsilon must not be negative; got {self.epsilon}.")
        X, target, w = _weighty(X, np.asarray(y, np.float64).ravel(), w)
        machine = self._machine("l2")
        with fit_task(self, None, X=X, y=y, metadata={"sample_weight": sample_weight}) as task:
            solution = solve(machine, X, [(target, self.C * w)], task, self._fitted)
        self._keep(solution)
        return self

    def _fitted(self, solution: Solution) -> dict[str, Any]:
        fitted = super()._fitted(solution)
        return fitted | {"coef_": fitted["coef_"].ravel()}


def _counted(y: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """The classes and codes of many whole numbers that lie close together, else None.

    Two looks by `np.unique`, of which one checks the targets, take a fifth of a fit.
    """
    if y.dtype.kind != "i" or len(y) < 2 * _CLOSE:
        return None
    low, high = int(y.min()), int(y.max())
    if high - low >= _CLOSE:
        return None
    at = y.astype(np.intp) - low
    present = np.bincount(at) > 0
    classes = (np.flatnonzero(present) + low).astype(y.dtype)
    return classes, (np.cumsum(present, dtype=np.int32) - 1)[at]


def _weighty(X: Any, y: np.ndarray, w: np.ndarray) -> tuple[Any, np.ndarray, np.ndarray]:
    """Rows of positive weight; others do not count, and have no bounds on their multipliers."""
    if w.min() > 0:
        return X, y, w
    keep = np.flatnonzero(w > 0)
    if not len(keep):
        raise ValueError("Every sample has weight zero, or less: there is nothing to fit.")
    return X[keep], y[keep], w[keep]


def _one_vs_rest(codes: np.ndarray, weight: np.ndarray, C: float, w: np.ndarray) -> Any:
    """Targets and costs of each problem; as in scikit-learn, the rest of several has C."""
    if len(weight) == 2:
        yield 2.0 * codes - 1, weight[codes] * w
        return
    for k in range(len(weight)):
        mine = codes == k
        yield np.where(mine, 1.0, -1.0), np.where(mine, weight[k], C) * w
