"""Validated matrices on their way into the compiled kernels and the results on their way out."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn import get_config
from sklearn.metrics.pairwise import check_pairwise_arrays

from fastml._native import pairwise as native
from fastml._native.rows import Rows
from fastml._runtime.dispatch import Unsupported, accelerated
from fastml._runtime.docs import documented_by
from fastml._runtime.parameters import validate_params
from fastml._runtime.plain import is_table
from fastml._runtime.sparse import with_short_indices
from fastml._runtime.threads import n_threads


def replaces(
    stock: Any,
    unless: Callable[..., Unsupported | None] | None = None,
    constraints: dict[str, Any] | None = None,
) -> Callable[[Any], Any]:
    """Make a function of ours stand for `stock`: its checks of parameters, its documentation.

    `unless` says which calls go to `stock`, besides those with arrays of another library's, and
    `constraints` what parameters may be beyond what it takes.
    """

    def refusal(*args: Any, **kwargs: Any) -> Unsupported | None:
        if bool(args) == ("X" in kwargs):
            return None  # the checks have something to say
        X = args[0] if args else kwargs["X"]
        if get_config()["array_api_dispatch"] and not isinstance(X, np.ndarray):
            return Unsupported("X", "only NumPy arrays are compiled for", "pass a NumPy array")
        return unless(*args, **kwargs) if unless is not None else None

    def decorate(ours: Any) -> Any:
        checked = validate_params(
            stock._skl_parameter_constraints | (constraints or {}),
            prefer_skip_nested_validation=True,
        )(ours)
        return documented_by(stock)(accelerated(checked, unless=refusal, stock=stock))

    return decorate


def checked(X: Any, Y: Any, **options: Any) -> tuple[Any, Any]:
    """As scikit-learn's `check_pairwise_arrays`, which takes long to find nothing wrong."""
    if is_table(X) and options.get("dtype", X.dtype) == X.dtype:
        if Y is None or Y is X:
            return X, X
        if is_table(Y) and X.dtype == Y.dtype and X.shape[1] == Y.shape[1]:
            return X, Y
    return check_pairwise_arrays(X, Y, **options)


class _Jobs(threading.local):
    n_jobs: int | None = None


_jobs = _Jobs()


@contextmanager
def jobs(n_jobs: int | None) -> Iterator[None]:
    """Keep what is computed within to `n_jobs` threads."""
    before, _jobs.n_jobs = _jobs.n_jobs, n_jobs
    try:
        yield
    finally:
        _jobs.n_jobs = before


def threads() -> int:
    return n_threads(_jobs.n_jobs)


def measure_of(metric: str, **params: Any) -> Any:
    """The measure, with every parameter as a plain number; weights as they are."""
    plain = {name: v if name == "weights" else float(v) for name, v in params.items()}
    return native.Measure(metric, **plain)


def rows_of(X: Any) -> Rows:
    """Rows as kernels take them: in C order, or in CSR in canonical form with 32-bit indices."""
    if not issparse(X):
        return Rows(np.ascontiguousarray(X))
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return Rows(with_short_indices(X))


def pairs(metric: str, X: Any, Y: Any, *, double: bool = False, **params: Any) -> np.ndarray:
    """The matrix of a metric over all pairs of rows of X and Y, which is X where both are one.

    `double`: in float64 whatever the dtype of the rows, as SciPy's distances are.
    """
    symmetric = X is Y
    if double and X.dtype != np.float64:
        X = X.astype(np.float64)
        Y = X if symmetric else Y.astype(np.float64)
    # Sparse rows come first: what is wanted then is the transpose.
    transposed = issparse(Y) and not issparse(X)
    x = rows_of(X)
    y = x if symmetric else rows_of(Y)
    out = np.empty((x.n, y.n), dtype=X.dtype)
    left, right = (y, x) if transposed else (x, y)
    native.gram(left, right, measure_of(metric, **params), symmetric, transposed, out, threads())
    return out


@cache
def _kind(like: Callable[..., Any], of_X: Any, of_Y: Any, interface: str | None) -> Any:
    """What scikit-learn's function makes of such matrices: it depends on its version as well."""
    return type(like(of_X((1, 1)), of_Y((1, 1)), dense_output=False))


def sparse_product(X: Any, Y: Any, like: Callable[..., Any]) -> Any:
    """X Yᵀ of sparse matrices as a sparse one, of the kind that `like` makes of such."""
    kind = _kind(like, type(X), type(Y), get_config().get("sparse_interface"))
    x, yt = rows_of(X), Rows(with_short_indices(Y.T.tocsr()))
    starts = np.empty(x.n + 1, np.int64)
    native.product_sizes(x, yt, starts, threads())
    indices, data = np.empty(starts[-1], np.int32), np.empty(starts[-1], X.dtype)
    if len(data):
        native.product_entries(x, yt, starts, indices, data, threads())
    if starts[-1] <= np.iinfo(np.int32).max:
        starts = starts.astype(np.int32)
    return kind((data, indices, starts), shape=(x.n, yt.d))


def left_sparse(X: Any, Y: Any) -> tuple[Any, Any]:
    """X in CSR if Y is: kernels that do not store all pairs take their sparse rows from X."""
    return (csr_array(X), Y) if issparse(Y) and not issparse(X) else (X, Y)
