"""The scaling kernels against their naive twins, and the scalers against scikit-learn's."""

import numpy as np
import pytest
import sklearn.preprocessing
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import fastml
import fastml.preprocessing
from fastml._native import scaling
from fastml._runtime.reduce import reduce_blocks
from fastml.preprocessing._standard import Block, ColumnMoments, Moments

DTYPES = (np.float32, np.float64)
THREADS = (1, 2)
# One row, a few, and more than a tile; narrow, around a vector, and more than a strip.
SHAPES = [(1, 1), (1, 40), (2, 3), (7, 1), (301, 5), (300, 17), (5003, 4), (1000, 70), (90, 1100)]
LAYOUTS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "wide": lambda X: np.hstack([X, X])[:, : X.shape[1]],
    "rows": lambda X: np.repeat(X, 2, axis=0)[::2],
    "upwards": lambda X: X[::-1].copy()[::-1],
}
every_shape = pytest.mark.parametrize("shape", SHAPES, ids=str)
every_layout = pytest.mark.parametrize("layout", LAYOUTS)
every_dtype = pytest.mark.parametrize("dtype", DTYPES)
every_number_of_threads = pytest.mark.parametrize("threads", THREADS)


def values(shape, dtype, missing=0.0, seed=0):
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=shape) * 3 + 5).astype(dtype)
    X[rng.random(shape) < missing] = np.nan
    return X


def moments(X, w=None, threads=2):
    part = np.full((3, X.shape[1]), np.nan)
    assert not scaling.moments(X, w, *part, threads)
    return part


def moments_naive(X, w=None):
    X = X.astype(np.float64)
    w = np.ones(len(X)) if w is None else w.astype(np.float64)
    seen = ~np.isnan(X)
    count = (w[:, None] * seen).sum(axis=0)
    safe = np.where(count == 0, 1, count)
    mean = (w[:, None] * np.where(seen, X, 0)).sum(axis=0) / safe
    return count, mean, (w[:, None] * np.where(seen, X - mean, 0) ** 2).sum(axis=0)


@every_number_of_threads
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("missing", [0.0, 0.3])
@every_dtype
@every_shape
def test_moments(shape, dtype, missing, weighted, threads):
    X = values(shape, dtype, missing)
    w = np.random.default_rng(1).random(shape[0]).astype(dtype) if weighted else None
    for layout in LAYOUTS.values():
        got = moments(layout(X), w, threads)
        assert_allclose(got, moments_naive(X, w), rtol=1e-10, atol=1e-10)
        assert_array_equal(got, moments(X, w, 1), err_msg="layout or threads matter")


@every_dtype
def test_moments_far_from_the_origin(dtype):
    """Nothing cancels: neither far from zero, nor where the first row lies far from the others."""
    X = values((20_000, 3), np.float64)
    X = (X + 1e8 if dtype == np.float64 else X + 1e3).astype(dtype)
    X[0] *= 1e3
    expected = moments_naive(X[1:])
    whole, first = moments(X), moments(X[:1])
    assert_allclose(whole[2], moments_naive(X)[2], rtol=1e-9)
    assert_allclose(moments(X[1:])[2], expected[2], rtol=1e-9)
    method = ColumnMoments()
    part = method.merge(Moments(*first), Moments(*moments(X[1:])))
    assert_allclose(part.square, whole[2], rtol=1e-9)


@every_dtype
def test_constant_columns_have_no_deviation(dtype):
    X = np.repeat(np.array([[0.1, np.log(1e-5), 1e6, -7]], dtype), 30_001, axis=0)
    scaler = fastml.preprocessing.StandardScaler().fit(X)
    assert_array_equal(scaler.scale_, 1)
    assert_allclose(scaler.mean_, X[0].astype(np.float64), rtol=1e-15)


@pytest.mark.parametrize("kernel", ["moments", "extremes", "apply"])
@pytest.mark.parametrize("infinity", [np.inf, -np.inf])
@pytest.mark.parametrize("missing", [0.0, 0.2])
@every_dtype
def test_infinity_is_found(dtype, missing, infinity, kernel):
    X = values((3001, 7), dtype, missing)
    ones, part = np.ones(7, dtype), np.empty((3, 7))
    run = {
        "moments": lambda X: scaling.moments(X, None, *part, 2),
        "extremes": lambda X: scaling.extremes(X, ones.copy(), ones.copy(), 2),
        "apply": lambda X: scaling.apply(X, False, ones, ones, None, np.empty_like(X), 2),
    }[kernel]
    assert not run(X)
    X[2999, 5] = infinity
    assert run(X)
    assert run(np.asfortranarray(X))


