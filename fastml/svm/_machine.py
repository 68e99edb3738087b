"""What the five machines share: validation as scikit-learn's, and everything around the solver."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from numbers import Real
from threading import Lock
from typing import Any

import numpy as np
from scipy.sparse import csr_array, csr_matrix, issparse
from sklearn import get_config
from sklearn import svm as stock
from sklearn.utils import check_random_state
from sklearn.utils.validation import (
    _num_samples,
    check_consistent_length,
    validate_data,
)

from fastml._native import smo
from fastml._runtime.callbacks import CallbackSupportMixin, fit_context, fit_task
from fastml._runtime.dispatch import accelerated
from fastml._runtime.plain import is_table, note_columns
from fastml._runtime.sparse import with_short_indices
from fastml._runtime.threads import n_threads
from fastml._runtime.versioned import Versioned
from fastml.svm._decision import decider, kernel_values
from fastml.svm._kernels import Values, values_of
from fastml.svm._problems import Fitted

#: Whether scikit-learn has deprecated `probability`.
DEPRECATED = inspect.signature(stock.SVC).parameters["probability"].default == "deprecated"

# What scikit-learn's classes have not.
OURS = ("dual_gap_", "kkt_violation_", "margin_", "epsilon_", "solver", "warm_start")

_FITTED_X = "_BaseLibSVM__Xfit"  # where scikit-learn's classes keep the rows of a callable kernel


class Checked:
    """Checks that find nothing in a third of the time that scikit-learn's and small fits take."""

    def _is_plain(self, X: Any, y: Any) -> bool:
        """Whether scikit-learn's checks would find nothing; then does what they would do."""
        if not (is_table(X) and X.flags.c_contiguous and are_plain(y, len(X))):
            return False
        note_columns(self, X)
        return True


