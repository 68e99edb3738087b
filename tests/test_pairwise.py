"""Kernels and distances of pairs of rows: the engine against naive twins."""

import numpy as np
import pytest
from fastml._native.rows import Rows
from scipy import sparse

from fastml._native import pairwise as native

DTYPES = (np.float32, np.float64)
GAMMA, COEF0 = 0.3, 0.7
SPARSE = ("linear", "polynomial", "sigmoid", "cosine", "rbf", "laplacian", "intersection",
          "normalized_intersection", "euclidean", "sqeuclidean", "manhattan",
          "cosine_distance")  # fmt: skip
ONES = ("rbf", "laplacian", "chi2")
ZEROS = (
    "euclidean",
    "manhattan",
    "chebyshev",
    "minkowski",
    "cosine_distance",
    "relative",
    "canberra",
)
ALL = tuple(name for name in native.Metric.__members__ if name != "haversine")


def measure_of(metric, d):
    # Kernels that fall off with the distance should leave something to compare.
    gamma = GAMMA / d if metric in ("rbf", "laplacian", "chi2", "sigmoid", "polynomial") else 1
    degree = 3 if metric in ("polynomial", "minkowski") else 1
    return native.Measure(metric, gamma, COEF0, degree), gamma, degree


def naive(metric, X, Y, gamma=1.0, degree=3.0):
    """One number from two rows after the other, in double."""
    A, B = X.astype(np.float64), Y.astype(np.float64)
    K = np.array([[naive_pair(metric, x, y, gamma, degree) for y in B] for x in A])
    if metric in ZEROS and X is Y:
        np.fill_diagonal(K, 0)
    return K


def naive_pair(metric, x, y, gamma, degree):
    dot, t = x @ y, np.abs(x - y)
    size = np.sqrt((x @ x) * (y @ y))
    cosine = dot / size if size else 0.0
    both = ~np.isnan(t)
    with np.errstate(divide="ignore", invalid="ignore"):
        chi2 = np.nansum((x - y) ** 2 / (x + y))
        least = np.minimum(x, y).sum()
        return {
            "linear": lambda: dot,
            "polynomial": lambda: (gamma * dot + COEF0) ** degree,
            "sigmoid": lambda: np.tanh(gamma * dot + COEF0),
            "cosine": lambda: cosine,
            "rbf": lambda: np.exp(-gamma * (t @ t)),
            "laplacian": lambda: np.exp(-gamma * t.sum()),
            "chi2": lambda: np.exp(-gamma * chi2),
            "additive_chi2": lambda: -chi2,
            "intersection": lambda: least,
            "normalized_intersection": lambda: (
                least / np.sqrt(x.sum() * y.sum()) if x.any() and y.any() else 0.0
            ),
            "euclidean": lambda: np.sqrt(t @ t),
            "sqeuclidean": lambda: t @ t,
            "manhattan": lambda: t.sum(),
            "chebyshev": lambda: t.max(),
            "minkowski": lambda: (t**degree).sum() ** (1 / degree),
            "cosine_distance": lambda: 1 - cosine,
            "haversine": lambda: 2 * np.arcsin(np.sqrt(
                np.sin((x[0] - y[0]) / 2) ** 2
                + np.cos(x[0]) * np.cos(y[0]) * np.sin((x[1] - y[1]) / 2) ** 2
            )),
            "nan_sqeuclidean": lambda: (t[both] @ t[both]) * (len(t) / both.sum()),
            "nan_euclidean": lambda: np.sqrt((t[both] @ t[both]) * (len(t) / both.sum())),
            "braycurtis": lambda: t.sum() / np.abs(x + y).sum(),
            "relative": lambda: (
                t.sum() / (np.abs(x).sum() + np.abs(y).sum()) if x.any() or y.any() else 0.0
            ),
            "canberra": lambda: np.nansum(t / (np.abs(x) + np.abs(y))),
            "hamming": lambda: (x != y).mean(),
        }[metric]()  # fmt: skip


