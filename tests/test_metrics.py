"""fastml.metrics beside scikit-learn's: results, dtypes, errors, and where calls end up."""

import numpy as np
import pytest
import sklearn.metrics
from scipy import sparse
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.metrics import pairwise as stock
from sklearn.utils._param_validation import InvalidParameterError

import fastml
from fastml._runtime import sparse as _sparse
from fastml.gaussian_process.kernels import check_mercer
from fastml.metrics import pairwise as ours

KERNELS = ("additive_chi2", "chi2", "cosine", "laplacian", "linear", "poly", "rbf", "sigmoid")
DISTANCES = ("braycurtis", "canberra", "chebyshev", "cityblock", "correlation", "cosine",
             "euclidean", "hamming", "mahalanobis", "matching", "minkowski", "nan_euclidean",
             "seuclidean", "sqeuclidean")  # fmt: skip
DTYPES = (np.float32, np.float64)


def rows(n, d=6, dtype=np.float64, seed=0):
    X = np.random.default_rng(seed).random((n, d))
    X[X < 0.2] = 0
    return X.astype(dtype)


def same(actual, expected, dtype=np.float64, tolerance=1e-10):
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    tolerance = 2e-5 if dtype == np.float32 else tolerance
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


@pytest.fixture(autouse=True)
def strict():
    with fastml.config_context(strict=True):
        yield


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("metric", KERNELS)
def test_kernels(metric, dtype, n_jobs):
    X, Y = rows(30, dtype=dtype), rows(20, dtype=dtype, seed=1)
    for args in ((X,), (X, X), (X, Y), (X.tolist(), Y)):
        expected = stock.pairwise_kernels(*args, metric=metric, n_jobs=n_jobs)
        same(ours.pairwise_kernels(*args, metric=metric, n_jobs=n_jobs), expected, dtype)


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("metric", DISTANCES)
def test_distances(metric, dtype, n_jobs):
    X, Y = rows(30, dtype=dtype), rows(20, dtype=dtype, seed=1)
    given = {
        "mahalanobis": {"VI": np.linalg.inv(np.cov(rows(50).T))},
        "seuclidean": {"V": rows(50).var(axis=0)},
        "minkowski": {"p": 2.5, "w": np.arange(6.0)},
        "chebyshev": {"w": np.arange(6.0) % 2},
        "braycurtis": {"w": np.arange(6.0)},
        "correlation": {"w": np.arange(6.0) + 1},
        "sqeuclidean": {"w": np.arange(6.0)},
    }.get(metric, {})
    for args, kwds in (((X,), {}), ((X, Y), given), ((Y[::2, ::-1],), given)):
        expected = stock.pairwise_distances(*args, metric=metric, n_jobs=n_jobs, **kwds)
        actual = ours.pairwise_distances(*args, metric=metric, n_jobs=n_jobs, **kwds)
        # Where it has jobs, scikit-learn's diagonal is what rounding leaves.
        same(actual, expected, dtype, 1e-7 if metric == "nan_euclidean" else 1e-10)


@pytest.mark.parametrize("p", [0.5, 1, 1.5, 2, 3, 7, np.inf])
def test_minkowski(p):
    X, Y = rows(30), rows(20, seed=1)
    expected = stock.pairwise_distances(X, Y, metric="minkowski", p=p)
    same(ours.pairwise_distances(X, Y, metric="minkowski", p=p), expected)


@pytest.mark.parametrize("as_sparse", [sparse.csr_array, sparse.csr_matrix, sparse.csc_array])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["linear_kernel", "rbf_kernel", "laplacian_kernel",
                                  "cosine_similarity", "euclidean_distances",
                                  "manhattan_distances", "cosine_distances"])  # fmt: skip
def test_sparse_rows(name, dtype, as_sparse):
    X, Y = rows(30, dtype=dtype), rows(20, dtype=dtype, seed=1)
    A, B = as_sparse(X), as_sparse(Y)
    for args in ((A,), (A, B), (A, Y), (X, B)):
        same(getattr(ours, name)(*args), getattr(stock, name)(*args), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["linear_kernel", "cosine_similarity"])
