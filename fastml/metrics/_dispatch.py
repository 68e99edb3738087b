"""Pairwise distances and kernels by name, by function and by kernel object."""

import warnings
from functools import partial
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from scipy.sparse import issparse
from sklearn.exceptions import DataConversionWarning
from sklearn.metrics import pairwise as stock
from sklearn.metrics.pairwise import check_pairwise_arrays
from sklearn.utils import gen_batches
from sklearn.utils._chunking import get_chunk_n_rows
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import _num_samples, check_non_negative

from fastml._runtime.dispatch import Unsupported
from fastml.metrics import _distances, _kernels, _metrics
from fastml.metrics._booleans import BOOLEAN, of_truth_values
from fastml.metrics._functions import by_function, function_refusal
from fastml.metrics._rows import checked, jobs, pairs, replaces

DISTANCES = {
    "cityblock": _distances.manhattan_distances,
    "cosine": _distances.cosine_distances,
    "euclidean": _distances.euclidean_distances,
    "haversine": _distances.haversine_distances,
    "l1": _distances.manhattan_distances,
    "l2": _distances.euclidean_distances,
    "manhattan": _distances.manhattan_distances,
    "nan_euclidean": _distances.nan_euclidean_distances,
}
KERNELS = {
    "additive_chi2": _kernels.additive_chi2_kernel,
    "chi2": _kernels.chi2_kernel,
    "cosine": _kernels.cosine_similarity,
    "intersection": _kernels.intersection_kernel,
    "laplacian": _kernels.laplacian_kernel,
    "linear": _kernels.linear_kernel,
    "normalized_intersection": partial(_kernels.intersection_kernel, normalize=True),
    "poly": _kernels.polynomial_kernel,
    "polynomial": _kernels.polynomial_kernel,
    "rbf": _kernels.rbf_kernel,
    "sigmoid": _kernels.sigmoid_kernel,
}


# What a parameter may be that is a kernel.
KERNEL = [StrOptions({*KERNELS, "precomputed"}), callable]


def _distance_refusal(
    X: Any,
    Y: Any = None,
    metric: Any = "euclidean",
    *,
    n_jobs: Any = None,
    ensure_all_finite: Any = True,
    **kwds: Any,
) -> Unsupported | None:
    if "force_all_finite" in kwds:
        return Unsupported("force_all_finite", "it has another name now", "use ensure_all_finite")
    if callable(metric):
        return function_refusal(metric, X, Y, kwds)
    if metric in (*DISTANCES, "precomputed") or metric not in stock._VALID_METRICS:
        return None
    if issparse(X) or issparse(Y):
        return None
    if np.ndim(X) != 2:
        return None  # the checks have something to say
    if metric == "mahalanobis" and "VI" not in kwds and np.shape(X)[0] <= np.shape(X)[-1]:
        return Unsupported("X", "the covariance of so few rows is singular", "pass VI")
    return _metrics.refusal(metric, X, kwds)


@replaces(stock.pairwise_distances, unless=_distance_refusal)
def pairwise_distances(
    X, Y=None, metric="euclidean", *, n_jobs=None, ensure_all_finite=True, **kwds
):
    """Distances of all pairs of rows, by name or by a function of two rows.

    A function is compiled by Numba, if it can be and there are enough pairs; see `fastml.jit`.

    Examples
    --------
    >>> from fastml.metrics.pairwise import pairwise_distances
    >>> pairwise_distances([[0, 0], [3, 4]], metric="chebyshev")
    array([[0., 4.],
           [4., 0.]])
    """
    if callable(metric):
        return by_function(stock.pairwise_distances, metric, X, Y, n_jobs, kwds)
    if metric == "precomputed":
        X, _ = check_pairwise_arrays(X, Y, precomputed=True, ensure_all_finite=ensure_all_finite)
        check_non_negative(
            X,
            whom="`pairwise_distances`. Precomputed distance  need to have non-negative values.",
        )
        return X
    with jobs(None if n_jobs is None else effective_n_jobs(n_jobs)):
        if metric in DISTANCES:
            return _as_jobs_do(DISTANCES[metric](X, Y, **kwds), X, Y, n_jobs)
        if issparse(X) or issparse(Y):
            raise TypeError("scipy distance metrics do not support sparse matrices.")
        if metric not in (*_metrics.COMPILED, *BOOLEAN):
            raise ValueError(f"Unknown Distance Metric: {metric}")
        if metric in BOOLEAN:
            if X.dtype != bool or (Y is not None and Y.dtype != bool):
                message = f"Data was converted to boolean for metric {metric}"
                warnings.warn(message, DataConversionWarning, stacklevel=2)
            X, Y = checked(X, Y, dtype=bool, ensure_all_finite=ensure_all_finite)
            D = of_truth_values(metric, X, Y, **kwds)
            if X is Y and effective_n_jobs(n_jobs) == 1:  # else SciPy is given two matrices
                np.fill_diagonal(D, 0)
            return D
        X, Y = checked(X, Y, ensure_all_finite=ensure_all_finite)
        if X is Y and effective_n_jobs(n_jobs) > 1 and not _metrics.is_finite(X):
            Y = X.copy()  # SciPy is given two matrices, and a row with NaN is not 0 from itself
        return _as_jobs_do(_by_name(metric, X, Y, kwds), X, Y, n_jobs)


