"""Random projections: products against NumPy's, matrices and results against scikit-learn's."""

import numpy as np
import pytest
import sklearn.random_projection as stock
from fastml._native.rows import Rows
from scipy import sparse
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.random import sample_without_replacement
from suites.harness import run_python

import fastml
from fastml._native import projection as native
from fastml.random_projection import (
    CosineAugmentation,
    GaussianRandomProjection,
    SparseRandomProjection,
)

DTYPES = (np.float32, np.float64)
pytestmark = pytest.mark.filterwarnings("ignore:The number of components is higher")


def rows(n, d, dtype=np.float64):
    return np.random.default_rng(n + d).normal(size=(n, d)).astype(dtype)


def sparse_rows(n, d, density, dtype=np.float64):
    return sparse.random(n, d, density, format="csr", dtype=dtype, random_state=d)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("n", "m", "d"), [(1, 1, 1), (7, 25, 3), (97, 49, 17), (131, 9, 1500), (40, 13, 9000)]
)
def test_products(n, m, d, dtype, threads):
    X, S = rows(n, d, dtype), sparse_rows(m, d, 0.2, dtype)
    exact = X.astype(np.float64) @ S.T.toarray()
    atol = 20 * np.finfo(dtype).eps * np.sqrt(d)
    out = np.empty((n, m), dtype)
    native.project(Rows(X), Rows(S), False, out, threads)
    np.testing.assert_allclose(out, exact, rtol=0, atol=atol)
    back = np.empty((m, n), dtype)
    native.project(Rows(X), Rows(S), True, back, threads)
    np.testing.assert_array_equal(back.T, out)
    other, out = sparse_rows(n, d, 0.1, dtype), np.empty((n, m), dtype)
    native.project_sparse(Rows(other), Rows(S.T.tocsr()), out, threads)
    np.testing.assert_allclose(out, (other @ S.T).toarray(), rtol=0, atol=atol)


@pytest.mark.parametrize("isa", ["baseline", "avx2"])
def test_every_instruction_set(isa):
    code = """
import numpy as np
from scipy import sparse
from fastml._native import projection as native
from fastml._native.rows import Rows
rng = np.random.default_rng(0)
for dtype in (np.float32, np.float64):
    for d in (9, 3000, 12_000):
        X = rng.normal(size=(70, d)).astype(dtype)
        S = sparse.random(31, d, 0.1, format="csr", dtype=dtype, random_state=0)
        out = np.empty((70, 31), dtype)
        native.project(Rows(X), Rows(S), False, out, 2)
        assert np.abs(out - X @ S.T.toarray()).max() < 1000 * np.finfo(dtype).eps
"""
    run_python(code, FASTML_ISA=isa)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 300, 1024, 5000])
def test_chosen_by_the_same_draws(n):
    for k in sorted({0, 1, n // 200, n // 50, n // 2, n - n // 500, n - 1, n}):
        theirs, ours = np.random.RandomState(k), np.random.RandomState(k)
        expected = sample_without_replacement(n, k, random_state=theirs)
        chosen, pool = np.empty(k, np.int32), np.zeros(n, np.int32)
        native.choose(ours._bit_generator.capsule, n, chosen, pool)
        np.testing.assert_array_equal(chosen, expected)
        assert not pool.any()
        assert theirs.randint(2**31) == ours.randint(2**31)


def same(ours, theirs, atol):
    assert type(ours) is type(theirs)
    assert ours.dtype == theirs.dtype
    if sparse.issparse(theirs):
        ours, theirs = ours.toarray(), theirs.toarray()
    scale = max(1, abs(theirs).max(initial=0))
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=atol * scale)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("n", "d", "m", "density"),
    [
        (1, 3, 2, 0.5),
        (7, 40, 30, 0.3),
        (9, 20, 33, 1.0),
        (20, 300, 33, 0.995),
        (200, 3000, 40, "auto"),
    ],
)
@pytest.mark.parametrize("name", ["GaussianRandomProjection", "SparseRandomProjection"])
def test_the_projections_of_scikit_learn(name, n, d, m, density, dtype):
    X, Xs = rows(n, d, dtype), sparse_rows(n, d, 0.1, dtype)
    params = {"n_components": m, "random_state": 3, "compute_inverse_components": True}
    if name == "SparseRandomProjection":
        params["density"] = density
    theirs, ours = (getattr(module, name)(**params) for module in (stock, fastml.random_projection))
    theirs.fit(X)
    atol = 100 * np.finfo(dtype).eps * np.sqrt(d)
    with fastml.config_context(strict=True):
        same(ours.fit(X).components_, theirs.components_, 0)
        if sparse.issparse(theirs.components_):
            for part in ("indices", "indptr"):
                np.testing.assert_array_equal(
                    getattr(ours.components_, part), getattr(theirs.components_, part)
                )
        for given in (X, X[:3], X[::-2], np.asfortranarray(X), Xs, Xs[:2], Xs.tocsc()):
            for dense_output in (False, True):
                theirs.dense_output = ours.dense_output = dense_output
                same(ours.transform(given), theirs.transform(given), atol)
        well = np.linalg.cond(theirs.inverse_components_) < 1e3
        same(ours.inverse_components_, theirs.inverse_components_, 100 * atol if well else np.inf)
        back = ours.inverse_transform(theirs.transform(X))
        same(ours.transform(back), theirs.transform(X), 100 * atol)
        same(
            ours.inverse_transform(ours.transform(Xs)),
            theirs.inverse_transform(theirs.transform(Xs)),
            100 * atol,
        )
    twin = fastml.to_sklearn(ours)
    assert type(twin) is type(theirs)
    same(twin.transform(X), ours.transform(X), atol)