class Machine(Checked, Versioned, CallbackSupportMixin):
    """Stands before the stock class, and does what that leaves to libsvm."""

    @accelerated
    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None):
        """Fit the machine to rows and their targets."""
        return self._fit(X, y, sample_weight)

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Any:
        random_state = check_random_state(self.random_state)
        X, y = self._validated(X, y)
        y = self._validate_targets(y)
        w = np.asarray([] if sample_weight is None else sample_weight, dtype=np.float64)
        wants_probability = self._wants_probability()
        self._check_shapes(X, y, w)
        self._gamma = self._gamma_of(X)
        if self.verbose:
            print("[LibSVM]", end="")
        seed = random_state.randint(np.iinfo("i").max) if wants_probability else None
        w = w if len(w) else None
        self._check_weights(y, w)
        if callable(self.kernel):
            setattr(self, _FITTED_X, X)
        metadata = {"sample_weight": sample_weight}
        with fit_task(self, None, X=X, y=y, metadata=metadata) as task:
            fitted = self._solve(values_of(self, X), y, w, seed, _report(task))
        self._keep(X, fitted)
        return self

    def _validated(self, X: Any, y: Any) -> tuple[Any, Any]:
        sparse = issparse(X)
        if sparse and isinstance(self.kernel, str) and self.kernel == "precomputed":
            raise TypeError("Sparse precomputed kernels are not supported.")
        self._sparse = sparse and not callable(self.kernel)
        if callable(self.kernel):
            check_consistent_length(X, y)
            return X, y
        if self._is_plain(X, y):
            return X, y
        X, y = validate_data(
            self,
            X,
            y,
            dtype=[np.float64, np.float32],
            order="C",
            accept_sparse="csr",
            accept_large_sparse=False,
        )
        return (_canonical(with_short_indices(X)) if sparse else X), y

    def _wants_probability(self) -> bool:
        if not DEPRECATED:
            return bool(self.probability)
        self._effective_probability = self.probability
        if hasattr(self, "decision_function_shape"):
            if self.probability == "deprecated":
                self._effective_probability = False
            else:
                warnings.warn(
                    "The `probability` parameter was deprecated in 1.9 and will be removed in "
                    "version 1.11. Use `CalibratedClassifierCV(SVC(), ensemble=False)` instead of "
                    "`SVC(probability=True)`",
                    FutureWarning,
                    stacklevel=5,
                )
        return bool(self._effective_probability)

    def _check_shapes(self, X: Any, y: np.ndarray, w: np.ndarray) -> None:
        n = _num_samples(X)
        if len(y) != n:
            raise ValueError(
                f"X and y have incompatible shapes.\nX has {n} samples, but y has {len(y)}."
            )
        if not callable(self.kernel) and self.kernel == "precomputed" and n != X.shape[1]:
            raise ValueError(
                "Precomputed matrix must be a square matrix. "
                f"Input is a {X.shape[0]}x{X.shape[1]} matrix."
            )
        if w.shape != (0,) and w.shape != (n,):
            raise ValueError(
                f"sample_weight and X have incompatible shapes: {w.shape!r} vs {X.shape!r}\n"
                "Note: Sparse matrices cannot be indexed w/boolean masks (use `indices=True` in "
                "CV)."
            )

    def _gamma_of(self, X: Any) -> float:
        if callable(self.kernel) or self.kernel == "precomputed":
            return 0.0
        if isinstance(self.gamma, Real):
            return self.gamma
        if self.gamma == "auto":
            return 1.0 / X.shape[1]
        if issparse(X):
            Z = X.astype(np.float64, copy=False)
            variance = Z.multiply(Z).mean() - Z.mean() ** 2
        else:
            variance = X.var(dtype=np.float64)
        return 1.0 / (X.shape[1] * variance) if variance != 0 else 1.0

    def _check_weights(self, y: np.ndarray, w: np.ndarray | None) -> None:
        """What libsvm says of weights, and of them and targets together."""
        if w is not None and not (w > 0).any():
            raise ValueError("Invalid input - all samples have zero or negative weights.")

    def _solve(
        self,
        values: Values,
        y: np.ndarray,
        w: np.ndarray | None,
        seed: int | None,
        progress: Callable[[int, float], bool] | None,
    ) -> Fitted:
        raise NotImplementedError

    def _solutions(self, values: Values, problems: list, progress: Any, **options: Any) -> list:
        """Solve the problems, and say so if one is not solved."""
        always = {
            "tol": self.tol,
            "shrinking": bool(self.shrinking),
            "cache_size": float(self.cache_size),
            "max_iter": self.max_iter,
            "n_threads": n_threads(),
            "progress": progress,
        }
        solutions = smo.solve(values.rows, problems, **(always | options))
        self.fit_status_ = int(any(s.status for s in solutions))
        return solutions

    def _keep(self, X: Any, fitted: Fitted) -> None:
        self._warn_from_fit_status()
        self.support_, self._n_support = fitted.support, fitted.n_support
        self.intercept_, self.dual_coef_ = fitted.intercept, fitted.coef
        by_name = isinstance(self.kernel, str) and self.kernel != "precomputed"
        vectors = X[fitted.support] if by_name else np.empty((0, 0))
        self.support_vectors_ = vectors.astype(np.float64, copy=False)
        if self._sparse:
            self.support_vectors_ = as_configured(self.support_vectors_)
            self.dual_coef_ = as_configured(sparse_coef(fitted.coef))
        self.shape_fit_ = X.shape if hasattr(X, "shape") else (_num_samples(X),)
        self._intercept_, self._dual_coef_ = self.intercept_.copy(), self.dual_coef_
        if hasattr(self, "classes_") and len(self.classes_) == 2:
            self.intercept_ *= -1
            self.dual_coef_ = -self.dual_coef_
        numbers = (self._intercept_, fitted.coef, self.kkt_violation_)
        if not all(np.isfinite(some).all() for some in numbers):
            raise ValueError(
                "The dual coefficients or intercepts are not finite. The input data may contain "
                "large values and need to be preprocessed."
            )

    def _decisions(self, X: Any) -> np.ndarray:
        """Of each pair of classes, (n, pairs), with libsvm's signs."""
        if self._is_ready(X):
            return decider(self)(X)
        if issparse(X) and X.format == "csr":
            X = _canonical(X)  # else scikit-learn sorts it where it is
        X = self._validate_for_predict(X)
        if callable(self.kernel):
            X = kernel_values(self, X, getattr(self, _FITTED_X))
            if X.ndim != 2 or (not decider(self).reduced and X.shape[1] != self.shape_fit_[0]):
                raise ValueError(
                    f"X.shape[1] = {X.shape[-1]} should be equal to {self.shape_fit_[0]}, the "
                    "number of samples at training time"
                )
        elif self._sparse:
            X = _canonical(X)
        return decider(self)(X)

    def _is_ready(self, X: Any) -> bool:
        """Whether there is nothing that scikit-learn's checks, which take long, could find."""
        return (
            is_table(X)
            and not callable(self.kernel)
            and self.kernel != "precomputed"
            and hasattr(self, "support_vectors_")
            and not self._sparse
            and X.shape[1] == self.n_features_in_
            and not hasattr(self, "feature_names_in_")
        )

    def __to_sklearn_state__(self, state: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in state.items() if name not in OURS}


def are_plain(y: Any, n: int) -> bool:
    """Whether y is such that scikit-learn's checks of targets find nothing."""
    return (
        type(y) is np.ndarray
        and y.shape == (n,)
        and (y.dtype.kind in "bi" or (y.dtype == np.float64 and bool(np.isfinite(y.sum()))))
    )


def _canonical(X: Any) -> Any:
    """CSR sorted and without duplicates; a copy if that is to be changed."""
    if X.has_canonical_format:
        return X
    X = X.copy()
    X.sum_duplicates()
    return X


def _report(task: Any) -> Callable[[int, float], bool] | None:
    """The solver's progress as subtasks of a fit that somebody follows."""
    if not task:
        return None
    one_at_a_time = Lock()  # each thread reports the problem that it is at

    def report(steps: int, violation: float) -> bool:
        with one_at_a_time, task.subtask("check") as check:
            pass
        return check.stop

    return report


def as_configured(X: Any) -> Any:
    """A sparse matrix of the kind that scikit-learn is set to return."""
    interface = get_config().get("sparse_interface", "spmatrix")
    return csr_array(X) if interface == "sparray" else csr_matrix(X)


def sparse_coef(coef: np.ndarray) -> Any:
    """All coefficients stored, zeros too, as scikit-learn stores them."""
    rows, count = coef.shape
    if not count:
        return csr_array([[]])
    indptr = np.arange(0, rows * count + 1, count)
    return csr_array((coef.ravel(), np.tile(np.arange(count), rows), indptr), shape=coef.shape)
