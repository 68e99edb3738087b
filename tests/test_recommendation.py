"""Matrix completion and recommendation, from ratings as users have them."""

import doctest
import pickle

import numpy as np
import pandas
import polars
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from threadpoolctl import threadpool_limits

import fastml
from fastml.callback import FitCallback
from fastml.recommendation import ALS, ImplicitALS, split_ratings

RNG = np.random.default_rng(0)
N_USERS, N_ITEMS = 120, 80


def ratings(dtype=np.float64, noise=0.05, seed=0):
    """A third of a matrix of rank 3 with biases, and the whole of it."""
    rng = np.random.default_rng(seed)
    U, V = rng.normal(size=(N_USERS, 3)), rng.normal(size=(N_ITEMS, 3))
    whole = 3.5 + U @ V.T + rng.normal(size=(N_USERS, 1)) + rng.normal(size=N_ITEMS)
    user, item = np.nonzero(rng.random(whole.shape) < 0.35)
    values = whole[user, item] + noise * rng.normal(size=len(user))
    return np.c_[user, item], values.astype(dtype), whole


def matrix(pairs, values):
    return sparse.csr_matrix((values, (pairs[:, 0], pairs[:, 1])), shape=(N_USERS, N_ITEMS))


def counts(seed=0):
    """How often users took items, in two kinds of users and items."""
    rng = np.random.default_rng(seed)
    like = np.where(np.arange(N_USERS)[:, None] % 2 == np.arange(N_ITEMS) % 2, 1.0, 0.05)
    return sparse.csr_matrix(rng.poisson(0.3 * like).astype(np.float32))


def objective(model, pairs, values):
    """What ALS says that it minimises."""
    alpha = model.alpha if isinstance(model.alpha, tuple) else (model.alpha, model.alpha)
    total = np.square(values - model.predict(pairs), dtype=np.float64).sum()
    for side, penalty in enumerate(alpha):
        factors = (model.user_factors_, model.item_factors_)[side]
        bias = (model.user_bias_, model.item_bias_)[side]
        squares = np.square(factors, dtype=np.float64).sum(axis=1)
        squares += 0 if bias is None else bias**2
        if model.weighted_alpha:
            squares *= np.bincount(pairs[:, side], minlength=len(squares))
        total += penalty * squares.sum()
    return total


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"solver": "cg"},
        {"solver": "blocks"},
        {"init": "svd"},
        {"weighted_alpha": True, "alpha": 0.01},
        {"alpha": (0.3, 2.0)},
        {"nonnegative": True},
        {"biases": False, "n_components": 5},
    ],
    ids=str,
)
def test_als_minimises_its_objective(params, dtype):
    pairs, values, whole = ratings(dtype)
    params = {"n_components": 3, "alpha": 0.5, "max_iter": 60, "random_state": 0} | params
    model = ALS(**params).fit(pairs, values)
    assert model.user_factors_.dtype == model.predict(pairs).dtype == dtype
    losses = np.array(model.loss_curve_)
    assert len(losses) == model.n_iter_
    assert (np.diff(losses) <= 1e-6 * losses[0]).all()
    np.testing.assert_allclose(losses[-1], objective(model, pairs, values), rtol=1e-4)
    if model.nonnegative:
        assert min(model.user_factors_.min(), model.item_factors_.min()) >= 0
        return
    completed = model.predict(np.argwhere(np.ones(whole.shape)))
    limit = 0.15 if model.biases else 0.6
    assert np.sqrt(np.mean((completed - whole.ravel()) ** 2)) < limit


def test_a_matrix_is_the_same_as_pairs():
    pairs, values, _ = ratings()
    values[:50] = 0  # which count
    R = matrix(pairs, values)
    model = ALS(3, random_state=0)
    expected = clone(model).fit(pairs, values)
    for given in (R, R.tocsc(), R.tocoo(), R.tolil(), sparse.csr_array(R)):
        if given.format == "lil":  # has no explicit zeros
            continue
        found = clone(model).fit(given)
        np.testing.assert_array_equal(found.user_factors_, expected.user_factors_)
        np.testing.assert_array_equal(found.predict(R), expected.predict(pairs))
        np.testing.assert_array_equal(expected.predict(given), expected.predict(pairs))
        assert found.score(given) == pytest.approx(expected.score(pairs, values))
    shuffled = RNG.permutation(len(pairs))
    found = clone(model).fit(pairs[shuffled], values[shuffled])
    np.testing.assert_array_equal(found.user_factors_, expected.user_factors_)


