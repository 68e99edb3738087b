"""Gradient descent on ratings: the kernels against naive twins, and the estimator."""

import numpy as np
import pytest
from scipy import sparse
from test_recommendation import N_ITEMS, N_USERS, matrix, ratings

import fastml
from fastml._native import sgd_factors as native
from fastml.recommendation import ALS, SGDFactorization
from fastml.recommendation._base import padded_copy
from fastml.recommendation._sgd import Places

DTYPES = (np.float32, np.float64)
GROUP = 7


def kind(dtype):
    return np.dtype([("user", np.int32), ("item", np.int32), ("value", dtype)])


def deal(R, parts, seed=5, threads=1):
    """Cells, their bounds, and the places of users and items."""
    R = R.tocsr()
    users = Places.of(np.diff(R.indptr), parts)
    items = Places.of(np.bincount(R.indices, minlength=R.shape[1]), parts)
    out = np.empty(R.nnz * kind(R.dtype).itemsize, np.int8)
    begin = np.empty(parts**2 + 1, np.intp)
    native.deal_ratings(
        R.data,
        R.indptr.astype(np.intp),
        R.indices.astype(np.int32),
        users.row_at,
        items.place,
        items.part,
        users.first,
        GROUP,
        seed,
        out,
        begin,
        threads,
    )
    return out, begin, users, items


@pytest.mark.parametrize("parts", [1, 3, 16])
@pytest.mark.parametrize("dtype", DTYPES)
def test_ratings_are_dealt_to_their_cells(dtype, parts):
    R = sparse.random(70, 40, 0.3, "csr", dtype, random_state=0)
    out, begin, users, items = deal(R, parts, threads=2)
    cells = out.view(kind(dtype))
    for side in (users, items):
        np.testing.assert_array_equal(side.row_at[side.place], np.arange(len(side.place)))
        assert np.ptp(np.diff(side.first)) <= 1
    for a in range(parts):
        for b in range(parts):
            cell = cells[slice(*begin[a * parts + b : a * parts + b + 2])]
            assert (users.part[users.row_at[cell["user"]]] == a).all()
            assert (items.part[items.row_at[cell["item"]]] == b).all()
            assert (np.diff(cell["user"] // GROUP) >= 0).all()
            assert ((users.first[a] <= cell["user"]) & (cell["user"] < users.first[a + 1])).all()
    found = sparse.csr_matrix(
        (cells["value"], (users.row_at[cells["user"]], items.row_at[cells["item"]])), R.shape
    )
    assert abs(found - R).max() == 0
    np.testing.assert_array_equal(deal(R, parts)[0], out)
    assert (deal(R, parts, seed=6)[0] != out).any()


def epoch_naive(cells, begin, diagonals, U, V, P, Q, rate, bias_penalty, adaptive, biases):
    """In double; U, V, P and Q are changed."""
    total, parts = 0.0, len(diagonals)
    for d in diagonals:
        for a in range(parts):
            at = a * parts + (a + d) % parts
            for i, j, value in cells[begin[at] : begin[at + 1]]:
                error = value - U[i] @ V[j] - P[i, 0] - Q[j, 0]
                g, h = error * V[j] - P[i, 1] * U[i], error * U[i] - Q[j, 1] * V[j]
                U[i] += rate / (np.sqrt(P[i, 2]) if adaptive else 1) * g
                V[j] += rate / (np.sqrt(Q[j, 2]) if adaptive else 1) * h
                if adaptive:
                    P[i, 2] += np.mean(g**2)
                    Q[j, 2] += np.mean(h**2)
                for row in (P[i], Q[j]) if biases else ():
                    slope = error - bias_penalty * row[1] * row[0]
                    row[0] += rate / (np.sqrt(row[3]) if adaptive else 1) * slope
                    row[3] += slope**2
                total += error**2
    return total


@pytest.mark.parametrize("biases", [False, True])
@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("f", [1, 5, 16, 17, 50, 64, 90, 130])
def test_epoch(f, dtype, adaptive, biases):
    rng = np.random.default_rng(f)
    R = sparse.random(40, 30, 0.3, "csr", dtype, random_state=0)
    out, begin, _, _ = deal(R, 4)
    U, V = (rng.normal(size=(n, f)) / np.sqrt(f) for n in R.shape)
    P, Q = (np.c_[np.zeros(n), rng.random(n), np.ones((n, 2))] for n in R.shape)
    diagonals = rng.permutation(4).astype(np.int32)
    outcomes = []
    for threads in (1, 2, 3):
        given = [padded_copy(F.astype(dtype)) for F in (U, V)]
        given += [F.astype(dtype) for F in (P, Q)]
        error = native.descend_epoch(
            *given, f, out, begin, diagonals, 0.05, 0.7, adaptive, biases, threads
        )
        outcomes.append((error, *given))
    for outcome in outcomes[1:]:
        for one, many in zip(outcomes[0], outcome, strict=True):
            np.testing.assert_array_equal(one, many)
    expected = epoch_naive(
        out.view(kind(dtype)), begin, diagonals, U, V, P, Q, 0.05, 0.7, adaptive, biases
    )
    error, *found = outcomes[0]
    tolerance = 1e-5 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(error, expected, rtol=tolerance)
    for ours, naive in zip(found, (U, V, P, Q), strict=True):
        assert ours.shape[1] == naive.shape[1] or (ours[:, naive.shape[1] :] == 0).all()
        used = slice(None) if adaptive or naive.shape[1] != 4 else slice(2)
        np.testing.assert_allclose(
            ours[:, : naive.shape[1]][:, used], naive[:, used], tolerance, tolerance
        )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"weighted_alpha": False, "alpha": (0.5, 1.0)},
        {"learning_rate": "constant", "eta0": 0.02},
        {"learning_rate": "invscaling", "eta0": 0.1, "power_t": 0.5},
        {"biases": False, "n_components": 5},
    ],
    ids=str,
)
def test_it_minimises_what_als_minimises(params, dtype):
    pairs, values, whole = ratings(dtype)
    params = {"alpha": 0.01, "max_iter": 300, "tol": 0, "random_state": 0} | params
    params = {"n_components": 3, "weighted_alpha": True} | params
    model = SGDFactorization(**params).fit(pairs, values)
    assert model.user_factors_.dtype == model.predict(pairs).dtype == dtype
    assert model.loss_curve_[-1] < model.loss_curve_[0] / 3
    shared = ("n_components", "alpha", "weighted_alpha", "biases")
    best = ALS(**{name: getattr(model, name) for name in shared}, max_iter=300, random_state=0)
    best = best.fit(pairs, values).loss_curve_[-1]
    assert 0.9 * best < model.loss_curve_[-1] < 1.3 * best
    completed = model.predict(np.argwhere(np.ones(whole.shape)))
    limit = 0.25 if model.biases else 0.6
    assert np.sqrt(np.mean((completed - whole.ravel()) ** 2)) < limit