@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix, sparse.csc_matrix])
def test_sparse_results(kind, name, dtype):
    X, Y = (
        kind(np.where(rows(n, 30, dtype, n) < 0.9, 0, 1 + rows(n, 30, dtype))) for n in (70, 40)
    )
    X = kind(X.astype(dtype))
    for args in ((X,), (X, Y.astype(dtype)), (kind((3, 30), dtype=dtype), X)):
        actual, expected = (getattr(m, name)(*args, dense_output=False) for m in (ours, stock))
        assert type(actual) is type(expected)
        assert actual.indices.dtype == expected.indices.dtype
        same(actual.toarray(), expected.toarray(), dtype)
    with fastml.config_context(threads=1):
        one = getattr(ours, name)(X, dense_output=False)
    np.testing.assert_array_equal(
        one.toarray(), getattr(ours, name)(X, dense_output=False).toarray()
    )
    assert isinstance(getattr(ours, name)(X, X.toarray(), dense_output=False), np.ndarray)


def test_sparse_rows_that_are_not_canonical():
    A = sparse.csr_array((np.ones(4), [2, 0, 0, 1], [0, 3, 4]), shape=(2, 3))
    before = A.copy()
    same(ours.manhattan_distances(A), stock.manhattan_distances(A.toarray()))
    np.testing.assert_array_equal(A.indices, before.indices)
    A = sparse.csr_array(rows(5))
    A.indices, A.indptr = A.indices.astype(np.int64), A.indptr.astype(np.int64)
    same(ours.rbf_kernel(A), stock.rbf_kernel(A))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("metric", ["euclidean", "l1", "cosine", "chebyshev", "minkowski",
                                    "canberra", "braycurtis", "hamming", "matching",
                                    "nan_euclidean"])  # fmt: skip
@pytest.mark.parametrize("lowest", [0.01, -0.5])
def test_argmin(metric, lowest, axis):
    X, Y = rows(300) + lowest, rows(200, seed=1) + lowest
    X[0] = Y[3] = 0  # of what is nothing by both, braycurtis is 0
    expected = stock.pairwise_distances_argmin_min(X, Y, axis=axis, metric=metric)
    index, distance = ours.pairwise_distances_argmin_min(X, Y, axis=axis, metric=metric)
    np.testing.assert_array_equal(index, expected[0])
    same(distance, expected[1])
    index = ours.pairwise_distances_argmin(X, Y, axis=axis, metric=metric)
    np.testing.assert_array_equal(index, expected[0])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize(("more_of_X", "more_of_Y"), [(0, None), (None, 0), (3, None), (1, 2)])
def test_argmin_by_norms_that_are_given(more_of_X, more_of_Y, squared, axis, dtype):
    X, Y = rows(23, dtype=dtype), rows(17, dtype=dtype, seed=1)
    taken = (X, Y) if axis == 1 else (Y, X)  # scikit-learn does not turn the norms
    kwds = {"squared": squared}
    for name, Z, more in zip("XY", taken, (more_of_X, more_of_Y), strict=True):
        if more is not None:
            norms = (Z.astype(float) ** 2).sum(axis=1)
            kwds[f"{name}_norm_squared"] = norms + more * np.arange(len(Z))
    options = {"axis": axis, "metric_kwargs": kwds}
    expected = stock.pairwise_distances_argmin_min(X, Y, axis=axis, metric_kwargs=dict(kwds))
    with fastml.config_context(strict=True):
        index, distance = ours.pairwise_distances_argmin_min(X, Y, **options)
    np.testing.assert_array_equal(index, expected[0])
    np.testing.assert_allclose(distance, expected[1], rtol=1e-5 if dtype == np.float32 else 1e-12)


