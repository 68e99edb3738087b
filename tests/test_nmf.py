"""Non-negative matrix factorisation against plain twins and scikit-learn's."""

import os
import subprocess
import sys
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn import decomposition as stock
from sklearn.exceptions import ConvergenceWarning

import fastml
from fastml._native import nmf, runtime
from fastml._runtime.threads import n_threads
from fastml.callback import FitCallback
from fastml.decomposition import NMF, MiniBatchNMF, non_negative_factorization
from fastml.decomposition._descent import DenseDescent, Penalties, Rule, descend
from fastml.decomposition._factors import Data, Factor, divergence, product
from fastml.decomposition._multiplication import Multiplication, summary
from fastml.decomposition._nndsvd import survey

DTYPES = (np.float32, np.float64)
RANKS = (1, 2, 3, 7, 8, 9, 17, 24, 33, 70)
SHAPES = ((1, 1), (3, 130), (97, 5), (150, 101), (300, 40))
TOLERANCE = {np.float32: 2e-4, np.float64: 1e-11}
EPSILON = np.finfo(np.float32).eps

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def problem(n, d, k, dtype, form="dense"):
    rng = np.random.default_rng(n + k)
    X = rng.random((n, d)) + 0.05
    X[rng.random((n, d)) < 0.4] = 0
    X = X.astype(dtype)
    W, B = rng.random((n, k)).astype(dtype), rng.random((d, k)).astype(dtype)
    W[rng.random((n, k)) < 0.3] = 0
    return {"dense": X, "csr": sparse.csr_matrix(X), "csc": sparse.csc_matrix(X)}[form], W, B


def dense(X):
    return X.toarray() if sparse.issparse(X) else X


def close(found, expected, dtype, times=1.0):
    scale = max(1.0, float(np.abs(expected).max()))
    atol = times * TOLERANCE[dtype] * scale
    np.testing.assert_allclose(found, expected, rtol=0, atol=atol)