@every_number_of_threads
@pytest.mark.parametrize("missing", [0.0, 0.9])
@every_layout
@every_dtype
@every_shape
def test_extremes(shape, dtype, layout, missing, threads):
    X = values(shape, dtype, missing)
    least, largest = np.empty((2, shape[1]), dtype)
    scaling.extremes(LAYOUTS[layout](X), least, largest, threads)
    assert_array_equal(least, np.fmin.reduce(X, axis=0, initial=np.inf))
    assert_array_equal(largest, np.fmax.reduce(X, axis=0, initial=-np.inf))


@every_number_of_threads
@pytest.mark.parametrize("precision", DTYPES)
@pytest.mark.parametrize("stretch", [False, True])
@every_layout
@every_dtype
@every_shape
def test_apply(shape, dtype, layout, stretch, precision, threads):
    if np.dtype(precision).itemsize < np.dtype(dtype).itemsize:
        pytest.skip("parameters are at least of the precision of X")
    X = LAYOUTS[layout](values(shape, dtype, 0.1))
    shift, scale = values((2, shape[1]), precision, seed=1)
    expected = X.copy()
    if stretch:
        expected *= scale
        expected += shift
    else:
        expected -= shift
        expected /= scale
    order = "F" if layout == "F" and 1 not in shape else "C"
    out = np.empty(shape, dtype, order=order)
    scaling.apply(X, stretch, shift, scale, None, out, threads)
    assert_array_equal(out, expected)
    scaling.apply(X, stretch, shift, scale, (0.5, 1.5), out, threads)
    assert_array_equal(out, np.clip(expected, 0.5, 1.5))
    again = X.copy(order=order)
    scaling.apply(again, stretch, shift, scale, None, again, threads)
    assert_array_equal(again, expected)


@every_number_of_threads
@pytest.mark.parametrize("norm", ["l1", "l2", "max"])
@every_layout
@every_dtype
@pytest.mark.parametrize("shape", [*SHAPES, (3, 20_001), (20_001, 2)], ids=str)
def test_normalize(shape, dtype, layout, norm, threads):
    X = values(shape, dtype)
    X[0] = 0
    Z = LAYOUTS[layout](X)
    out, norms = np.empty(shape, dtype, order="F" if layout == "F" and 1 not in shape else "C"), 0
    norms = np.empty(shape[0], dtype)
    assert scaling.normalize(Z, norm, 1e-6, norms, out, threads)
    order = {"l1": 1, "l2": 2, "max": np.inf}[norm]
    expected = np.linalg.norm(X.astype(np.float64), order, axis=1)
    expected[0] = 1
    assert_allclose(norms, expected, rtol=4 * np.finfo(dtype).eps)
    assert_array_equal(out, X / norms[:, None])
    for bad in (np.nan, np.inf):
        X[-1, -1] = bad
        assert not scaling.normalize(LAYOUTS[layout](X), norm, 1e-6, norms, out, threads)


@every_number_of_threads
@pytest.mark.parametrize("kind", ["normal", "integers", "constant", "heavy", "sorted", "empty"])
@every_dtype
@pytest.mark.parametrize("n", [1, 2, 500, 20_011])
def test_order_statistics(n, dtype, kind, threads):
    X = values((n, 18), np.float64, 0.1)
    X = {
        "normal": lambda: X,
        "integers": lambda: np.round(X),
        "constant": lambda: X * 0 + 3,
        "heavy": lambda: np.exp(4 * X),
        "sorted": lambda: np.sort(X, axis=0),
        "empty": lambda: np.where(np.arange(18) < 9, X, np.nan),
    }[kind]().astype(dtype)
    q = np.array([0.0, 0.01, 0.25, 0.5, 1.0])
    below, above = np.empty((2, len(q), 18), dtype)
    count = np.empty(18, np.intp)
    for layout in LAYOUTS.values():
        assert not scaling.order_statistics(layout(X), q, below, above, count, threads)
        assert_array_equal(count, (~np.isnan(X)).sum(axis=0))
        ascending = np.sort(X, axis=0)  # NaN last
        rank = np.floor(q[:, None] * (count - 1)).astype(int)
        for found, index in ((below, rank), (above, np.minimum(rank + 1, count - 1))):
            expected = np.take_along_axis(ascending, index, axis=0)
            assert_array_equal(found, np.where(count, expected, np.nan))
    X[n // 2, 3] = np.inf
    assert scaling.order_statistics(X, q, below, above, count, threads)


def test_neither_rows_nor_columns_in_one_piece():
    with pytest.raises(ValueError, match="contiguous"):
        scaling.extremes(np.ones((6, 6))[::2, ::2], np.ones(3), np.ones(3), 1)


@pytest.mark.parametrize("n_blocks", [1, 3, 7])
@pytest.mark.parametrize("weighted", [False, True])
def test_chunks_give_what_the_whole_gives(n_blocks, weighted):
    X = values((900, 6), np.float64, 0.2)
    X[:300, 2] = np.nan
    w = np.random.default_rng(0).random(900) if weighted else None
    method = ColumnMoments()
    rows = np.array_split(np.arange(900), n_blocks)
    blocks = [Block(X[r], None if w is None else w[r]) for r in rows]
    part = reduce_blocks(method, blocks, method.init(6, None))
    assert_allclose(part, moments_naive(X, w), rtol=1e-10)


# -- the scalers

SCALERS = {
    "standard": lambda m, s: m.StandardScaler(with_mean=not s),
    "standard, mean": lambda m, s: m.StandardScaler(with_std=False, with_mean=not s),
    "standard, nothing": lambda m, s: m.StandardScaler(with_std=False, with_mean=False),
    "minmax": lambda m, s: m.MinMaxScaler(feature_range=(-1, 2), clip=True),
    "maxabs": lambda m, s: m.MaxAbsScaler(),
    "robust": lambda m, s: m.RobustScaler(
        with_centering=not s, quantile_range=(10, 85), unit_variance=True
    ),
    "l1": lambda m, s: m.Normalizer("l1"),
    "l2": lambda m, s: m.Normalizer("l2"),
    "max": lambda m, s: m.Normalizer("max"),
}
KINDS = {
    **LAYOUTS,
    "scattered": lambda X: np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3],
    "integers": lambda X: np.round(X).astype(int),
    "half": lambda X: X.astype(np.float16),
    "missing": lambda X: np.where(X > 8, np.nan, X),
    "list": lambda X: X.tolist(),
    "csr": lambda X: sparse.csr_matrix(np.where(X > 5, X, 0)),
    "csc": lambda X: sparse.csc_array(np.where(X > 5, X, 0)),
    "csr, missing": lambda X: sparse.csr_matrix(np.where(X > 8, np.nan, np.where(X > 5, X, 0))),
}


