"""Matrix completion where ids, ratings, parameters or models are not what they should be."""

import numpy as np
import pandas
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from test_recommendation import N_ITEMS, N_USERS, counts, matrix, ratings

import fastml
from fastml.callback import FitCallback
from fastml.recommendation import ALS, GLMFactorization, ImplicitALS, split_ratings


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint64"])
def test_ids_of_short_and_of_unsigned_integers(dtype):
    """Differences of ids need not fit their type, nor the numbers of another."""
    limits, n = np.iinfo(dtype), 150
    if dtype == "uint64":
        ids = np.arange(n, dtype=dtype) + np.uint64(2**63 + 5)
    else:
        ids = np.linspace(limits.min, limits.max, n).astype(dtype)
    pairs = np.c_[ids, ids[::-1]]
    values = np.arange(150.0)
    model = ALS(2, random_state=0).fit(pairs, values)
    expected = ALS(2, random_state=0).fit(pairs.tolist(), values)
    assert model.user_ids_.tolist() == expected.user_ids_.tolist() == ids.tolist()
    np.testing.assert_array_equal(model.predict(pairs), expected.predict(pairs))
    np.testing.assert_array_equal(model.predict(pairs.tolist()), expected.predict(pairs))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint64])
def test_unknown_integers_of_another_type(dtype):
    model = ALS(2, random_state=0).fit([[1000, -5], [1001, -4], [1001, -5]], [1, 2, 3])
    predicted = model.predict(np.array([[1, 1], [100, 120]], dtype))
    np.testing.assert_array_equal(predicted, np.float32([2, 2]))


def test_hashes_and_integers_below_zero():
    """Integers with and without a sign have no type in common: not even for NumPy."""
    hashes = [2**63 + 1, 2**63 + 2, 2**64 - 1]
    model = ALS(1, random_state=0).fit(np.array([[h, 1] for h in hashes], np.uint64), [1.0, 2, 3])
    model.partial_fit([[-1, 1]], [4.0])
    assert model.user_ids_.tolist() == [*hashes, -1]
    predicted = model.predict([[h, 1] for h in model.user_ids_.tolist()])
    assert (np.diff(predicted) > 0).all()