def sweep_naive(X, W, B, l1, l2, order):
    W, G, P = W.astype(float), B.T.astype(float) @ B, dense(X).astype(float) @ B - l1
    G += l2 * np.eye(len(G))
    violation = 0.0
    for t in order:
        gradient = W @ G[t] - P[:, t]
        violation += np.abs(np.where(W[:, t] == 0, np.minimum(gradient, 0), gradient)).sum()
        if G[t, t] != 0:
            W[:, t] = np.maximum(W[:, t] - gradient / G[t, t], 0)
    return W, violation


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_descent_matches_naive(dtype, shape):
    for k in RANKS:
        X, W, B = problem(*shape, k, dtype, "csr")
        B[:, k // 2] = 0 if k > 2 else B[:, k // 2]
        order = np.random.default_rng(0).permutation(k)
        expected, violation = sweep_naive(X, W, B, 0.1, 0.3, order)
        results = []
        for threads in (1, 2):
            data, w, b = Data(X), Factor(W), Factor(B)
            gram = w.empty_gram()
            G = b.gram()
            G.flat[:: len(G) + 1] += 0.3
            found = nmf.descend(w.at, data.rows, b.at, G, order, 0.1, 1, gram, threads)
            close(w.values, expected, dtype, k)
            assert found == pytest.approx(violation, rel=10 * TOLERANCE[dtype])
            assert (w.at[:, k:] == 0).all()
            close(gram[:k, :k], expected.T @ expected, dtype, k)
            results.append((w.at.tobytes(), gram.tobytes(), found))
            from_products = Factor(W)
            given = product(data.rows, b.at)
            assert found == pytest.approx(
                nmf.descend(from_products.at, None, given, G, order, 0.1, 1, None, threads),
                rel=TOLERANCE[dtype],
            )
            close(from_products.values, w.values, dtype)
        assert results[0] == results[1]


# X in rows, in columns, and in several blocks, parts and answers of either.
@pytest.mark.parametrize("shape", (*SHAPES, (40, 300), (101, 1150), (1150, 101)), ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_turns_match_naive(dtype, shape):
    for k in RANKS:
        X, W, B = problem(*shape, k, dtype)
        B[:, k // 2] = 0 if k > 2 else B[:, k // 2]
        order = np.array([np.random.default_rng(f).permutation(k) for f in range(2)])
        expected_W, violation = sweep_naive(X, W, B, 0.1, 0.3, order[0])
        expected_B, of_H = sweep_naive(X.T, B, expected_W, 0.2, 0.4, order[1])
        results = []
        for threads in (1, 2, 3):
            with fastml.config_context(threads=threads):
                w, b = Factor(W), Factor(B)
                solver = DenseDescent(Data(X), w, b, Penalties(0.1, 0.2, 0.3, 0.4), (1, 1))
                once = solver.run(order, 1, 0.0, -1.0)
                solver.settle()
                assert once == (1, once[1], once[1])
                assert once[1] == pytest.approx(violation + of_H, rel=10 * TOLERANCE[dtype])
                close(w.values, expected_W, dtype, k)
                close(b.values, expected_B, dtype, k)
                for factor, flat in zip((w, b), solver._flat, strict=True):
                    assert (factor.at[:, k:] == 0).all() and (flat[:, len(factor.at) :] == 0).all()
                alone = solver.run(order, 1, -1.0, once[2]), solver.run(order, 1, -1.0, once[2])
                solver.settle()
                results.append((w.at.tobytes(), b.at.tobytes(), alone[1]))
                w, b = Factor(W), Factor(B)
                solver = DenseDescent(Data(X), w, b, Penalties(0.1, 0.2, 0.3, 0.4), (1, 1))
                found = solver.run(order, 3, -1.0, -1.0)
                solver.settle()
                assert found == (3, alone[1][1], once[2])
                assert results[-1] == (w.at.tobytes(), b.at.tobytes(), alone[1])
        assert results[0] == results[1] == results[2]


def test_turns_end_when_little_is_violated():
    X, W, B = problem(60, 50, 4, np.float64)
    order = np.tile(np.arange(4), (2, 1))
    solver = DenseDescent(Data(X), Factor(W), Factor(B), Penalties(0, 0, 0, 0), (1, 1))
    done, last, first = solver.run(order, 1000, 0.01, -1.0)
    assert 1 < done < 1000
    assert 0 < last <= 0.01 * first
    nothing = np.zeros((60, 50))
    solver = DenseDescent(Data(nothing), Factor(0 * W), Factor(B), Penalties(0, 0, 0, 0), (1, 1))
    assert solver.run(order, 1000, 0.0, -1.0) == (1, 0.0, 0.0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_steps_by_the_smallest_numbers(dtype):
    # Their inverses are infinite.
    least = np.finfo(dtype).tiny / 64
    p, w = np.array([[least, 0, 2 * least]], dtype), Factor(np.ones((1, 3), dtype))
    G = w.empty_gram()
    G[[0, 1, 2], [0, 1, 2]] = least
    order = np.arange(3)
    products = Factor(p).at
    nmf.descend(w.at, None, products, G, order, 0.0, 1, None, 1)
    np.testing.assert_array_equal(w.values, [[1, 0, 2]])


def update_naive(X, W, B, beta, l1, l2, gamma, memory=None):
    X, W, B = dense(X).astype(float), W.astype(float), B.astype(float)
    V = W @ B.T
    kept = np.maximum(V, EPSILON)
    num = (X * (kept if beta < 2 else V) ** (beta - 2)) @ B
    den = ((kept if beta < 1 else V) ** (beta - 1)) @ B + l1 + l2 * W
    den[den == 0] = EPSILON
    if memory is None:
        return W * (num / den) ** gamma
    numerator, denominator, rho = memory
    above, below = rho * numerator + num * W ** (1 / gamma), rho * denominator + den
    return (above / below) ** gamma


def cost_naive(X, W, B, beta):
    X, V = dense(X).astype(float), W.astype(float) @ B.T
    counts = X > EPSILON
    x, v = X[counts], np.maximum(V[counts], EPSILON)
    if beta == 2:
        return ((X - V) ** 2).sum() / 2
    if beta == 1:
        return (x * np.log(x / v)).sum() + V.sum() - x.sum()
    if beta == 0:
        return (x / v - np.log(x / v)).sum() - X.size
    total = (x**beta - beta * x * v ** (beta - 1)).sum() + (beta - 1) * (V**beta).sum()
    return total / (beta * (beta - 1))


BETAS = (2, 1, 0, 0.5, 1.5, 3, -1)


@pytest.mark.parametrize("form", ["dense", "csr"])
@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_multiplication_matches_naive(dtype, beta, form):
    for shape, k in ((s, k) for s in SHAPES for k in RANKS[1::3]):
        X, W, B = problem(*shape, k, dtype, form)
        W, B = W + dtype(0.1), B + dtype(0.1)
        penalties = Penalties(0.2, 0.1, 0.3, 0.4)
        gamma = 1 / (2 - beta) if beta < 1 else 1 / (beta - 1) if beta > 2 else 1.0
        expected_W = update_naive(X, W, B, beta, 0.2, 0.3, gamma)
        turned = X.T if form == "dense" else X.T.tocsr()
        expected_B = update_naive(turned, B, expected_W, beta, 0.1, 0.4, gamma)
        results = []
        for threads in (1, 2):
            with fastml.config_context(threads=threads):
                data, w, b = Data(X), Factor(W), Factor(B)
                solver = Multiplication(beta, penalties)
                cost = divergence(data, w, b, beta)
                assert cost == pytest.approx(cost_naive(X, W, B, beta), rel=30 * TOLERANCE[dtype])
                made = solver.update_W(data, w.at, b, summary(b, beta), back=form == "dense")
                solver.update_H(data, w.at, b, made)
                close(w.values, expected_W, dtype, 5)
                close(b.values, expected_B, dtype, 5)
                results.append((w.at.tobytes(), b.at.tobytes(), cost))
        assert results[0] == results[1]


@pytest.mark.parametrize("solver", ["cd", "mu"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_parts_blocks_and_panels_match_naive(dtype, solver):
    # Several parts of rows, several blocks in each, several panels and slices of columns.
    X, W, B = problem(900, 1203, 11, dtype)
    results = []
    for threads in (1, 2):
        w, b = Factor(W), Factor(B)
        with fastml.config_context(threads=threads):
            if solver == "cd":
                descend(Data(X), w, b, Penalties(0.1, 0, 0.3, 0), Rule(0, 1))
            else:
                model = Multiplication(1, Penalties(0.1, 0, 0.3, 0))
                made = model.update_W(Data(X), w.at, b, summary(b, 1), back=True)
                model.update_H(Data(X), w.at, b, made)
        results.append((w.at.tobytes(), b.at.tobytes()))
    if solver == "cd":
        expected_W = sweep_naive(X, W, B, 0.1, 0.3, range(11))[0]
        expected_B = sweep_naive(X.T, B, expected_W, 0, 0, range(11))[0]
    else:
        expected_W = update_naive(X, W, B, 1, 0.1, 0.3, 1)
        expected_B = update_naive(X.T, B, expected_W, 1, 0, 0, 1)
    close(w.values, expected_W, dtype, 20)
    close(b.values, expected_B, dtype, 20)
    assert results[0] == results[1]


@pytest.mark.parametrize("dtype", DTYPES)
def test_quotients_of_any_size_match_naive(dtype):
    X, W, B = problem(64, 37, 3, dtype)
    X, W = X + dtype(0.1), W + dtype(0.1)
    most = np.finfo(dtype).maxexp - 12
    W *= np.exp2(np.linspace(-20, most, 64)).astype(dtype)[:, np.newaxis]
    W[5] = np.finfo(dtype).max
    with np.errstate(over="ignore"):
        V = W @ (B := B + dtype(1)).T
    assert np.isinf(V[5]).all() and np.isfinite(np.delete(V, 5, axis=0)).all()
    w = Factor(W)
    solver = Multiplication(1, Penalties(0, 0, 0, 0))
    solver.update_W(Data(X), w.at, Factor(B), summary(Factor(B), 1), back=True)
    ratio = X / np.maximum(V.astype(np.longdouble), EPSILON)
    expected = W * (ratio @ B / B.sum(axis=0, dtype=np.longdouble))
    np.testing.assert_allclose(w.values, expected.astype(dtype), rtol=20 * np.finfo(dtype).eps)


@pytest.mark.parametrize("form", ["dense", "csr"])
@pytest.mark.parametrize("beta", [2, 1, 0.5, 3])
def test_multiplication_with_memory_matches_naive(beta, form):
    X, W, B = problem(60, 33, 5, np.float64, form)
    W, B = W + 0.1, B + 0.1
    rng = np.random.default_rng(1)
    kept = [Factor(rng.random(B.shape) + 0.1) for _ in range(2)]
    gamma = 1 / (2 - beta) if beta < 1 else 1 / (beta - 1) if beta > 2 else 1.0
    turned = X.T if form == "dense" else X.T.tocsr()
    memory = (kept[0].values, kept[1].values, 0.7)
    expected = update_naive(turned, B, W, beta, 0.1, 0.4, gamma, memory)
    data, w, b = Data(X), Factor(W), Factor(B)
    solver = Multiplication(beta, Penalties(0.2, 0.1, 0.3, 0.4))
    back = form == "dense"
    made = solver.update_W(data, w.at, b, summary(b, beta), update=False, back=back)
    np.testing.assert_array_equal(w.values, W)
    solver.update_H(data, w.at, b, made, (kept[0].at, kept[1].at, 0.7))
    np.testing.assert_allclose(b.values, expected, rtol=1e-11)
    np.testing.assert_allclose((kept[0].values / kept[1].values) ** gamma, expected, rtol=1e-11)


@pytest.mark.parametrize("isa", ["baseline", "avx2"])
def test_lower_instruction_sets(isa):
    if runtime.isa() == "baseline" or os.environ.get("FASTML_ISA"):
        pytest.skip("the others run already")
    names = "test_descent_matches_naive or test_multiplication or test_quotients or test_parts"
    names += " or test_turns or test_steps"
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", __file__]
    subprocess.run(
        [*command, "-k", names], env=os.environ | {"FASTML_ISA": isa}, check=True, timeout=300
    )


CASES = [
    {"solver": "cd"},
    {"solver": "cd", "shuffle": True, "alpha_W": 0.01, "l1_ratio": 0.5},
    {"solver": "cd", "init": "nndsvd", "alpha_W": 0.01, "alpha_H": 0.02},
    *({"solver": "mu", "beta_loss": beta} for beta in (2, 1, 0.5, 2.5)),
    {"solver": "mu", "beta_loss": 1.5, "init": "random", "alpha_W": 0.01, "l1_ratio": 0.4},
    {"solver": "mu", "beta_loss": "kullback-leibler", "init": "nndsvdar", "alpha_W": 0.01},
]


@pytest.mark.parametrize("form", ["dense", "csr", "csc"])
@pytest.mark.parametrize("params", CASES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_same_as_scikit_learn(dtype, params, form):
    X = problem(120, 61, 1, dtype, form)[0]
    params = {"n_components": 5, "random_state": 0, "max_iter": 60} | params
    ours, theirs = NMF(**params), stock.NMF(**params)
    with fastml.config_context(strict=True):
        W = ours.fit_transform(X)
    # scikit-learn divides X's values by W·H's in another order if they are in that of columns.
    X_theirs = X.tocsr() if form == "csc" else X
    W_theirs = theirs.fit_transform(X_theirs)
    assert ours.n_iter_ == theirs.n_iter_
    assert W.dtype == ours.components_.dtype == dtype
    assert ours.reconstruction_err_.dtype == theirs.reconstruction_err_.dtype
    tolerance = 1e-8 if dtype == np.float64 else 5e-3
    for found, expected in (
        (W, W_theirs),
        (ours.components_, theirs.components_),
        (ours.transform(X), theirs.transform(X_theirs)),
        (ours.reconstruction_err_, theirs.reconstruction_err_),
    ):
        np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * np.max(expected))


@pytest.mark.parametrize("dtype", DTYPES)
def test_errors_of_itakura_and_saito_are_in_double(dtype):
    X = np.abs(problem(40, 11, 1, dtype, "dense")[0]) + 1
    params = {"n_components": 3, "beta_loss": 0, "max_iter": 9, "random_state": 0}
    for ours, theirs in (
        (NMF(solver="mu", **params), stock.NMF(solver="mu", **params)),
        (MiniBatchNMF(**params), stock.MiniBatchNMF(**params)),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            found, expected = (each.fit(X).reconstruction_err_ for each in (ours, theirs))
        assert found.dtype == expected.dtype == np.float64
        np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("form", ["dense", "csr", "csc"])
@pytest.mark.parametrize("fresh_restarts", [False, True])
@pytest.mark.parametrize("beta", [2, 1, 0.5, 2.5])
def test_mini_batches_same_as_scikit_learn(beta, fresh_restarts, form):
    X = problem(120, 61, 1, np.float64, form)[0]
    params = {"n_components": 5, "random_state": 0, "max_iter": 6, "batch_size": 50}
    params |= {"beta_loss": beta, "fresh_restarts": fresh_restarts, "alpha_W": 0.01}
    ours, theirs = MiniBatchNMF(**params), stock.MiniBatchNMF(**params)
    X_theirs = X.tocsr() if form == "csc" else X
    found, expected = ours.fit_transform(X), theirs.fit_transform(X_theirs)
    np.testing.assert_allclose(found, expected, atol=1e-9)
    assert (ours.n_iter_, ours.n_steps_) == (theirs.n_iter_, theirs.n_steps_)
    for again in range(2):
        np.testing.assert_allclose(ours.components_, theirs.components_, atol=1e-9)
        np.testing.assert_allclose(ours.transform(X), theirs.transform(X_theirs), atol=1e-9)
        ours.partial_fit(X[again:]), theirs.partial_fit(X_theirs[again:])


@pytest.mark.parametrize("update_H", [False, True])
@pytest.mark.parametrize("solver", ["cd", "mu"])
def test_function_same_as_scikit_learn(solver, update_H):
    X, W, B = problem(50, 30, 4, np.float64)
    W, B = W + 0.1, B + 0.1
    how = {"init": "custom", "solver": solver, "update_H": update_H, "n_components": 4}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = non_negative_factorization(X, W=W.copy(), H=B.T.copy(), **how)
        expected = stock.non_negative_factorization(X, W=W.copy(), H=B.T.copy(), **how)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-9)


def test_l1_penalty_of_transform_is_added_once():
    # scikit-learn adds it to the sums of H that it keeps, once more in each iteration.
    X, _, B = problem(40, 30, 3, np.float64)
    model = NMF(3, solver="mu", beta_loss=1, alpha_W=0.01, l1_ratio=1, random_state=0).fit(X)
    B = Factor(model.components_.T)
    W = Factor(np.full((40, 3), np.sqrt(X.mean() / 3)))
    solver = Multiplication(1, Penalties(0.01 * 30, 0, 0, 0))
    for _ in range(500):
        solver.update_W(Data(X), W.at, B, summary(B, 1), back=False)
    found = model.set_params(max_iter=500, tol=0).transform(X)
    np.testing.assert_allclose(found, W.values, atol=1e-10)


@pytest.mark.parametrize("form", ["dense", "csr"])
def test_hals_needs_fewer_iterations_for_the_same_loss(form):
    rng = np.random.default_rng(0)
    X = rng.random((200, 6)) @ rng.random((6, 120)) + 0.1 * rng.random((200, 120))
    X = X if form == "dense" else sparse.csr_matrix(X)
    plain = NMF(6, init="random", random_state=0, max_iter=50, tol=0).fit(X)
    hals = NMF(6, init="random", random_state=0, max_iter=25, tol=0, solver="hals").fit(X)
    assert hals.reconstruction_err_ < plain.reconstruction_err_
    converted = fastml.to_sklearn(hals)
    assert type(converted) is stock.NMF
    np.testing.assert_allclose(
        converted.set_params(tol=1e-9, max_iter=5000).transform(X),
        hals.set_params(tol=1e-9, max_iter=5000).transform(X),
        atol=1e-5,
    )


@pytest.mark.parametrize("solver", ["cd", "mu"])
def test_layouts_and_degenerate_rows(solver):
    X = problem(60, 40, 1, np.float64)[0]
    X[7], X[:, 3] = 0, 0
    model = NMF(4, solver=solver, init="random", random_state=0, max_iter=30)
    expected = model.fit_transform(X)
    components = model.components_
    assert np.isfinite(expected).all()
    if solver != "mu":
        assert (expected[7] == 0).all() and (components[:, 3] == 0).all()
    frozen = X.copy()
    frozen.flags.writeable = False
    padded = np.zeros((60, 80))
    padded[:, ::2] = X
    for same in (np.asfortranarray(X), frozen, padded[:, ::2]):
        np.testing.assert_allclose(model.fit_transform(same), expected, atol=1e-9)
        np.testing.assert_allclose(model.components_, components, atol=1e-9)
    messy = sparse.coo_matrix(X)
    parts = [np.concatenate([v, v]) for v in (messy.row, messy.col)]
    doubled = sparse.csr_matrix((np.tile(messy.data / 2, 2), parts), shape=X.shape)
    doubled.has_canonical_format = False
    np.testing.assert_allclose(model.fit_transform(doubled), expected, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 1), (7, 5), (600, 500)])
def test_survey_tells_least_and_sum(dtype, shape):
    X = np.random.default_rng(0).normal(size=shape).astype(dtype)
    least, total = survey(X)
    assert least == X.min()
    np.testing.assert_allclose(total, X.sum(dtype=float), atol=1e-9 * X.size)
    for odd in (np.nan, np.inf, -np.inf):
        X[-1, -1] = odd
        assert not np.isfinite(survey(X)[1])
    assert survey(sparse.csr_matrix(shape, dtype=dtype)) == (np.inf, 0)


def test_errors_are_scikit_learns():
    X = problem(20, 10, 1, np.float64)[0]
    negative, missing = X.copy(), X.copy()
    negative[0, 0], missing[0, 0] = -1, np.nan
    for make in (NMF, MiniBatchNMF):
        theirs = getattr(stock, make.__name__)
        for bad, params in (
            (negative, {}),
            (missing, {}),
            (X, {"beta_loss": 0} | ({"solver": "mu"} if make is NMF else {})),
            (X, {"n_components": 15, "init": "nndsvd"}),
        ):
            with pytest.raises(ValueError) as expected:
                theirs(**params).fit(bad)
            with pytest.raises(ValueError, match=r".") as found:
                make(**params).fit(bad)
            assert str(found.value).split()[:4] == str(expected.value).split()[:4]
    with pytest.warns(ConvergenceWarning, match="Maximum number of iterations 2"):
        NMF(3, max_iter=2, random_state=0).fit(X)


class Counter:
    def __init__(self):
        self.names, self.errors = [], []

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context, *, fitted_estimator):
        self.names.append(context.task_name)
        self.errors.append(fitted_estimator.components_.copy())
        return len(self.names) == 5


@pytest.mark.parametrize("make", [NMF, MiniBatchNMF])
def test_callbacks_follow_and_stop(make):
    X = problem(40, 30, 1, np.float64)[0]
    counter = Counter()
    assert isinstance(counter, FitCallback)
    name = "iteration" if make is NMF else "batch"
    model = make(3, random_state=0, tol=0, max_iter=50).set_callbacks(counter).fit(X)
    assert counter.names[:5] == [name] * 5
    np.testing.assert_array_equal(counter.errors[4], model.components_)


def test_descent_runs_on_one_thread_as_on_two():
    X, W, B = problem(700, 90, 6, np.float32)
    outcomes = []
    for threads in (1, 2):
        with fastml.config_context(threads=threads):
            assert n_threads() <= threads
            w, b = Factor(W), Factor(B)
            n = descend(Data(X), w, b, Penalties(0, 0, 0, 0), Rule(1e-4, 20), repeated=True)
            outcomes.append((n, w.at.tobytes(), b.at.tobytes()))
    assert outcomes[0] == outcomes[1]