@pytest.mark.parametrize("format", ["csr", "csc", "coo", "lil", "bsr"])
def test_format_of_sparse_projections(format):
    X = sparse.random(30, 50, 0.3, random_state=0).asformat(format)
    theirs = stock.SparseRandomProjection(5, random_state=0).fit_transform(X)
    ours = SparseRandomProjection(5, random_state=0).fit_transform(X)
    assert ours.format == theirs.format
    np.testing.assert_allclose(ours.toarray(), theirs.toarray(), atol=1e-12)


def test_a_singular_matrix_has_an_inverse():
    X = rows(5, 6)
    theirs = stock.SparseRandomProjection(30, density=0.05, random_state=0).fit(X)
    ours = SparseRandomProjection(30, density=0.05, random_state=0).fit(X)
    Z = theirs.transform(X)
    np.testing.assert_allclose(ours.inverse_transform(Z), theirs.inverse_transform(Z), atol=1e-12)


@pytest.mark.parametrize("compute_inverse", [True, False])
@pytest.mark.parametrize("kind", ["GaussianRandomProjection", "SparseRandomProjection"])
def test_projections_of_another_width_are_refused(kind, compute_inverse):
    model = getattr(fastml.random_projection, kind)(
        5, random_state=0, compute_inverse_components=compute_inverse
    )
    model.fit(rows(300, 50))
    for n, d in ((300, 100_000), (300, 2), (2, 6)):
        Z = sparse.random(n, d, 0.5 if d < 10 else 0.01, format="csr", random_state=0)
        for given in (Z, Z.toarray()):
            with pytest.raises(ValueError, match="which should be 5"):
                model.inverse_transform(given)
    model.components_ = model.components_[:, :1]
    for given in (rows(300, 50), sparse.csr_matrix(rows(300, 50))):
        with pytest.raises(ValueError, match="which should be 1"):
            model.transform(given)


def test_the_matrix_is_checked():
    model = SparseRandomProjection(5, random_state=0).fit(rows(20, 50))
    S = model.components_.copy()
    S.indices[0] = 10**6
    model.components_ = S
    with pytest.raises(ValueError, match="ind"):
        model.transform(rows(20, 50))


@pytest.mark.parametrize("make", [GaussianRandomProjection, SparseRandomProjection])
def test_same_bits_for_any_number_of_threads(make):
    for X in (rows(3000, 200), sparse_rows(3000, 200, 0.1)):
        results = []
        for threads in (1, 2):
            with fastml.config_context(threads=threads):
                Z = make(50, random_state=0).fit_transform(X)
            results.append(Z.toarray() if sparse.issparse(Z) else Z)
        if make is SparseRandomProjection or sparse.issparse(X):  # of the others BLAS decides
            np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_cosines_are_inner_products(kind, dtype):
    items, queries = rows(200, 7, dtype), rows(30, 7, dtype)
    items[3], queries[4] = 0, 0
    augmentation = CosineAugmentation().fit(kind(items))
    longest = np.linalg.norm(items.astype(np.float64), axis=1).max()
    np.testing.assert_allclose(augmentation.max_norm_, longest)
    Z, Q = augmentation.transform(kind(items)), augmentation.transform_queries(kind(queries))
    assert sparse.issparse(Z) == sparse.issparse(Q) == (kind is sparse.csr_matrix)
    assert Z.dtype == Q.dtype == dtype
    Z, Q = (A.toarray() if sparse.issparse(A) else A for A in (Z, Q))
    tol = 10 * np.finfo(dtype).eps
    np.testing.assert_allclose(np.linalg.norm(Z, axis=1), 1, atol=tol)
    sizes = np.linalg.norm(queries, axis=1)
    np.testing.assert_allclose(np.linalg.norm(Q, axis=1), sizes > 0, atol=tol)
    exact = queries.astype(np.float64) @ items.T
    np.testing.assert_allclose((Q @ Z.T) * sizes[:, None] * longest, exact, atol=100 * tol)


def test_items_longer_than_allowed():
    items = rows(20, 4)
    with pytest.raises(ValueError, match="max_norm"):
        CosineAugmentation(max_norm=0.1).fit(items)
    augmentation = CosineAugmentation(max_norm=100).fit(items)
    assert augmentation.max_norm_ == 100
    with pytest.warns(UserWarning, match="max_norm"):
        Z = augmentation.transform(1000 * items)
    np.testing.assert_allclose(np.linalg.norm(Z, axis=1), 1)
    assert CosineAugmentation().fit(np.zeros((3, 2))).transform(np.zeros((1, 2))).tolist() == [
        [0, 0, 1]
    ]


@pytest.mark.filterwarnings("ignore")
def test_check_estimator():
    results = check_estimator(CosineAugmentation(), on_fail=None)
    assert not [r["check_name"] for r in results if r["status"] == "failed"]