@pytest.mark.parametrize("weights", [np.arange(6.0), np.ones(6), [0, 1, 0, 2, 0.5, 1e-9]])
def test_argmin_of_weighted_columns_that_differ(weights):
    X, Y = (np.round(rows(80, seed=seed)) for seed in (0, 1))
    options = {"metric": "hamming", "metric_kwargs": {"w": weights}}
    with fastml.config_context(strict=True):
        index, distance = ours.pairwise_distances_argmin_min(X, Y, **options)
    expected = stock.pairwise_distances_argmin_min(X, Y, **options)
    np.testing.assert_allclose(distance, expected[1], rtol=1e-12)
    table = stock.pairwise_distances(X, Y, metric="hamming", w=weights)
    np.testing.assert_allclose(table[np.arange(80), index], table.min(axis=1), rtol=1e-12)


@pytest.mark.parametrize("as_sparse", [(True, True), (True, False), (False, True)])
@pytest.mark.parametrize(
    ("metric", "params"),
    [("canberra", {}), ("braycurtis", {}), ("chebyshev", {}), ("minkowski", {"p": 3})],
)
def test_argmin_of_sparse_rows_in_blocks(metric, params, as_sparse, monkeypatch):
    monkeypatch.setattr(_sparse, "BLOCK", 6 * 70)
    X, Y = rows(300), rows(200, seed=1)
    Y[150:] = Y[:50]  # the first of equals, whatever the block
    given = [sparse.csr_array(Z) if s else Z for Z, s in zip((X, Y), as_sparse, strict=True)]
    for axis in (0, 1):
        options = {"metric": metric, "axis": axis, "metric_kwargs": params}
        # Of dense rows: scikit-learn's distances are wrong where only one of them is sparse.
        expected = stock.pairwise_distances_argmin_min(X, Y, **options)
        index, distance = ours.pairwise_distances_argmin_min(*given, **options)
        np.testing.assert_array_equal(index, expected[0])
        same(distance, expected[1])


def test_metrics_that_scikit_learn_lists_but_does_not_know():
    X = rows(9)
    for module in (ours, stock):
        with pytest.raises(ValueError, match="Unknown Distance Metric"):
            module.pairwise_distances(X, metric="wminkowski", w=np.ones(X.shape[1]))
        with pytest.raises(TypeError):
            module.pairwise_distances_argmin(X, X, metric="seuclidean")


def test_directions_of_rows_whose_squares_nearly_vanish():
    """Scikit-learn takes such rows for zero."""
    X = rows(40) - 0.5
    for scale in (1e-157, 1e150):
        same(ours.cosine_similarity(scale * X), stock.cosine_similarity(X), tolerance=1e-5)
    for scale in (1e-300, 1e-157, 1e150, 1e300):
        distances = ours.pairwise_distances(scale * X, metric="correlation")
        same(distances, stock.pairwise_distances(X, metric="correlation"), tolerance=1e-5)