def test_scale_of_ratings_does_not_matter():
    pairs, values, _ = ratings()
    model = SGDFactorization(3, alpha=0.02, biases=False, random_state=0).fit(pairs, values)
    tens = SGDFactorization(3, alpha=0.2, biases=False, random_state=0).fit(pairs, 10 * values)
    np.testing.assert_allclose(tens.user_factors_, np.sqrt(10) * model.user_factors_)
    constant = SGDFactorization(3, random_state=0).fit(pairs, np.full(len(pairs), 4.0))
    np.testing.assert_allclose(constant.predict(pairs), 4, atol=0.1)


def test_same_bits_for_any_number_of_threads():
    R = sparse.random(2_000, 900, 0.05, "csr", np.float32, random_state=0)
    outcomes = []
    for threads in (1, 2, 3):
        with fastml.config_context(threads=threads):
            model = SGDFactorization(20, max_iter=3, random_state=0).fit(R)
        outcomes.append((model.user_factors_, model.item_bias_, model.loss_curve_))
    for outcome in outcomes[1:]:
        for one, many in zip(outcomes[0], outcome, strict=True):
            np.testing.assert_array_equal(one, many)


def test_early_stopping():
    pairs, values, _ = ratings(noise=1.0)
    model = SGDFactorization(20, alpha=0.0, early_stopping=True, max_iter=200, random_state=0).fit(
        pairs, values
    )
    assert len(model.validation_curve_) == model.n_iter_ < 200
    assert model.validation_curve_[-1] < model.validation_curve_[0]
    assert SGDFactorization(2, max_iter=2).fit(pairs, values).validation_curve_ == []


def test_warm_start():
    pairs, values, _ = ratings()
    first = pairs[:, 0] < 100
    model = SGDFactorization(3, alpha=0.01, warm_start=True, max_iter=50, tol=0, random_state=0)
    model.fit(pairs[first], values[first])
    before = model.loss_curve_[-1]
    model.fit(pairs[first], values[first])
    assert model.loss_curve_[0] < before * 1.01
    assert model.loss_curve_[-1] < before
    model.partial_fit(pairs[~first][:9], values[~first][:9])
    model.fit(pairs, values)
    assert len(model.user_factors_) == N_USERS
    assert model.score(pairs, values) > 0.99
    model.n_components = 4
    with pytest.raises(ValueError, match="n_components has to stay 3"):
        model.fit(pairs, values)


def test_new_rows_fold_in_and_empty_ones_are_zero():
    pairs, values, _ = ratings()
    R = matrix(pairs, values)
    model = SGDFactorization(3, alpha=0.02, max_iter=500, tol=0, random_state=0).fit(R)
    np.testing.assert_allclose(model.transform(R[:9]), model.user_factors_[:9], atol=0.1)
    R = sparse.csr_matrix(R.toarray() * (np.arange(N_ITEMS) != 7))
    model = SGDFactorization(3, random_state=0, warm_start=True).fit(R)
    for _ in range(2):
        assert (model.item_factors_[7] == 0).all()
        assert model.item_bias_[7] == 0
        model.fit(R)


def test_steps_that_are_too_long():
    pairs, values, _ = ratings()
    model = SGDFactorization(3, learning_rate="constant", eta0=50.0, random_state=0)
    with pytest.raises(ValueError, match=r"eta0=50\.0 is too large"):
        model.fit(pairs, values)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_hardly_any_ratings(n):
    pairs = np.c_[np.arange(n), np.arange(n)[::-1]]
    model = SGDFactorization(4, early_stopping=n > 1, random_state=0).fit(pairs, np.arange(n))
    assert np.isfinite(model.predict(pairs)).all()