def test_ids_of_any_type():
    pairs, values, _ = ratings()
    expected = ALS(3, random_state=0).fit(pairs, values)
    predicted = expected.predict(pairs)
    users = np.array([f"user {i:04d}" for i in range(N_USERS)])
    items = np.arange(N_ITEMS) * 7919 + 10**12
    mixed = np.empty(pairs.shape, object)
    mixed[:, 0], mixed[:, 1] = users[pairs[:, 0]].tolist(), items[pairs[:, 1]].tolist()
    for given in (mixed, mixed.tolist(), np.c_[pairs[:, 0] + 0.5, items[pairs[:, 1]]]):
        model = ALS(3, random_state=0).fit(given, values)
        np.testing.assert_array_equal(model.predict(given), predicted)
        found, scores = model.recommend(model.user_ids_[5], k=4)
        places, expected_scores = expected.recommend(5, k=4)
        np.testing.assert_array_equal(found, model.item_ids_[places])
        np.testing.assert_array_equal(scores, expected_scores)
    assert model.item_ids_.tolist() == items.tolist()
    strings = np.c_[users[pairs[:, 0]], users[pairs[:, 1]]]
    model = ALS(3, random_state=0).fit(strings, values)
    np.testing.assert_array_equal(model.predict(strings), predicted)
    with pytest.raises(ValueError, match="of type int64"):
        model.predict(pairs)


@pytest.mark.parametrize("frames", [pandas, polars])
def test_frames(frames):
    pairs, values, _ = ratings()
    names = [f"user {i:04d}" for i in pairs[:, 0]]
    frame = frames.DataFrame({"user": names, "item": pairs[:, 1]})
    model = ALS(3, random_state=0).fit(frame, frames.Series(values))
    expected = ALS(3, random_state=0).fit(pairs, values)
    np.testing.assert_array_equal(model.predict(frame), expected.predict(pairs))
    assert model.user_ids_.tolist() == sorted(set(names))
    found, _ = model.recommend(frame["user"][:3], k=2)
    np.testing.assert_array_equal(found, expected.recommend(pairs[:3, 0], k=2)[0])


def test_duplicates():
    pairs, values = np.array([[0, 1], [1, 0], [0, 1], [1, 1], [0, 1]]), np.array([5.0, 2, 1, 3, 3])
    R = sparse.coo_matrix((values, pairs.T), shape=(2, 2))
    for given in ((pairs, values), (R,), (R.tocsr(),)):
        if given[0] is not R and sparse.issparse(given[0]):
            continue  # the conversion added them up
        with pytest.raises(ValueError, match="2 ratings of pairs that have one already"):
            ALS(1).fit(*given)
        for how, value in (("mean", 3.0), ("last", 3.0)):
            model = ALS(1, duplicates=how, random_state=0).fit(*given)
            once = ALS(1, random_state=0).fit(pairs[[0, 1, 3]], np.array([value, 2, 3]))
            np.testing.assert_allclose(model.user_factors_, once.user_factors_)


def test_the_unknown_is_predicted_by_biases():
    pairs, values, _ = ratings()
    model = ALS(3, random_state=0).fit(pairs, values)
    found = model.predict([[3, 10**6], [10**6, 4], [-1, 10**6]])
    mean = model.global_bias_
    expected = [mean + model.user_bias_[3], mean + model.item_bias_[4], mean]
    np.testing.assert_allclose(found, expected)
    assert len(model.predict(np.empty((0, 2), int))) == 0
    with pytest.raises(ValueError, match="1 of the users were not there"):
        model.recommend([3, 10**6])
    with pytest.raises(ValueError, match="1 of the items were not there"):
        model.similar_items(10**6)
    R = sparse.csr_matrix(matrix(pairs, values).toarray() * (np.arange(N_USERS) != 7)[:, None])
    model = ALS(3, random_state=0).fit(R)
    assert (model.user_factors_[7] == 0).all()
    np.testing.assert_allclose(model.predict([[7, 4]]), model.global_bias_ + model.item_bias_[4])
    items, _ = model.recommend(7, k=3)
    np.testing.assert_array_equal(items[0], np.argsort(-model.item_bias_)[:3])


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[1, 2, 3]], [1.0], "pairs of a user and an item"),
        (np.ones((4, 4)), None, "has to be sparse"),
        ([[1, 2]], None, "Pairs need ratings"),
        ([[1, 2]], [1.0, 2.0], "Expected 1 ratings"),
        ([[1, 2]], [np.nan], "NaN or infinite"),
        ([[1, 2]], ["good"], "real numbers"),
        ([[1, None]], [1.0], "without a user"),
        ([[1, np.nan]], [1.0], "without a user"),
        ([["ann", pandas.NA]], [1.0], "without a user"),
        (np.empty((0, 2), int), [], "no ratings"),
        (sparse.csr_matrix((3, 4)), None, "no ratings"),
    ],
)
def test_bad_ratings(X, y, message):
    with pytest.raises(ValueError, match=message):
        ALS(2).fit(X, y)