@pytest.mark.parametrize(
    ("dtype", "scale", "as_sparse"),
    # The norms of sparse rows are double: there are none that single precision cannot tell.
    [(np.float64, 1e200, False), (np.float64, 1e200, True), (np.float32, 1e30, False)],
)
def test_rows_whose_squares_are_infinite_are_orthogonal_to_all(dtype, scale, as_sparse):
    X = (np.array([[1.0, -1], [1, 1], [2, 3], [1e-3, 1]]) * scale).astype(dtype)
    X[2] = 1, 2
    X = sparse.csr_matrix(X) if as_sparse else X
    for name in ("cosine_similarity", "cosine_distances"):
        for others in ((), (X.copy(),)):
            found = getattr(ours, name)(X, *others)
            expected = getattr(stock, name)(X, *others)
            np.testing.assert_array_equal(found[[0, 1, 3]], expected[[0, 1, 3]])
            np.testing.assert_allclose(found[2], expected[2], atol=1e-7)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("metric", "params"),
    [
        ("canberra", None),
        ("braycurtis", None),
        ("chebyshev", None),
        ("minkowski", {"p": 3}),
        ("minkowski", {"p": 1.5, "w": np.arange(1.0, 501)}),
        ("minkowski", {"p": 2, "w": np.arange(1.0, 501)}),
    ],
)
def test_argmin_of_rows_that_are_nearly_empty(metric, params, dtype):
    draws = np.random.default_rng(0)
    X, Y = (
        sparse.random_array((n, 500), density=0.01, format="csr", rng=draws, dtype=dtype)
        for n in (70, 90)
    )
    X.data -= 0.5
    Y.data[::7] = 0  # stored all the same
    Y = sparse.vstack([Y, X[:20], Y[:20]], format="csr")
    for axis in (0, 1):
        options = {"metric": metric, "axis": axis, "metric_kwargs": params}
        expected = stock.pairwise_distances_argmin_min(X.toarray(), Y.toarray(), **options)
        index, distance = ours.pairwise_distances_argmin_min(X, Y, **options)
        same(distance, expected[1], dtype)
        # Rows without a common column are 1 apart by braycurtis, to rounding in scikit-learn.
        exact = np.ones(len(index), bool) if metric != "braycurtis" else expected[1] < 1
        np.testing.assert_array_equal(index[exact], expected[0][exact])


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize(
    ("metric", "params"),
    [
        ("braycurtis", {}),
        ("canberra", {}),
        ("canberra", {"w": np.arange(40.0)}),
        ("chebyshev", {}),
        ("correlation", {}),
        ("hamming", {}),
        ("hamming", {"w": np.arange(40.0)}),
        ("mahalanobis", {"VI": np.diag(np.arange(1.0, 41)) + 0.25}),
        ("matching", {}),
        ("minkowski", {"p": 1}),
        ("minkowski", {"p": 2}),
        ("minkowski", {"p": 3}),
        ("minkowski", {"p": np.inf}),
        ("seuclidean", {"V": np.arange(1.0, 41)}),
        ("sqeuclidean", {}),
        ("sqeuclidean", {"w": np.arange(40.0)}),
    ],
)
def test_rows_that_are_not_finite(metric, params, n_jobs):
    X, Y = rows(20, 40), rows(10, 40, seed=1)
    X[3] = X[4]
    X[0, 0], X[1, 1], Y[2, 1], Y[3] = np.nan, np.inf, np.inf, np.nan
    options = {"metric": metric, "ensure_all_finite": False, "n_jobs": n_jobs, **params}
    with np.errstate(invalid="ignore"):
        for args in ((X, Y), (X,)):
            actual = ours.pairwise_distances(*args, **options)
            same(actual, stock.pairwise_distances(*args, **options))


@pytest.mark.parametrize("metric", ["canberra", "hamming", "matching"])
def test_weights(metric):
    X = np.random.default_rng(0).integers(3, size=(70, 9)).astype(float)
    for args in ((X,), (X, X[5:20] + [0, 1, 0] * 3)):
        for w in (np.arange(9), np.ones(9), np.eye(9)[4]):
            actual = ours.pairwise_distances(*args, metric=metric, w=w)
            same(actual, stock.pairwise_distances(*args, metric=metric, w=w))


def test_haversine_near_and_far():
    rng = np.random.default_rng(0)
    X = rng.uniform([-np.pi / 2, -np.pi], [np.pi / 2, np.pi], size=(300, 2))
    near, antipodes = X + 1e-9 * rng.normal(size=X.shape), X * [-1, 1] + [0, np.pi]
    for Y in (X[::-1], near, X + np.array([0, 6 * np.pi]), X + np.array([0, 2e7 * np.pi])):
        expected = stock.haversine_distances(X, Y)
        np.testing.assert_allclose(ours.haversine_distances(X, Y), expected, rtol=1e-12)
    expected = stock.haversine_distances(X, antipodes)  # there it is known to half the digits
    np.testing.assert_allclose(ours.haversine_distances(X, antipodes), expected, rtol=1e-7)


