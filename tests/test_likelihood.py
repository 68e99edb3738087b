"""Factors by likelihoods: the kernels against naive twins, the estimator, and users' functions."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit
from test_recommendation import N_ITEMS, N_USERS, matrix, ratings

import fastml
from fastml._native import likelihood as native
from fastml.recommendation import ALS, GLMFactorization
from fastml.recommendation._base import padded_copy

FAMILIES = native.FAMILIES
DTYPES = (np.float32, np.float64)
NAIVE = {
    "gaussian": lambda r, s: (-((r - s) ** 2) / 2, r - s, -np.ones_like(s)),
    "bernoulli": lambda r, s: (
        r * s - np.logaddexp(0, s),
        r - expit(s),
        -expit(s) * expit(-s),
    ),
    "poisson": lambda r, s: (r * s - np.exp(s), r - np.exp(s), -np.exp(s)),
}


def drawn(family, scores, rng):
    if family == "gaussian":
        return scores + rng.normal(size=scores.shape)
    if family == "poisson":
        return rng.poisson(np.exp(scores)).astype(float)
    return (rng.random(scores.shape) < expit(scores)).astype(float)


def sample(family, dtype=np.float64, seed=0):
    """Ratings of a third of all pairs, by scores of rank 2."""
    rng = np.random.default_rng(seed)
    U, V = rng.normal(size=(N_USERS, 2)), rng.normal(size=(N_ITEMS, 2))
    scores = 0.3 + 0.8 * U @ V.T + 0.3 * rng.normal(size=(N_USERS, 1))
    pairs = np.argwhere(rng.random(scores.shape) < 0.35)
    values = drawn(family, scores[tuple(pairs.T)], rng)
    return pairs, values.astype(dtype), scores


def objective(model, pairs, values):
    scores = model.decision_function(pairs).astype(np.float64)
    total = -NAIVE[model.likelihood](values, scores)[0].sum()
    counts = (np.bincount(column, minlength=n) for column, n in zip(pairs.T, (N_USERS, N_ITEMS)))
    for count, name in zip(counts, ("user", "item"), strict=True):
        squares = np.square(getattr(model, f"{name}_factors_"), dtype=float).sum(axis=1)
        if model.biases:
            squares += getattr(model, f"{name}_bias_") ** 2
        total += (
            model.alpha / 2 * squares @ (count if model.weighted_alpha else np.ones(len(count)))
        )
    return total


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("n", [1, 7, 16, 1001, 40_000])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("family", FAMILIES)
def test_likelihoods(family, dtype, n, threads):
    rng = np.random.default_rng(n)
    scores = rng.normal(scale=5, size=n).clip(-20, 5).astype(dtype)
    given = drawn(family, scores.astype(float).clip(-5, 5), rng).astype(dtype)
    found = [np.empty(n, dtype) for _ in range(3)]
    address = native.address_of(family, dtype == np.float64)
    native.evaluate(given, scores, address, *found, threads)
    expected = NAIVE[family](given.astype(float), scores.astype(float))
    close = 1e-5 if dtype == np.float32 else 1e-12
    for ours, naive in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, naive, rtol=close, atol=close)


@pytest.mark.parametrize("dtype", DTYPES)
def test_far_scores_stay_numbers(dtype):
    scores, given = np.array([-500, 500, -500, 500], dtype), np.array([0, 1, 1, 0], dtype)
    found = [np.empty(4, dtype) for _ in range(3)]
    native.evaluate(given, scores, native.address_of("bernoulli", dtype == np.float64), *found, 1)
    np.testing.assert_allclose(found[0], [0, 0, -500, -500], atol=1e-200)
    np.testing.assert_allclose(found[1], [0, 0, 1, -1], atol=1e-200)


@pytest.mark.parametrize("f", [1, 16, 17, 50])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("family", FAMILIES)
def test_kernels(family, dtype, f):
    """Rows with no entry, with few, and with more than are worked on at once."""
    rng = np.random.default_rng(f)
    n, m = 9, 1_500
    R = sparse.random(n, m, 0.02, "lil", dtype, random_state=0)
    R[2], R[5] = 0, rng.random(m)
    R = R.tocsr()
    R.data[:] = drawn(family, rng.normal(size=R.nnz), rng)
    x, step = (padded_copy((rng.normal(size=(n, f)) / np.sqrt(f)).astype(dtype)) for _ in "xs")
    Y, offset = padded_copy(rng.normal(size=(m, f)).astype(dtype)), rng.normal(size=m).astype(dtype)
    scores, target, scale = (np.empty(R.nnz, dtype) for _ in range(3))
    loss, penalty = np.empty(n), rng.random(n)
    address = native.address_of(family, dtype == np.float64)
    given = R.data, R.indptr.astype(np.intp), R.indices.astype(np.int32), Y, offset, address
    outcomes = []
    for threads in (1, 2):
        after, moves = x.copy(), np.empty_like(scores)
        native.linearise(*given, x, scores, target, scale, loss, threads)
        found = [a.copy() for a in (scores, target, scale, loss)]
        total = native.damp(*given, penalty, step, after, scores, moves, loss, threads)
        outcomes.append((*found, total, after))
    for one, many in zip(*outcomes, strict=True):
        np.testing.assert_array_equal(one, many)
    close = {"rtol": 2e-4, "atol": 2e-4} if dtype == np.float32 else {"rtol": 1e-9, "atol": 1e-9}
    row = np.repeat(np.arange(n), np.diff(R.indptr))
    dots = (x[row].astype(float) * Y[R.indices]).sum(axis=1)
    value, first, second = NAIVE[family](R.data.astype(float), dots + offset[R.indices])
    curvature = np.maximum(-second, abs(first) / native.longest_move)
    np.testing.assert_allclose(found[0], dots + offset[R.indices], **close)
    np.testing.assert_allclose(found[2], np.sqrt(curvature), **close)
    np.testing.assert_allclose(found[1] * found[2], curvature * dots + first, **close)
    np.testing.assert_allclose(loss, -np.bincount(row, value, n), **close)
    expected, best = x.astype(float), 0.0
    for i in range(n):
        of = row == i

        def loss_at(t, i=i, of=of):
            at = x[i] + t * (step[i].astype(float) - x[i])
            s = Y[R.indices[of]].astype(float) @ at + offset[R.indices[of]]
            return -NAIVE[family](R.data[of], s)[0].sum() + penalty[i] / 2 * at @ at

        t = next((t for t in 0.5 ** np.arange(30) if loss_at(t) <= loss_at(0)), 0.0)
        expected[i] += t * (step[i] - x[i])
        best += loss_at(t)
    np.testing.assert_allclose(after, expected, **close)
    np.testing.assert_allclose(total, best, rtol=close["rtol"])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    "params",
    [{}, {"solver": "cg"}, {"weighted_alpha": True, "alpha": 0.05}, {"biases": False}],
    ids=str,
)
def test_it_minimises_its_objective(params, family, dtype):
    pairs, values, scores = sample(family, dtype)
    params = {"n_components": 2, "max_iter": 100, "tol": 1e-7, "random_state": 0} | params
    model = GLMFactorization(likelihood=family, **params).fit(pairs, values)
    assert model.user_factors_.dtype == model.predict(pairs).dtype == dtype
    losses = np.array(model.loss_curve_)
    assert len(losses) == model.n_iter_
    assert (np.diff(losses) <= 1e-6 * abs(losses[0])).all()
    np.testing.assert_allclose(losses[-1], objective(model, pairs, values), rtol=1e-4)
    whole = model.decision_function(np.argwhere(np.ones(scores.shape)))
    assert np.corrcoef(whole, scores.ravel())[0, 1] > (0.5 if family == "bernoulli" else 0.85)
    assert model.score(pairs, values) == pytest.approx(
        NAIVE[family](values, model.decision_function(pairs).astype(float))[0].mean(), rel=1e-5
    )


def test_gaussian_is_als():
    pairs, values, _ = sample("gaussian")
    shared = {"alpha": 2.0, "max_iter": 400, "tol": 1e-12, "random_state": 0}
    ours = GLMFactorization(3, likelihood="gaussian", **shared).fit(pairs, values)
    als = ALS(3, **shared).fit(pairs, values)
    assert ours.loss_curve_[-1] == pytest.approx(als.loss_curve_[-1] / 2, rel=1e-8)
    np.testing.assert_allclose(ours.predict(pairs), als.predict(pairs), atol=1e-3)


@pytest.mark.parametrize("family", FAMILIES)
def test_new_rows_fold_in(family):
    """Rows of the fit, at its end, come out as they are."""
    pairs, values, _ = sample(family)
    R = matrix(pairs, values)
    model = GLMFactorization(2, likelihood=family, max_iter=500, tol=1e-13, random_state=0).fit(R)
    np.testing.assert_allclose(model.transform(R[:9]), model.user_factors_[:9], atol=2e-3)
    np.testing.assert_allclose(model.transform_items(R.T[:9]), model.item_factors_[:9], atol=2e-3)
    assert (model.transform(sparse.csr_matrix((2, N_ITEMS))) == 0).all()
    before = model.loss_curve_[-1]
    model.partial_fit(R[:3])
    assert objective(model, pairs, values) < before * (1 + 1e-6 * np.sign(before))


def poisson(rating, score):
    mean = np.exp(score)
    return rating * score - mean, rating - mean, -mean


def cauchy(rating, score):
    """Not concave."""
    left = rating - score
    size = 1 + left * left
    return -np.log(size), 2 * left / size, 2 * (left * left - 1) / (size * size)


@pytest.mark.parametrize("dtype", DTYPES)
def test_likelihood_of_the_users(dtype):
    jit = pytest.importorskip("fastml.jit")
    pytest.importorskip("numba")
    pairs, values, scores = sample("poisson", dtype)
    own = GLMFactorization(2, likelihood=jit.likelihood(poisson, mean=np.exp), random_state=0)
    stock = GLMFactorization(2, likelihood="poisson", random_state=0)
    own.fit(pairs, values), stock.fit(pairs, values)
    np.testing.assert_allclose(own.loss_curve_, stock.loss_curve_, rtol=1e-4)
    np.testing.assert_allclose(own.predict(pairs), stock.predict(pairs), rtol=0.05)
    twin = pickle.loads(pickle.dumps(own))
    np.testing.assert_array_equal(twin.predict(pairs), own.predict(pairs))
    plain = GLMFactorization(2, likelihood=poisson, random_state=0).fit(pairs, values)
    np.testing.assert_array_equal(plain.predict(pairs), own.decision_function(pairs))

    robust = GLMFactorization(2, likelihood=cauchy, max_iter=60, alpha=0.3, random_state=0)
    pairs, values, scores = sample("gaussian", dtype)
    values[::20] += 100
    robust.fit(pairs, values)
    assert (np.diff(robust.loss_curve_) <= 1e-6 * robust.loss_curve_[0]).all()
    found = robust.predict(np.argwhere(np.ones(scores.shape)))
    assert np.corrcoef(found, scores.ravel())[0, 1] > 0.8


def test_functions_that_will_not_do():
    jit = pytest.importorskip("fastml.jit")
    pytest.importorskip("numba")
    pairs, values, _ = sample("poisson")

    def of_one(rating):
        return rating, rating, rating

    def number(rating, score):
        return rating - score

    def unknown(rating, score):
        return rating, pickle.dumps(score), score

    def raises(rating, score):
        return score / np.int64(0) + [1.0][int(rating) + 1], score, score

    for f, message in ((of_one, "a rating and a score"), (number, "has to return")):
        with pytest.raises(jit.NotCompilable, match=message):
            GLMFactorization(2, likelihood=f).fit(pairs, values)
    with pytest.raises(jit.NotCompilable):
        GLMFactorization(2, likelihood=unknown).fit(pairs, values)
    with pytest.raises(ValueError, match="not a number"):
        GLMFactorization(2, likelihood=raises, random_state=0).fit(pairs, values)


def test_ratings_that_cannot_be():
    for family, value in (("bernoulli", 2.0), ("bernoulli", -1.0), ("poisson", -1.0)):
        with pytest.raises(ValueError, match="Ratings must not"):
            GLMFactorization(2, likelihood=family).fit([[1, 2], [2, 1]], [1.0, value])
    for value in (0.0, 1.0):
        model = GLMFactorization(2, random_state=0).fit([[1, 2], [2, 1]], [value, value])
        np.testing.assert_allclose(model.predict([[1, 2], [5, 5]]), value, atol=1e-6)


@pytest.mark.parametrize("family", FAMILIES)
def test_same_bits_for_any_number_of_threads(family):
    pairs, values, _ = ratings(np.float32)
    values = values > 3 if family == "bernoulli" else abs(values)
    outcomes = []
    for threads in (1, 2, 3):
        with fastml.config_context(threads=threads):
            model = GLMFactorization(20, likelihood=family, max_iter=4, random_state=0)
            model.fit(pairs, values)
            outcomes.append((model.user_factors_, model.item_bias_, model.loss_curve_))
    for outcome in outcomes[1:]:
        for one, many in zip(outcomes[0], outcome, strict=True):
            np.testing.assert_array_equal(one, many)