def test_bad_parameters():
    pairs, values, _ = ratings()
    for params in ({"n_components": 0}, {"alpha": -1.0}, {"alpha": (1.0, -1.0)}, {"solver": "lu"}):
        with pytest.raises(ValueError, match=next(iter(params))):
            ALS(**params).fit(pairs, values)
    with pytest.raises(ValueError, match="negative"):
        ImplicitALS(2).fit(pairs, -values)
    with pytest.raises(ValueError, match="k has to be"):
        ALS(2).fit(pairs, values).recommend(0, k=0)


def test_one_rating_and_more_factors_than_anything():
    model = ALS(20, random_state=0).fit([["a", "b"]], [4.0])
    assert model.predict([["a", "b"]]) == 4
    items, scores = model.recommend("a", k=5)
    assert items.tolist() == [[None]]
    assert scores[0, 0] == -np.inf
    assert model.recommend("a", filter_seen=False)[0].tolist() == [["b"]]
    pairs, values, _ = ratings(np.float32)
    model = ALS(200, random_state=0, init="svd", max_iter=3).fit(pairs, values)
    assert np.isfinite(model.predict(pairs)).all()


@pytest.mark.parametrize("filter_seen", [True, False])
@pytest.mark.parametrize("users", [None, [5], list(range(0, N_USERS, 3))])
def test_recommend(users, filter_seen):
    pairs, values, _ = ratings()
    model = ALS(3, random_state=0).fit(pairs, values)
    items, scores = model.recommend(users, k=12, filter_seen=filter_seen)
    rows = np.arange(N_USERS) if users is None else np.array(users)
    whole = model.predict(np.argwhere(np.ones((N_USERS, N_ITEMS)))).reshape(N_USERS, N_ITEMS)
    if filter_seen:
        whole[pairs[:, 0], pairs[:, 1]] = -np.inf
    expected = np.argsort(-whole[rows], axis=1)[:, :12]
    np.testing.assert_array_equal(items, expected)
    np.testing.assert_allclose(scores, np.take_along_axis(whole[rows], expected, axis=1))
    shown, _ = model.recommend(users, k=10**6, filter_seen=filter_seen)
    assert shown.shape == (len(rows), N_ITEMS)
    assert ((shown == -1).sum(axis=1) == (np.isinf(whole[rows]).sum(axis=1))).all()


def test_similar_items():
    pairs, values, _ = ratings()
    model = ALS(3, random_state=0).fit(pairs, values)
    items, cosines = model.similar_items(k=5)
    unit = model.item_factors_ / np.linalg.norm(model.item_factors_, axis=1, keepdims=True)
    C = unit @ unit.T
    np.fill_diagonal(C, -np.inf)
    np.testing.assert_array_equal(items, np.argsort(-C, axis=1)[:, :5])
    np.testing.assert_allclose(cosines, -np.sort(-C, axis=1)[:, :5])
    np.testing.assert_array_equal(model.similar_items([4, 9], k=5)[0], items[[4, 9]])


@pytest.mark.parametrize("make", [ALS, ImplicitALS])
def test_new_rows_fold_in(make):
    """Rows of the fit, at its end, come out as they are."""
    pairs, values, _ = ratings()
    R = matrix(pairs, np.maximum(values, 0))
    model = make(3, alpha=1.0, max_iter=500, tol=1e-13, random_state=0).fit(R)
    np.testing.assert_allclose(model.transform(R[:9]), model.user_factors_[:9], atol=1e-4)
    np.testing.assert_allclose(model.transform_items(R.T[:9]), model.item_factors_[:9], atol=1e-4)
    known, scores = model.recommend(range(9), k=5)
    items, found = model.recommend(R[:9], k=5)
    np.testing.assert_array_equal(items, known)
    np.testing.assert_allclose(found, scores, atol=1e-3)
    assert (model.transform(sparse.csr_matrix((2, N_ITEMS))) == 0).all()
    for bad in (R[:, :5], R.toarray()):
        with pytest.raises(ValueError, match=f"a sparse matrix with {N_ITEMS} columns"):
            model.transform(bad)