@pytest.mark.parametrize("shape", [(1,), (20,), (30, 1), (30, 20)])
@pytest.mark.parametrize("name", ["chi2", "laplacian", "polynomial", "rbf", "sigmoid"])
def test_gamma_of_each_pair(name, shape):
    X, Y, gamma = rows(30), rows(20, seed=1), np.random.default_rng(2).random(shape)
    actual, expected = (getattr(m, f"{name}_kernel")(X, Y, gamma=gamma) for m in (ours, stock))
    same(actual, expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "norms",
    [{"X_norm_squared": np.ones(30)}, {"X_norm_squared": [2] * 30, "squared": True},
     {"Y_norm_squared": np.ones((1, 20))}, {"Y_norm_squared": np.ones(20, np.float32)}],
    ids=["X", "list", "Y", "float32"])  # fmt: skip
def test_norms_are_taken_at_their_word(norms, dtype):
    X, Y = rows(30, dtype=dtype), rows(20, dtype=dtype, seed=1)
    same(ours.euclidean_distances(X, Y, **norms), stock.euclidean_distances(X, Y, **norms), dtype)
    if "Y_norm_squared" not in norms:
        same(ours.euclidean_distances(X, **norms), stock.euclidean_distances(X, **norms), dtype)


def test_chunks():
    X = rows(100)
    chunks = ours.pairwise_distances_chunked(X, metric="mahalanobis", working_memory=0.01)
    D = np.concatenate(list(chunks))
    same(D, stock.pairwise_distances(X, metric="mahalanobis"))
    with pytest.raises(ValueError, match="Expected same length as input"):
        list(ours.pairwise_distances_chunked(X, reduce_func=lambda D, start: D[1:]))


@pytest.mark.parametrize("missing", [np.nan, -1.0])
def test_missing_values(missing):
    X = rows(20)
    X[X == 0] = missing
    X[3] = missing
    before = X.copy()
    expected = stock.nan_euclidean_distances(X, missing_values=missing)
    # scikit-learn's own rounding leaves up to 1e-8 where rows share one coordinate.
    actual = ours.nan_euclidean_distances(X, missing_values=missing)
    np.testing.assert_allclose(actual, expected, atol=1e-7)
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize("V", [rows(20, 1)[:, 0], rows(20, 3)])
@pytest.mark.parametrize("metric", [*KERNELS, "intersection", "normalized_intersection",
                                    RBF(), RBF() + WhiteKernel()])  # fmt: skip
def test_gram_apply(metric, V):
    X, Y = rows(30), rows(20, seed=1)
    if isinstance(metric, str) and metric.endswith("intersection"):
        K = ours.intersection_kernel(X, Y, normalize=metric != "intersection")
    else:
        K = stock.pairwise_kernels(X, Y, metric=metric)
    same(ours.gram_apply(X, Y, V, metric=metric), K @ V)


def test_gram_apply_refuses():
    X = rows(5)
    with pytest.raises(ValueError, match="V has 4 rows"):
        ours.gram_apply(X, X, np.ones(4))
    with pytest.raises(TypeError, match="no parameter 'degree'"):
        ours.gram_apply(X, X, np.ones(5), metric="rbf", degree=2)


def test_kernel_objects_see_both_matrices():
    X, kernel = rows(5), RBF() + WhiteKernel()
    expected = stock.pairwise_kernels(X, metric=kernel)
    same(ours.pairwise_kernels(X, metric=kernel), expected)


def test_functions_of_two_rows(caplog):
    def worst(x, y, scale=1.0):
        return scale * np.max(np.abs(x - y))

    caplog.set_level("INFO", "fastml.dispatch")
    for n, strict, native in ((10, False, False), (10, True, True), (600, False, True)):
        X = rows(n, 3)
        expected = ours.pairwise_distances(X, metric="chebyshev")
        with fastml.config_context(strict=strict):
            same(ours.pairwise_distances(X, metric=worst), expected)
            assert caplog.records[-1].native == native
            same(ours.pairwise_kernels(X, X[:5], metric=worst, scale=2.0), 2 * expected[:, :5])