def _by_name(metric: str, X: Any, Y: Any, kwds: dict[str, Any]) -> np.ndarray:
    kwds = kwds | stock._precompute_metric_params(X, Y, metric=metric, **kwds)
    resolved = _metrics.resolve(metric, X, Y, kwds)
    if resolved is None:
        return stock.pairwise_distances(X, Y, metric, **kwds)
    D = pairs(resolved.metric, resolved.X, resolved.Y, **resolved.params)
    if metric == "mahalanobis" and not (_metrics.is_finite(X) and _metrics.is_finite(Y)):
        _metrics.correct_infinite(D, X, Y, kwds["VI"])
    if metric == "correlation":
        # Rows without a direction: SciPy divides by zero, except on the diagonal.
        D[~resolved.X.any(axis=1)] = np.nan
        D[:, ~resolved.Y.any(axis=1)] = np.nan
        if X is Y:
            np.fill_diagonal(D, 0)
    return D


def _as_jobs_do(D: np.ndarray, X: Any, Y: Any, n_jobs: int | None) -> np.ndarray:
    """In the dtype of the rows where scikit-learn has several jobs write to one array."""
    if n_jobs is None or D.dtype == np.float32 or effective_n_jobs(n_jobs) == 1:
        return D
    dtypes = {getattr(Z, "dtype", None) for Z in (X, Y) if Z is not None}
    return D.astype(np.float32) if dtypes == {np.dtype(np.float32)} else D


@replaces(stock.pairwise_distances_chunked)
def pairwise_distances_chunked(
    X, Y=None, *, reduce_func=None, metric="euclidean", n_jobs=None, working_memory=None, **kwds
):
    """Distances of all pairs of rows, some rows at a time, reduced as they come.

    Examples
    --------
    >>> import numpy as np
    >>> from fastml.metrics.pairwise import pairwise_distances_chunked
    >>> X = np.arange(6.0).reshape(-1, 1)
    >>> sums = pairwise_distances_chunked(X, reduce_func=lambda D, start: D.sum(axis=1))
    >>> np.concatenate(list(sums))
    array([15., 11.,  9.,  9., 11., 15.])
    """
    n = _num_samples(X)
    if metric == "precomputed":
        slices = iter((slice(0, n),))
    else:
        Y = X if Y is None else Y
        rows = get_chunk_n_rows(
            row_bytes=8 * _num_samples(Y), max_n_rows=n, working_memory=working_memory
        )
        slices = gen_batches(n, rows)
    kwds = kwds | stock._precompute_metric_params(X, Y, metric=metric, **kwds)
    for rows in slices:
        here = X if rows == slice(0, n) else X[rows]
        D = pairwise_distances(here, Y, metric=metric, n_jobs=n_jobs, **kwds)
        if reduce_func is not None:
            length = D.shape[0]
            D = reduce_func(D, rows.start)
            stock._check_chunk_size(D, length)
        yield D


def _kernel_refusal(
    X: Any,
    Y: Any = None,
    metric: Any = "linear",
    *,
    filter_params: Any = False,
    n_jobs: Any = None,
    **kwds: Any,
) -> Unsupported | None:
    if callable(metric) and not _is_kernel_object(metric):
        return function_refusal(metric, X, Y, kwds)
    return None


def _is_kernel_object(metric: Any) -> bool:
    from sklearn.gaussian_process.kernels import Kernel

    return isinstance(metric, Kernel)


def of_kernel_object(kernel: Any, X: Any, Y: Any, **kwds: Any) -> np.ndarray:
    try:
        return kernel(X, Y, **kwds)
    except (TypeError, ValueError) as error:
        if issparse(X) or issparse(Y):
            raise TypeError(f"{kernel} takes no sparse rows: pass X.toarray()") from error
        raise


@replaces(
    stock.pairwise_kernels,
    unless=_kernel_refusal,
    constraints={"metric": KERNEL},
)
def pairwise_kernels(X, Y=None, metric="linear", *, filter_params=False, n_jobs=None, **kwds):
    """The Gram matrix of a kernel, by name, by a function of two rows or by a kernel object.

    A function is compiled by Numba, if it can be and there are enough pairs; see `fastml.jit`.
    Beyond scikit-learn's, `metric` may be "intersection" or "normalized_intersection".

    Examples
    --------
    >>> from fastml.metrics.pairwise import pairwise_kernels
    >>> pairwise_kernels([[0, 0], [1, 1]], metric="poly", degree=2)
    array([[1., 1.],
           [1., 4.]])
    """
    if metric == "precomputed":
        return check_pairwise_arrays(X, Y, precomputed=True)[0]
    if _is_kernel_object(metric):
        return of_kernel_object(metric, X, X if Y is None else Y, **kwds)
    if callable(metric):
        return by_function(stock.pairwise_kernels, metric, X, Y, n_jobs, kwds)
    if filter_params:
        kwds = {name: kwds[name] for name in kwds if name in stock.KERNEL_PARAMS.get(metric, ())}
    with jobs(None if n_jobs is None else effective_n_jobs(n_jobs)):
        return _as_jobs_do(KERNELS[metric](X, Y, **kwds), X, Y, n_jobs)