def compare(got, expected, dtype, name):
    if got is None or expected is None:
        assert got is expected, name
        return
    if sparse.issparse(expected):
        assert type(got) is type(expected), name
        got, expected = got.toarray(), expected.toarray()
    got, expected = np.asarray(got), np.asarray(expected)
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape), name
    assert got.ndim != 2 or got.flags.f_contiguous == expected.flags.f_contiguous, name
    rtol = {np.float16: 5e-3, np.float32: 2e-5, np.float64: 1e-10}[dtype]
    assert_allclose(got, expected, rtol=rtol, atol=rtol, err_msg=name)


@pytest.mark.filterwarnings("ignore:All-NaN", "ignore:overflow")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", SCALERS)
def test_like_scikit_learn(name, kind, dtype):
    if ("missing" in kind and name in ("l1", "l2", "max")) or ("csr" in kind and name == "minmax"):
        pytest.skip("scikit-learn refuses it")
    if kind == "csc" and name == "minmax":
        pytest.skip("scikit-learn refuses it")
    tolerance = np.float16 if kind == "half" else dtype
    for shape in ((60, 7), (5000, 12)):
        X = KINDS[kind](values(shape, dtype))
        ours = SCALERS[name](fastml.preprocessing, sparse.issparse(X))
        theirs = SCALERS[name](sklearn.preprocessing, sparse.issparse(X))
        with fastml.config_context(strict=True):
            compare(ours.fit_transform(X), theirs.fit_transform(X), tolerance, "fit_transform")
            if hasattr(ours, "partial_fit"):
                ours.partial_fit(X)
                theirs.partial_fit(X)
            if hasattr(ours, "inverse_transform"):
                Z = theirs.transform(X)
                back = ours.inverse_transform(Z.copy()), theirs.inverse_transform(Z.copy())
                compare(*back, tolerance, "inverse_transform")
        for attribute in [a for a in vars(theirs) if a.endswith("_")]:
            compare(getattr(ours, attribute), getattr(theirs, attribute), tolerance, attribute)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("kind", ["C", "F", "scattered", "half", "integers", "csr", "csc"])
@pytest.mark.parametrize(
    "name", ["scale", "minmax_scale", "maxabs_scale", "robust_scale", "normalize"]
)
def test_functions_like_scikit_learn(name, kind, axis):
    X = KINDS[kind](values((700, 9), np.float64))
    params = {"axis": axis}
    if sparse.issparse(X):
        if name == "minmax_scale" or (name == "scale" and axis == 1):
            pytest.skip("scikit-learn refuses it")
        params |= {"scale": {"with_mean": False}, "robust_scale": {"with_centering": False}}.get(
            name, {}
        )
    with fastml.config_context(strict=True):
        got = getattr(fastml.preprocessing, name)(X, **params)
    expected = getattr(sklearn.preprocessing, name)(X, **params)
    compare(got, expected, np.float16 if kind == "half" else np.float64, name)