@pytest.mark.parametrize("unit", ["ns", "us"])
def test_ids_of_time_as_objects(unit):
    days = pandas.to_datetime(["2020-01-01", "2020-01-02", "2020-01-01"]).astype(f"M8[{unit}]")
    frame = pandas.DataFrame({"user": days, "item": ["a", "a", "b"]})
    model = ALS(1, alpha=0.1, random_state=0).fit(frame, [1.0, 2.0, 3.0])
    expected = model.predict(frame)
    objects = [[day, item] for day, item in zip(days, frame["item"], strict=True)]
    np.testing.assert_array_equal(model.predict(objects), expected)
    again = ALS(1, alpha=0.1, random_state=0).fit(objects, [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(again.predict(frame), expected)


class Failing(FitCallback):
    def on_fit_task_end(self, estimator, context, **kwargs):
        raise KeyboardInterrupt


@pytest.mark.parametrize("name", ["ALS", "ImplicitALS", "SGDFactorization", "GLMFactorization"])
def test_what_fails_changes_nothing(name):
    """Ids of a fit that was given up would be of factors that are not there."""
    make = getattr(fastml.recommendation, name)
    pairs, _, _ = ratings()
    some = pairs[:, 0] < 20
    bought = np.ones(len(pairs))
    model = make(3, random_state=0).fit(pairs[some], bought[some])
    before, expected = set(vars(model)), model.predict(pairs)
    with pytest.raises(ValueError, match="NaN or infinite"):
        model.fit(pairs, bought * np.nan)
    model.set_callbacks(Failing())
    with pytest.raises(KeyboardInterrupt):
        model.fit(pairs, bought)
    np.testing.assert_array_equal(model.predict(pairs), expected)
    assert len(model.user_ids_) == len(model.user_factors_) == 20
    assert set(vars(model)) - before <= {"_skl_callbacks"}


def test_a_bad_rating_is_not_kept():
    model = GLMFactorization(2, random_state=0).fit([[0, 0], [0, 1], [1, 0]], [1, 0, 1])
    with pytest.raises(ValueError, match="exceed 1"):
        model.partial_fit([[7, 0]], [3])
    assert model.user_ids_.tolist() == [0, 1]
    assert model.partial_fit([[8, 0]], [1]).user_ids_.tolist() == [0, 1, 8]


@pytest.mark.parametrize("name", ["ALS", "ImplicitALS", "SGDFactorization", "GLMFactorization"])
def test_parameters_that_changed_since_the_fit(name):
    """Factors have the number of components that they were learned with."""
    pairs, _, _ = ratings()
    R = matrix(pairs, np.ones(len(pairs)))
    model = getattr(fastml.recommendation, name)(3, random_state=0).fit(R)
    expected = model.transform(R), model.transform_items(R.T), clone(model).fit(R).partial_fit(R)
    model.set_params(n_components=40)
    if name != "ImplicitALS":
        model.set_params(biases=False)
    np.testing.assert_array_equal(model.transform(R), expected[0])
    np.testing.assert_array_equal(model.transform_items(R.T), expected[1])
    np.testing.assert_array_equal(model.partial_fit(R).user_factors_, expected[2].user_factors_)
    assert model.fit(R).user_factors_.shape == (N_USERS, 40)


def test_negative_feedback_is_refused_later_too():
    model = ImplicitALS(3, random_state=0).fit(counts())
    bad = sparse.csr_matrix(([-1.0], ([0], [1])), shape=(2, N_ITEMS))
    for method in (model.transform, model.recommend, model.partial_fit):
        with pytest.raises(ValueError, match="negative"):
            method(bad)
    with pytest.raises(ValueError, match="negative"):
        model.transform_items(-counts()[:, :1].T)


@pytest.mark.parametrize("name", ["ALS", "ImplicitALS", "SGDFactorization", "GLMFactorization"])
def test_score_of_what_is_not_fitted(name):
    with pytest.raises(NotFittedError):
        getattr(fastml.recommendation, name)().score([[0, 1], [1, 1]], [1, 1])


@pytest.mark.parametrize("size", [1e20, 1e38])
def test_ratings_whose_squares_are_infinite(size):
    pairs, values, _ = ratings(np.float32)
    with pytest.raises(ValueError, match="too large for float32"):
        ALS(3, random_state=0).fit(pairs, values / 20 * np.float32(size))
    model = ALS(3, random_state=0).fit(pairs, values)
    for method in (model.transform, model.recommend, model.partial_fit):
        with pytest.raises(ValueError, match="too large for float32"):
            method(sparse.csr_matrix(([1e300], ([0], [1])), shape=(2, N_ITEMS)))


def test_numbers_of_items_and_of_ratings():
    pairs, values, _ = ratings()
    model = ALS(2, random_state=0).fit(pairs, values)
    for k in (None, "a", N_ITEMS + 0.5, 0):
        with pytest.raises(ValueError, match="k has to be an integer"):
            model.similar_items(0, k)
    expected = split_ratings(pairs, test_size=0.25, random_state=0)
    found = split_ratings(pairs, test_size=np.float32(0.25), random_state=0)
    np.testing.assert_array_equal(found[1], expected[1])
    for test_size in (None, "a", 0, 1.0):
        with pytest.raises(ValueError, match="test_size has to be"):
            split_ratings(pairs, test_size=test_size)


@pytest.mark.parametrize("name", ["ALS", "ImplicitALS", "SGDFactorization", "GLMFactorization"])
def test_factors_from_elsewhere_are_checked(name):
    """Kernels read a row of factors for each id, and would read on behind too few."""
    pairs, _, _ = ratings()
    R = matrix(pairs, np.ones(len(pairs)))
    model = getattr(fastml.recommendation, name)(3, random_state=0).fit(R)
    for attribute in ("user_factors_", "item_factors_", "user_bias_", "item_bias_"):
        good = getattr(model, attribute)
        if good is None:
            continue
        setattr(model, attribute, good[:-1].copy())
        for method in (model.predict, model.transform, model.recommend, model.partial_fit):
            with pytest.raises(ValueError, match="cannot be of"):
                method(R)
        with pytest.raises(ValueError, match="cannot be of"):
            model.similar_items()
        setattr(model, attribute, good)
    model.item_factors_ = model.item_factors_[:, :2].copy()
    with pytest.raises(ValueError, match="cannot be of"):
        model.predict(R)
