"""Initial centers for k-means."""

from numbers import Integral
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.cluster import kmeans_plusplus as stock_kmeans_plusplus
from sklearn.utils import assert_all_finite, check_array, check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import _check_sample_weight

from fastml._native import kmeans as native
from fastml._native.rows import Rows
from fastml._runtime.dispatch import accelerated
from fastml._runtime.docs import documented_by
from fastml._runtime.parameters import validate_params
from fastml._runtime.sparse import with_short_indices
from fastml._runtime.threads import n_threads


@documented_by(stock_kmeans_plusplus)
@accelerated
@validate_params(
    {
        "X": ["array-like", "sparse matrix"],
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "sample_weight": ["array-like", None],
        "x_squared_norms": ["array-like", None],
        "random_state": ["random_state"],
        "n_local_trials": [Interval(Integral, 1, None, closed="left"), None],
    },
    prefer_skip_nested_validation=True,
)
def kmeans_plusplus(
    X,
    n_clusters,
    *,
    sample_weight=None,
    x_squared_norms=None,
    random_state=None,
    n_local_trials=None,
):
    """Initial centers by greedy k-means++, from the same random draws as scikit-learn.

    `x_squared_norms` is checked and otherwise not needed.

    Examples
    --------
    >>> import numpy as np
    >>> from fastml.cluster import kmeans_plusplus
    >>> X = np.array([[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]])
    >>> centers, indices = kmeans_plusplus(X, n_clusters=2, random_state=0)
    >>> centers
    array([[10,  2],
           [ 1,  0]])
    >>> indices
    array([3, 2])
    """
    data = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32], order="C")
    if issparse(data):
        data = with_short_indices(data)
    w = weights_of(sample_weight, data)
    if data.shape[0] < n_clusters:
        raise ValueError(f"n_samples={data.shape[0]} should be >= n_clusters={n_clusters}.")
    if x_squared_norms is not None:
        norms = check_array(x_squared_norms, dtype=data.dtype, ensure_2d=False)
        if norms.shape[0] != data.shape[0]:
            raise ValueError(
                f"The length of x_squared_norms {norms.shape[0]} should be equal to the length of "
                f"n_samples {data.shape[0]}."
            )
    indices = greedy_seeds(
        centred(data)[0],
        w,
        n_clusters,
        check_random_state(random_state),
        n_local_trials,
    )
    # The rows as they were given: integers stay integers.
    given = X if issparse(X) or isinstance(X, np.ndarray) else data
    return given.tocsr()[indices].toarray() if issparse(given) else given[indices], indices


def greedy_seeds(
    rows: Rows,
    w: np.ndarray | None,
    n_clusters: int,
    random_state: np.random.RandomState,
    n_local_trials: int | None = None,
) -> np.ndarray:
    """The rows that greedy k-means++ picks (Arthur and Vassilvitskii, 2007).

    Draws, sums and comparisons are made in the order and precision of scikit-learn's, because
    from the first pick that differs on, everything differs.
    """
    n_trials = n_local_trials or 2 + int(np.log(n_clusters))
    indices = np.empty(n_clusters, dtype=int)
    indices[0] = random_state.choice(rows.n, p=draw_probabilities(w, rows.n, rows.dtype))

    seeds = native.Seeds(rows, w, sketch_pays(rows, n_clusters, n_trials), n_threads())
    precision = rows.dtype.type
    potential = precision(seeds.accept(indices[0]))
    candidates, gain = np.empty(n_trials, dtype=np.intp), np.empty(n_trials)
    for c in range(1, n_clusters):
        targets = random_state.uniform(size=n_trials) * potential
        ascending = targets.argsort()
        found = np.empty_like(candidates)
        seeds.search(targets[ascending], found)
        candidates[ascending] = found
        seeds.gains(candidates, gain)
        winner = gain.argmax()
        indices[c] = candidates[winner]
        potential = precision(seeds.accept(indices[c], winner))
    return indices


def sketch_pays(rows: Rows, n_clusters: int, n_trials: int) -> bool:
    """Whether tries against 8-bit codes make up for coding the rows.

    They do for rows that do not stay in cache, of enough columns to make one try costly.
    """
    if issparse(rows.X) or n_trials > native.MAX_SKETCHED:
        return False
    return rows.d > 9 and n_clusters >= 16 and rows.n * rows.d >= 1 << 18


def draw_probabilities(w: np.ndarray | None, n: int, dtype: np.dtype) -> np.ndarray:
    """Probabilities for `RandomState.choice`, computed as scikit-learn computes them."""
    weight = np.ones(n, dtype) if w is None else w
    return weight / weight.sum()


def weights_of(sample_weight: Any, X: Any, **options: Any) -> np.ndarray | None:
    """Validated weights as kernels take them, or None for equal ones."""
    if sample_weight is None:
        return None
    w = _check_sample_weight(sample_weight, X, dtype=X.dtype, **options)
    return np.require(w, requirements="CA")


def centred(X: Any, estimator: Any = None) -> tuple[Rows, np.ndarray]:
    """The rows of `X` about their mean (CSR: as they are), and the variance of every column.

    Nothing is copied: kernels subtract the mean from the rows they load. With an `estimator`,
    whose validation has let them pass, NaN and infinity are refused here.
    """
    rows = Rows(X)
    mean, variance = np.empty(rows.d), np.empty(rows.d)
    native.column_moments(rows, mean, variance, n_threads())
    if estimator is not None and not (np.isfinite(mean).all() and np.isfinite(variance).all()):
        # Or the data are finite but their squares are not.
        name = type(estimator).__name__
        assert_all_finite(X.data if issparse(X) else X, estimator_name=name, input_name="X")
    return rows if issparse(X) else Rows(X, mean.astype(X.dtype)), variance


def dense_rows(rows: Rows, index: Any) -> np.ndarray:
    """Some rows, less the shift, as a new array."""
    if issparse(rows.X):
        return rows.X[index].toarray()
    return rows.X[index] if rows.shift is None else rows.X[index] - rows.shift
