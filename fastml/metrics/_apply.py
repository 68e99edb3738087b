"""Gram matrices times other matrices, without the former."""

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_array
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import _num_samples

from fastml._native import pairwise as native
from fastml._runtime.dispatch import accelerated
from fastml._runtime.parameters import validate_params
from fastml.metrics._dispatch import pairwise_kernels
from fastml.metrics._kernels import check_histograms, scale_of
from fastml.metrics._rows import checked, left_sparse, measure_of, rows_of, threads

# Their parameters with defaults; gamma is 1 / n_features by default, but 1 for chi2.
KERNELS = {
    "additive_chi2": {},
    "chi2": {"gamma": 1.0},
    "cosine": {},
    "intersection": {},
    "laplacian": {"gamma": None},
    "linear": {},
    "normalized_intersection": {},
    "polynomial": {"gamma": None, "coef0": 1, "degree": 3},
    "rbf": {"gamma": None},
    "sigmoid": {"gamma": None, "coef0": 1},
}
BLOCK = 1 << 21  # entries of a Gram matrix that are formed at once for kernels of other kinds


@accelerated
@validate_params(
    {
        "X": ["array-like", "sparse matrix"],
        "Y": ["array-like", "sparse matrix", None],
        "V": ["array-like"],
        "metric": [StrOptions({*KERNELS, "poly"}), callable],
    },
    prefer_skip_nested_validation=True,
)
def gram_apply(X, Y, V, metric="rbf", **params):
    """The Gram matrix of a kernel times `V`, one block of it at a time.

    Memory is that of the result, of a copy of some thousand rows of `Y` and of one block of the
    matrix a thread.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples_X, n_features)
        A row for each row of the result.

    Y : {array-like, sparse matrix} of shape (n_samples_Y, n_features) or None
        A row for each row of `V`; X if None.

    V : array-like of shape (n_samples_Y,) or (n_samples_Y, n_columns)
        What the matrix is multiplied by.

    metric : str, callable or kernel object, default="rbf"
        As in `pairwise_kernels`.

    **params
        Parameters of the kernel.

    Returns
    -------
    product : ndarray of shape (n_samples_X,) or (n_samples_X, n_columns)
        In the dtype that the rows have in common. Sums over blocks are added in double.

    Examples
    --------
    >>> from fastml.metrics.pairwise import gram_apply
    >>> gram_apply([[0, 0], [1, 1]], [[1, 0], [1, 2]], [1.0, 10.0], metric="linear")
    array([ 0., 31.])
    """
    metric = "polynomial" if isinstance(metric, str) and metric == "poly" else metric
    if callable(metric):
        return _by_blocks(X, Y, V, metric, params)
    unknown = set(params) - set(KERNELS[metric])
    if unknown:
        raise TypeError(f"the {metric} kernel has no parameter {min(unknown)!r}")
    if metric in ("additive_chi2", "chi2"):
        X, Y = check_histograms(X, Y)
    elif metric.endswith("intersection"):
        X, Y = check_histograms(X, Y, accept_sparse="csr")
    else:
        X, Y = checked(X, Y)
    V = check_array(V, dtype=X.dtype, order="C", ensure_2d=False, input_name="V")
    _check_length(V, Y.shape[0])
    params = KERNELS[metric] | params
    if "gamma" in params:
        params["gamma"] = scale_of(params["gamma"], X)
    x, y = map(rows_of, left_sparse(X, Y))
    columns = V.reshape(len(V), -1)
    out = np.empty((x.n, columns.shape[1]))
    native.gram_apply(x, y, measure_of(metric, **params), columns, out, threads())
    return out.astype(X.dtype, copy=False).reshape(x.n, *V.shape[1:])


def _check_length(V, n):
    if len(V) != n:
        raise ValueError(f"V has {len(V)} rows, but there are {n} columns to multiply")


def _by_blocks(X, Y, V, metric, params):
    """For kernels that are objects or functions."""
    Y = X if Y is None else Y
    X = X.tocsr() if issparse(X) else np.asarray(X)
    V = np.asarray(V)
    _check_length(V, _num_samples(Y))
    rows = max(1, BLOCK // max(1, len(V)))
    blocks = [
        pairwise_kernels(X[i : i + rows], Y, metric, **params) @ V
        for i in range(0, X.shape[0], rows)
    ]
    return np.concatenate(blocks)