@pytest.mark.parametrize("form", ["pairs", "matrix"])
def test_partial_fit(form):
    pairs, values, whole = ratings()
    first = (pairs[:, 0] < 100) & (pairs[:, 1] < 70)
    model = ALS(3, alpha=0.5, max_iter=60, random_state=0)
    if form == "pairs":
        model.partial_fit(pairs[first], values[first])
        model.partial_fit(pairs[~first], values[~first])
    else:
        R = matrix(pairs, values)
        model.partial_fit(R[:100, :70])
        late = R.copy()
        late.data[:] = np.where((R.nonzero()[0] < 100) & (R.nonzero()[1] < 70), 0, R.data)
        late.eliminate_zeros()
        model.partial_fit(late)
    assert len(model.user_ids_) == N_USERS
    assert len(model.item_ids_) == N_ITEMS
    completed = model.predict(np.argwhere(np.ones(whole.shape)))
    assert np.sqrt(np.mean((completed - whole.ravel()) ** 2)) < 0.25
    # A rating takes the place of the one before.
    before = model.predict(pairs[:1])
    model.partial_fit(pairs[:1], values[:1] + 50)
    assert model.predict(pairs[:1]) > before + 1
    assert model._table.matrix.nnz == len(pairs)


def test_partial_fit_of_new_names():
    pairs = np.array([["ann", "tea"], ["ann", "milk"], ["bob", "tea"], ["bob", "cocoa"]])
    model = ALS(1, alpha=0.1, random_state=0).partial_fit(pairs, [5, 1, 4, 2])
    model.partial_fit([["eve", "rum"], ["eve", "tea"]], [1, 5])
    assert model.user_ids_.tolist() == ["ann", "bob", "eve"]
    assert model.item_ids_.tolist() == ["cocoa", "milk", "tea", "rum"]
    assert model.predict([["eve", "tea"]]) > model.predict([["eve", "rum"]])
    assert model.recommend("eve", k=4)[0][0, 2:].tolist() == [None, None]