def rows_of(metric, n, d, dtype, seed=0, kind="dense"):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + 3 * (kind == "dense")
    if metric in ("chi2", "additive_chi2", "intersection", "normalized_intersection"):
        X = np.abs(X)
    if kind != "dense":
        X[rng.random(X.shape) < (0.7 if kind == "csr" else 0.99)] = 0
    elif metric in ("canberra", "hamming", "chi2"):
        X[rng.random(X.shape) < 0.3] = 0
    elif metric.startswith("nan") and d > 1:
        X[rng.random(X.shape) < 0.2] = np.nan
    return X.astype(dtype)


def compute(metric, X, Y=None, threads=1, transposed=False):
    d = X.shape[1]
    measure = measure_of(metric, d)[0]
    x = Rows(X)
    y = x if Y is None else Rows(Y)
    shape = (y.n, x.n) if transposed else (x.n, y.n)
    out = np.full(shape, np.nan, X.dtype)
    native.gram(x, y, measure, Y is None, transposed, out, threads)
    return out


def assert_close(actual, expected, dtype):
    eps = np.finfo(dtype).eps
    scale = np.nanmax(np.abs(expected), initial=1)
    np.testing.assert_allclose(actual, expected, rtol=300 * eps, atol=30 * eps * scale)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("d", [1, 2, 7, 16, 17, 70, 600])  # 600: more than a tile takes at once
@pytest.mark.parametrize("metric", ALL)
def test_dense(metric, d, dtype):
    for n, m in ((1, 1), (3, 50), (101 if d == 7 else 19, 25)):
        X, Y = rows_of(metric, n, d, dtype), rows_of(metric, m, d, dtype, seed=1)
        _, gamma, degree = measure_of(metric, d)
        expected = naive(metric, X, Y, gamma, degree)
        assert_close(compute(metric, X, Y), expected, dtype)
        assert_close(compute(metric, X, Y, transposed=True).T, expected, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ["csr", "sparser"])