IN_PLACE = {k: v for k, v in SCALERS.items() if not k.startswith("standard,")}


@pytest.mark.parametrize("kind", ["C", "F", "wide", "scattered", "csr"])
@pytest.mark.parametrize("name", IN_PLACE)
def test_in_place(name, kind):
    if name == "minmax" and kind == "csr":
        pytest.skip("scikit-learn refuses it")
    X = KINDS[kind](values((60, 7), np.float64))
    scaler = IN_PLACE[name](fastml.preprocessing, sparse.issparse(X)).set_params(copy=False).fit(X)
    expected = scaler.set_params(copy=True).transform(X)
    bad = X.copy()
    (bad.data if sparse.issparse(X) else bad)[-1] = np.inf
    before = bad.copy()
    with pytest.raises(ValueError, match="infinity"):
        scaler.set_params(copy=False).transform(bad)
    same = (bad != before).nnz == 0 if sparse.issparse(X) else (bad == before).all()
    assert same, "changed, and then refused"
    out = scaler.transform(X)
    assert out is X if sparse.issparse(X) else np.may_share_memory(out, X)
    dense = [A.toarray() if sparse.issparse(A) else A for A in (X, out, expected)]
    assert_array_equal(dense[1], dense[2])
    assert_array_equal(dense[0], dense[2])
    if not sparse.issparse(X):
        X.flags.writeable = False
        assert not np.may_share_memory(scaler.transform(X), X)


@pytest.mark.parametrize("kind", ["C", "half", "list", "csr"])
@pytest.mark.parametrize("name", IN_PLACE)
def test_errors_are_scikit_learns(name, kind):
    X = values((60, 7), np.float64)
    bad = X.copy()
    bad[30, 3] = np.inf
    X, bad = KINDS[kind](X), KINDS[kind](bad)
    if name == "minmax" and kind == "csr":
        pytest.skip("scikit-learn refuses it")
    messages = []
    for module in (fastml.preprocessing, sklearn.preprocessing):
        scaler = IN_PLACE[name](module, sparse.issparse(X)).fit(X)
        calls = [scaler.transform, getattr(scaler, "inverse_transform", scaler.transform)]
        if name not in ("l1", "l2", "max"):
            calls.append(scaler.fit)
        for call in calls:
            with pytest.raises(ValueError) as error:
                call(bad)
            messages.append(str(error.value))
    assert messages[: len(messages) // 2] == messages[len(messages) // 2 :]


def test_rows_of_another_width():
    scaler = fastml.preprocessing.StandardScaler().fit(np.ones((4, 3)))
    with pytest.raises(ValueError, match="X has 2 features, but StandardScaler is expecting 3"):
        scaler.transform(np.ones((4, 2)))


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix, sparse.csc_matrix])
@pytest.mark.parametrize(
    "scaler",
    [
        fastml.preprocessing.StandardScaler(with_mean=False),
        fastml.preprocessing.MaxAbsScaler(),
        fastml.preprocessing.RobustScaler(with_centering=False),
        fastml.preprocessing.MinMaxScaler(),
    ],
    ids=lambda scaler: type(scaler).__name__,
)
def test_scaled_rows_of_another_width(scaler, kind):
    """What is beyond the ends of means and scales is no part of the answer."""
    X = np.random.default_rng(0).random((30, 6))
    scaler.fit(X)
    for d in (1, 5, 4000):
        with pytest.raises((ValueError, TypeError), match=r"features|Sparse data"):
            scaler.inverse_transform(kind(np.ones((30, d))))
    if kind is np.asarray:
        assert_allclose(scaler.inverse_transform(scaler.transform(X)), X)


def test_one_thread_and_two_give_the_same_bits():
    for dtype in DTYPES:
        X = values((40_000, 20), dtype, 0.05)
        for name, make in SCALERS.items():
            if name in ("l1", "l2", "max"):
                continue
            out = []
            for threads in THREADS:
                with fastml.config_context(threads=threads):
                    out.append(make(fastml.preprocessing, False).fit_transform(X))
            assert_array_equal(*out)


@every_dtype
@pytest.mark.parametrize("weighted", [False, True])
def test_counts_of_rows_alone_have_the_dtype_of_scikit_learns(dtype, weighted):
    X, w = values((6, 3), dtype), np.arange(6.0) if weighted else None
    seen = [
        module.StandardScaler(with_mean=False, with_std=False)
        .partial_fit(X, sample_weight=w)
        .partial_fit(X, sample_weight=w)
        .n_samples_seen_
        for module in (fastml.preprocessing, sklearn.preprocessing)
    ]
    assert seen[0] == seen[1]
    assert seen[0].dtype == seen[1].dtype