@pytest.mark.parametrize("solver", ["cholesky", "cg", "blocks"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_implicit_minimises_its_objective(dtype, solver):
    R = counts().astype(dtype)
    R.data[:5] = 0  # as if it were not there
    model = ImplicitALS(
        4, alpha=0.3, confidence=2.0, solver=solver, max_iter=40, tol=0, random_state=0
    ).fit(R)
    losses = np.array(model.loss_curve_)
    assert (np.diff(losses) <= 1e-5 * losses[0]).all()
    U, V = model.user_factors_.astype(np.float64), model.item_factors_.astype(np.float64)
    D = R.toarray().astype(np.float64)
    loss = ((1 + 2 * D) * ((D > 0) - U @ V.T) ** 2).sum() + 0.3 * ((U**2).sum() + (V**2).sum())
    np.testing.assert_allclose(losses[-1], loss, rtol=1e-4 if dtype == np.float32 else 1e-9)
    # No user has anything to gain.
    for i in range(5):
        c = 1 + 2 * D[i]
        u = np.linalg.solve((V.T * c) @ V + 0.3 * np.eye(4), V.T @ (c * (D[i] > 0)))
        np.testing.assert_allclose(model.transform(R[i])[0], u, atol=2e-3)


def test_implicit_recommends_what_is_alike():
    R = counts()
    train, test = split_ratings(np.argwhere(R), test_size=0.2, random_state=0)
    pairs = np.argwhere(R)
    model = ImplicitALS(2, random_state=0).fit(pairs[train])
    items, _ = model.recommend(k=10)
    right = items % 2 == model.user_ids_[:, np.newaxis] % 2
    assert right.mean() > 0.95
    chance = np.mean([1 / N_ITEMS * 10 * 0.2])
    assert model.score(pairs[test]) > 3 * chance
    assert model.score(pairs[:0]) == 0


def test_cross_validation_and_search():
    pairs, values, _ = ratings()
    folds = KFold(3, shuffle=True, random_state=0)
    model = ALS(3, alpha=0.5, random_state=0)
    assert cross_val_score(model, pairs, values, cv=folds).min() > 0.9
    grid = {"n_components": [1, 3], "alpha": [0.5, 500.0]}
    search = GridSearchCV(model, grid, scoring="neg_root_mean_squared_error", cv=folds)
    search.fit(pairs, values)
    assert search.best_params_ == {"n_components": 3, "alpha": 0.5}
    assert search.predict(pairs[:3]).shape == (3,)
    search = GridSearchCV(ImplicitALS(2, random_state=0), {"confidence": [1.0, 9.0]}, cv=folds)
    assert search.fit(np.argwhere(counts())).best_score_ > 0


@pytest.mark.parametrize("make", [ALS, ImplicitALS])
@pytest.mark.parametrize("solver", ["cholesky", "cg"])
def test_same_bits_for_any_number_of_threads(make, solver):
    pairs, values, _ = ratings(np.float32)
    outcomes = []
    for threads in (1, 2, 3):
        with fastml.config_context(threads=threads):
            model = make(20, solver=solver, max_iter=4, random_state=0)
            model.fit(matrix(pairs, np.abs(values)))
            outcomes.append((model.user_factors_, *model.recommend(k=5), model.loss_curve_))
    for outcome in outcomes[1:]:
        for one, many in zip(outcomes[0], outcome, strict=True):
            np.testing.assert_array_equal(one, many)


def test_first_factors_depend_on_no_threads():
    R = sparse.random(400, 300, 0.1, random_state=0, format="csr")
    model = ALS(50, biases=False, init="svd", max_iter=2, random_state=0)
    with threadpool_limits(1):  # of BLAS as well
        expected = clone(model).fit(R)
    found = clone(model).fit(R)
    np.testing.assert_array_equal(found.user_factors_, expected.user_factors_)


class StopAfterThree(FitCallback):
    def __init__(self):
        self.scores = []

    def setup(self, estimator, context):
        self.scores.clear()

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context, *, X, y, fitted_estimator):
        if context.task_name == "iteration":
            self.scores.append(fitted_estimator.score(X, y))
        return len(self.scores) == 3

    def teardown(self, estimator, context):
        pass


def test_callbacks():
    pairs, values, _ = ratings()
    callback = StopAfterThree()
    model = ALS(3, tol=0, random_state=0)
    model.set_callbacks(callback)
    model.fit(pairs, values)
    assert model.n_iter_ == 3
    assert callback.scores[-1] == model.score(pairs, values)


def test_pickle_and_refit():
    pairs, values, _ = ratings()
    model = ALS(3, random_state=0).fit(pairs, values)
    twin = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(twin.predict(pairs), model.predict(pairs))
    np.testing.assert_array_equal(twin.recommend(3)[0], model.recommend(3)[0])
    state = set(vars(model))
    model.predict(pairs), model.recommend(), model.transform(matrix(pairs, values))
    assert set(vars(model)) == state
    few = pairs[:, 0] < 50
    model.fit(pairs[few], values[few])
    assert len(model.user_factors_) == len(model.user_ids_) == 50


def test_split_ratings():
    pairs, _, _ = ratings()
    times = RNG.permutation(len(pairs))
    for per_user in (True, False):
        for given in (None, times):
            for size in (0.25, 3):
                train, test = split_ratings(
                    pairs, times=given, test_size=size, per_user=per_user, random_state=0
                )
                assert sorted([*train, *test]) == list(range(len(pairs)))
                assert set(pairs[:, 0]) == set(pairs[train, 0])
                assert (np.diff(train) > 0).all()
                if per_user and size == 3:
                    assert (np.bincount(pairs[test, 0]) == 3).all()
                if given is not None and not per_user:
                    assert times[train].max() < times[test].min()
                if given is not None and per_user:
                    for user in range(5):
                        of_user = pairs[:, 0] == user
                        early = times[train][of_user[train]].max()
                        assert early < times[test][of_user[test]].min()
    train, test = split_ratings([[1, 1], [2, 1], [2, 2]], test_size=5)
    assert len(test) == 1  # something is left to learn from
    with pytest.raises(ValueError, match="test_size"):
        split_ratings(pairs, test_size=1.5)


@pytest.mark.parametrize("name", fastml.recommendation.__all__)
def test_example(name):
    finder, runner = doctest.DocTestFinder(recurse=False), doctest.DocTestRunner()
    tests = finder.find(getattr(fastml.recommendation, name), name)
    assert sum(len(test.examples) for test in tests) >= 2
    assert not any(runner.run(test).failed for test in tests)


def test_rmse():
    assert fastml.metrics.rmse([1.0, 2.0], [1.0, 4.0]) == pytest.approx(2**0.5)