@pytest.mark.parametrize("metric", SPARSE)
def test_sparse(metric, kind, dtype):
    for n, m, d in ((1, 1, 1), (9, 70, 40), (41, 19, 300)):
        X, Y = (rows_of(metric, size, d, dtype, seed, kind) for seed, size in enumerate((n, m)))
        _, gamma, degree = measure_of(metric, d)
        expected = naive(metric, X, Y, gamma, degree)
        A, B = sparse.csr_array(X), sparse.csr_array(Y)
        assert_close(compute(metric, A, B), expected, dtype)
        assert_close(compute(metric, A, Y), expected, dtype)
        assert_close(compute(metric, A, Y, transposed=True).T, expected, dtype)
        symmetric = compute(metric, A)
        np.testing.assert_array_equal(symmetric, symmetric.T)
        assert_close(symmetric, naive(metric, X, X, gamma, degree), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("d", [3, 40])
@pytest.mark.parametrize("metric", ALL)
def test_symmetric(metric, d, dtype):
    for n in (1, 5, 95, 96, 97, 211):
        X = rows_of(metric, n, d, dtype)
        _, gamma, degree = measure_of(metric, d)
        K = compute(metric, X)
        np.testing.assert_array_equal(K, K.T)
        if metric in ONES:
            np.testing.assert_array_equal(K.diagonal(), 1)
        if metric in ZEROS:
            np.testing.assert_array_equal(K.diagonal(), 0)
        if n < 95:
            assert_close(K, naive(metric, X, X, gamma, degree), dtype)
        else:
            assert_close(K, compute(metric, X, X.copy()), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("d", [1, 3, 6, 9, 25])
@pytest.mark.parametrize("metric", ["laplacian", "rbf", "polynomial"])
def test_symmetric_and_large(metric, d, dtype):
    """Beyond 32 MiB narrow rows' pairs are taken twice, others' mirror images brought near."""
    n = 2110 if dtype == np.float64 else 2970
    X = rows_of(metric, n, d, dtype)
    X[::100] += 1000  # sums of least values would lose digits
    K = compute(metric, X, threads=2)
    np.testing.assert_array_equal(K, K.T)
    some = np.r_[:7, 1000:1003, n - 5 : n]
    assert_close(K[some], naive(metric, X[some], X, *measure_of(metric, d)[1:]), dtype)


@pytest.mark.parametrize("far", [0, 1e3, 1e9, 1e300])
def test_laplacian_wherever_rows_are(far):
    """Sums of minima lose digits, or overflow, where rows are large beside their distances."""
    X, Y = rows_of("laplacian", 100, 40, np.float64), rows_of("laplacian", 60, 40, np.float64, 1)
    X, Y = X + far, Y + far
    X[::7] *= -1
    Y[5] = X[3]
    Y[6, 0] = -np.inf
    with np.errstate(over="ignore"):
        distance = np.abs(X[:, None].astype(np.longdouble) - Y[None]).sum(axis=2)
    exact = np.exp(-GAMMA / 40 * distance).astype(np.float64)
    K = compute("laplacian", X, Y)
    np.testing.assert_allclose(K, exact, rtol=1e-12, atol=1e-300)
    assert K[3, 5] == 1


@pytest.mark.parametrize("kind", ["dense", "csr", "sparser"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_same_bits_for_any_number_of_threads(dtype, kind):
    X = rows_of("rbf", 700, 60, dtype, kind=kind)
    X = X if kind == "dense" else sparse.csr_array(X)
    for metric in ("rbf", "manhattan", "laplacian", "polynomial"):
        one = compute(metric, X)
        for threads in (2, 5):
            np.testing.assert_array_equal(one, compute(metric, X, threads=threads))


@pytest.mark.parametrize("dtype", DTYPES)
def test_haversine(dtype):
    rng = np.random.default_rng(0)
    X, Y = (rng.uniform(-1.5, 1.5, size=(n, 2)).astype(dtype) for n in (30, 101))
    assert_close(compute("haversine", X, Y), naive("haversine", X, Y), dtype)


@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "cosine_distance"])
def test_nearest(metric, dtype, kind):
    for n, m, d in ((1, 1, 3), (110, 5000, 7), (300, 61, 40)):
        X, Y = rows_of(metric, n, d, dtype, 0, kind), rows_of(metric, m, d, dtype, 1, kind)
        Y[m // 2] = Y[0]  # a tie
        D = compute(metric, X, Y).astype(np.float64)
        as_rows = sparse.csr_array if kind == "csr" else np.asarray
        index, distance = np.empty(n, np.int64), np.empty(n)
        native.nearest(
            Rows(as_rows(X)), Rows(as_rows(Y)), measure_of(metric, d)[0], index, distance, 2
        )
        eps = 100 * np.finfo(dtype).eps
        np.testing.assert_allclose(D[np.arange(n), index], D.min(axis=1), rtol=eps, atol=eps)
        np.testing.assert_allclose(distance, D.min(axis=1), rtol=eps, atol=eps)
        assert (index != m // 2).all() or m == 1


@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("r", [1, 3, 8, 37])
def test_gram_apply(r, dtype, kind):
    for n, m, d in ((1, 1, 3), (110, 5000, 7), (99, 200, 40)):
        X, Y = rows_of("rbf", n, d, dtype, 0, kind), rows_of("rbf", m, d, dtype, 1, kind)
        V = np.random.default_rng(2).normal(size=(m, r)).astype(dtype)
        expected = compute("rbf", X, Y).astype(np.float64) @ V
        as_rows = sparse.csr_array if kind == "csr" else np.asarray
        out = np.full((n, r), np.nan)
        native.gram_apply(Rows(as_rows(X)), Rows(as_rows(Y)), measure_of("rbf", d)[0], V, out, 2)
        np.testing.assert_allclose(out, expected, rtol=0, atol=m * 10 * np.finfo(dtype).eps)


# -- elementary functions


def values(dtype, function):
    rng = np.random.default_rng(0)
    if function == "exp":
        limit = 700 if dtype == np.float64 else 87
        x = np.concatenate([rng.uniform(-limit, limit, 200_000), rng.normal(size=50_000)])
    elif function == "tanh":
        parts = [scale * rng.normal(size=50_000) for scale in (1e-3, 1, 10)]
        x = np.concatenate([*parts, np.linspace(0.6, 0.65, 1000)])
    elif function == "sin":
        parts = [rng.uniform(-scale, scale, 50_000) for scale in (1e-3, 1.6, 7, 1e3, 1e7)]
        x = np.concatenate([*parts, np.pi / 2 * np.arange(-9, 9, 2)])
    elif function == "arcsin":
        x = np.concatenate([rng.random(200_000), rng.random(50_000) ** 9, [0, 0.5, 1]])
    else:
        exponents = (
            rng.uniform(-300, 300, 200_000)
            if dtype == np.float64
            else rng.uniform(-37, 37, 200_000)
        )
        x = np.concatenate([10**exponents, rng.uniform(0.5, 2, 100_000)])
    return x.astype(dtype)


def ulps(actual, exact):
    return np.abs(actual.astype(np.longdouble) - exact) / np.spacing(
        np.abs(exact.astype(actual.dtype))
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("function", ["exp", "log", "tanh", "sin", "arcsin"])
def test_elementary_within_a_few_ulps(function, dtype):
    x = values(dtype, function)
    out = np.empty_like(x)
    native.elementary(function.replace("arc", "a"), x, out)
    error = ulps(out, getattr(np, function)(x.astype(np.longdouble)))
    assert error.max() <= (3 if "sin" in function else 2), (error.max(), x[error.argmax()])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("power", [0.3, 1.5, 2.7])
def test_power(power, dtype):
    power = float(dtype(power))
    x = values(dtype, "log")
    x = x[np.abs(power * np.log(x)) < (700 if dtype == np.float64 else 87)]
    out = np.empty_like(x)
    native.elementary("pow", x, out, power)
    error = ulps(out, x.astype(np.longdouble) ** power)
    assert np.all(error <= 2 + 2 * np.abs(power * np.log(x)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_special_values(dtype):
    def run(function, x, parameter=0.0):
        x = np.array(x, dtype)
        out = np.empty_like(x)
        native.elementary(function, x, out, parameter)
        return out

    inf, nan = np.inf, np.nan
    odd_nan = np.array([0x7FF8000000000FFF], np.uint64).view(np.float64)[0]
    top = 709.7827128933 if dtype == np.float64 else 88.7228
    near_top = np.linspace(top - 0.05, top, 999).astype(dtype)
    np.testing.assert_allclose(run("exp", near_top), np.exp(near_top), rtol=4 * np.finfo(dtype).eps)
    np.testing.assert_array_equal(
        run("exp", [-inf, -1e30, 0, -0.0, 1e30, inf, nan, odd_nan, -nan]),
        [0, 0, 1, 1, inf, inf, nan, nan, nan],
    )
    assert np.isfinite(run("exp", [top])[0])
    assert run("exp", [top + 0.01])[0] == inf
    assert run("exp", [-top])[0] == 0  # it would be denormal
    np.testing.assert_array_equal(
        run("tanh", [-inf, -50, -0.0, 0, 50, inf, nan]), [-1, -1, -0.0, 0, 1, 1, nan]
    )
    assert np.signbit(run("tanh", [-0.0])[0])
    tiny = np.finfo(dtype).smallest_subnormal
    np.testing.assert_array_equal(
        run("log", [-1, -0.0, 0, 1, inf, nan]), [nan, -inf, -inf, 0, inf, nan]
    )
    np.testing.assert_allclose(
        run("log", [tiny, 5 * tiny]), np.log(np.array([tiny, 5 * tiny], dtype)), rtol=1e-6
    )
    np.testing.assert_array_equal(run("pow", [0, 1, inf, nan], 2.5), [0, 1, inf, nan])