@pytest.mark.parametrize(
    ("name", "args", "kwds"),
    [
        ("rbf_kernel", (rows(3, 4), rows(3, 5)), {}),
        ("rbf_kernel", (np.full((2, 2), np.nan),), {}),
        ("rbf_kernel", (np.ones((0, 2)),), {}),
        ("rbf_kernel", (np.ones(3),), {}),
        ("rbf_kernel", (rows(3),), {"gamma": -1.0}),
        ("chi2_kernel", (rows(3), -rows(3)), {}),
        ("additive_chi2_kernel", (-rows(3),), {}),
        ("haversine_distances", (rows(3, 3),), {}),
        ("pairwise_distances", (rows(3),), {"metric": "nothing"}),
        ("pairwise_distances", (sparse.csr_array(rows(3)),), {"metric": "chebyshev"}),
        ("pairwise_distances", (-rows(3, 3), None), {"metric": "precomputed"}),
        ("pairwise_kernels", (rows(3, 2),), {"metric": "precomputed"}),
        ("pairwise_distances_argmin", (rows(3), rows(3)), {"axis": 2}),
        ("euclidean_distances", (rows(3),), {"X_norm_squared": np.ones(7)}),
    ],
)
def test_errors_are_scikit_learns(name, args, kwds):
    with pytest.raises(Exception) as expected:
        getattr(stock, name)(*args, **kwds)
    with pytest.raises(type(expected.value)) as actual:
        getattr(ours, name)(*args, **kwds)
    assert str(actual.value) == str(expected.value)


def test_huge_and_tiny_values():
    for scale in (1e-200, 1e-150, 1e150):
        X = rows(20) * scale
        same(ours.manhattan_distances(X) / scale, stock.manhattan_distances(X) / scale)
        assert np.all(np.isfinite(ours.rbf_kernel(X)))
    X = np.ones((5, 40)) * 1e6
    X[:, 0] += np.arange(5) * 1e-3  # dots alone would lose this
    np.testing.assert_allclose(ours.euclidean_distances(X)[0], X[:, 0] - X[0, 0], rtol=1e-12)


def test_patching_reaches_both_modules():
    with fastml.patched():
        assert sklearn.metrics.pairwise_distances is ours.pairwise_distances
        assert stock.pairwise_distances is ours.pairwise_distances
        assert stock.PAIRWISE_KERNEL_FUNCTIONS["rbf"] is ours.rbf_kernel
    assert stock.PAIRWISE_KERNEL_FUNCTIONS["rbf"] is not ours.rbf_kernel
    keys = fastml.replacements()
    assert ("sklearn.metrics", "pairwise_distances") in keys
    assert ("sklearn.metrics.pairwise", "rbf_kernel") in keys


def test_intersection_is_known_by_name():
    X = np.random.default_rng(0).random((6, 3))
    for name, normalize in (("intersection", False), ("normalized_intersection", True)):
        expected = ours.intersection_kernel(X, X[:2], normalize=normalize)
        for rows in (X, sparse.csr_matrix(X)):
            K = ours.pairwise_kernels(rows, rows[:2], name, filter_params=True, gamma=2)
            np.testing.assert_allclose(K, expected)
    assert check_mercer("intersection", X)
    with pytest.raises(TypeError, match="gamma"):
        ours.pairwise_kernels(X, metric="intersection", gamma=2)


@pytest.mark.parametrize("metric", ["canberra", "mahalanobis"])
def test_no_rows_are_refused_as_by_scikit_learn(metric):
    with pytest.raises(InvalidParameterError, match="'X' parameter of pairwise_distances"):
        ours.pairwise_distances(None, metric=metric)
    with pytest.raises(ValueError, match="Expected 2D array"):
        ours.pairwise_distances([1.0, 2.0], metric=metric)
