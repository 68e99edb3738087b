"""Densities by kernels: against a plain twin, and scikit-learn's."""

import pickle

import numpy as np
import pytest
import sklearn.neighbors as stock
from fastml._native.kdtree import KDTree
from scipy.special import logsumexp

import fastml
from fastml import neighbors

KERNELS = {
    "gaussian": lambda u: -(u**2) / 2,
    "tophat": lambda u: np.where(u < 1, 0.0, -np.inf),
    "epanechnikov": lambda u: np.log(np.maximum(1 - u**2, 0)),
    "exponential": lambda u: -u,
    "linear": lambda u: np.log(np.maximum(1 - u, 0)),
    "cosine": lambda u: np.log(np.where(u < 1, np.cos(np.pi / 2 * u), 0)),
}


def log_sums_naive(X, Q, kernel, bandwidth, weights):
    distances = np.sqrt(((Q[:, None] - X[None]) ** 2).sum(axis=2))
    with np.errstate(divide="ignore"):
        return logsumexp(KERNELS[kernel](distances / bandwidth), axis=1, b=weights)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("d", [1, 2, 3, 7])
@pytest.mark.parametrize("n", [1, 17, 2000])
def test_sums(n, d, kernel, weighted):
    rng = np.random.default_rng(d)
    X, Q = rng.normal(size=(n, d)), 1.5 * rng.normal(size=(40, d))
    Q[-1] = 60  # far from all
    weights = rng.random(n) ** 9 + 1e-12 if weighted else None
    for bandwidth in (0.05, 1.0, 30.0):
        outcomes = []
        for threads in (1, 2):
            found = np.empty(len(Q))
            KDTree(X).log_kernel_sums(Q, kernel, bandwidth, weights, found, threads)
            outcomes.append(found)
        np.testing.assert_array_equal(*outcomes)
        expected = log_sums_naive(X, Q, kernel, bandwidth, weights)
        np.testing.assert_allclose(outcomes[0], expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("metric", ["euclidean", "minkowski", "seuclidean"])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("d", [1, 2, 4, 5, 30])
def test_scores_are_scikit_learns(d, kernel, metric):
    rng = np.random.default_rng(d)
    X, Q = rng.normal(size=(300, d)), rng.normal(size=(30, d))
    params = {"V": np.arange(1.0, d + 1)} if metric == "seuclidean" else None
    weights = rng.integers(3, size=300)
    for options in ({"algorithm": "auto"}, {"algorithm": "ball_tree", "rtol": 1e-4}):
        options |= {"kernel": kernel, "metric": metric, "metric_params": params}
        if metric == "seuclidean":
            options["algorithm"] = "ball_tree"
        for weight in (None, weights):
            exact = {"atol": 0, "rtol": 1e-12}
            with fastml.config_context(strict=True):
                ours = neighbors.KernelDensity(bandwidth=0.7 * d**0.5, **options)
                ours.fit(X, sample_weight=weight)
                scores = ours.score_samples(Q)
            theirs = stock.KernelDensity(bandwidth=0.7 * d**0.5, **(options | exact))
            expected = theirs.fit(X, sample_weight=weight).score_samples(Q)
            # Its sums start from bounds: where there is no density, their rounding is left.
            scores, expected = (np.maximum(each, -30) for each in (scores, expected))
            np.testing.assert_allclose(scores, expected, rtol=1e-8, atol=1e-8)
    scores = ours.score_samples(Q)
    copy = pickle.loads(pickle.dumps(ours))
    np.testing.assert_array_equal(copy.score_samples(Q), scores)
    converted = fastml.to_sklearn(ours).score_samples(Q)
    np.testing.assert_array_equal(converted, theirs.set_params(rtol=1e-4).score_samples(Q))


def test_samples_are_scikit_learns():
    X = np.random.default_rng(0).random((50, 2))
    samples = neighbors.KernelDensity(bandwidth="scott").fit(X).sample(5, random_state=0)
    expected = stock.KernelDensity(bandwidth="scott").fit(X).sample(5, random_state=0)
    np.testing.assert_array_equal(samples, expected)


@pytest.mark.parametrize(
    ("metric", "params"),
    [
        ("manhattan", None),
        ("infinity", None),
        ("minkowski", {"p": 3}),
        ("p", {"p": 1}),
        ("canberra", None),
        ("braycurtis", None),
        ("hamming", None),
        ("jaccard", None),
        ("mahalanobis", {"V": np.diag([1.0, 4.0]) + 0.5}),
        ("haversine", None),
    ],
)
@pytest.mark.parametrize("kernel", KERNELS)
def test_other_metrics(kernel, metric, params):
    rng = np.random.default_rng(0)
    X, Q = rng.normal(size=(1500, 2)).round(1), rng.normal(size=(30, 2)).round(1)
    weights = rng.integers(3, size=1500)
    options = {"kernel": kernel, "metric": metric, "metric_params": params, "bandwidth": 0.7}
    for weight in (None, weights):
        with fastml.config_context(strict=True):
            ours = neighbors.KernelDensity(**options).fit(X, sample_weight=weight)
            scores = ours.score_samples(Q)
        theirs = stock.KernelDensity(**options, rtol=1e-12).fit(X, sample_weight=weight)
        np.testing.assert_allclose(ours.score_samples(Q[:2]), scores[:2], rtol=1e-6, atol=1e-6)
        scores, expected = (np.maximum(each, -30) for each in (scores, theirs.score_samples(Q)))
        np.testing.assert_allclose(scores, expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("algorithm", ["auto", "kd_tree", "ball_tree"])
def test_the_tree_is_made_when_somebody_asks(algorithm):
    X = np.random.default_rng(0).normal(size=(100, 2))
    params = {"algorithm": algorithm, "leaf_size": 7, "bandwidth": "scott"}
    ours, theirs = (m.KernelDensity(**params) for m in (neighbors, stock))
    assert not hasattr(ours, "tree_")
    weights = np.arange(100.0)
    ours.fit(X, sample_weight=weights), theirs.fit(X, sample_weight=weights)
    assert ours.bandwidth_ == theirs.bandwidth_
    assert "tree_" not in vars(ours)
    scores = theirs.score_samples(X)
    for model in (ours, pickle.loads(pickle.dumps(ours)), fastml.to_sklearn(ours)):
        assert type(model.tree_) is type(theirs.tree_)
        for mine, stocks in zip(model.tree_.get_arrays(), theirs.tree_.get_arrays(), strict=True):
            np.testing.assert_array_equal(mine, stocks)
        np.testing.assert_allclose(model.score_samples(X), scores)
        np.testing.assert_array_equal(model.sample(5, random_state=0), theirs.sample(5, 0))
    copied = fastml.from_sklearn(theirs)
    np.testing.assert_allclose(copied.score_samples(X), scores)
    ours.fit(X[:50])  # forgets the tree
    np.testing.assert_allclose(ours.score_samples(X), theirs.fit(X[:50]).score_samples(X))
    assert len(ours.tree_.data) == 50


def test_what_a_metric_asks_for_is_asked_at_fit():
    X = np.ones((9, 3))
    for metric in ("haversine", "seuclidean", "mahalanobis"):
        for model in (neighbors.KernelDensity(metric=metric), stock.KernelDensity(metric=metric)):
            with pytest.raises((ValueError, TypeError)):
                model.fit(X)


def largest_difference(x, y, scale=1.0):
    return scale * np.abs(x - y).max()


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_function_as_metric(kernel):
    X, Q = (np.random.default_rng(seed).normal(size=(n, 3)) for seed, n in ((0, 300), (1, 90)))
    params = {"metric": "pyfunc", "metric_params": {"func": largest_difference, "scale": 2.0}}
    with fastml.config_context(strict=True):
        model = neighbors.KernelDensity(kernel=kernel, **params).fit(X)
        scores = model.score_samples(Q)
    theirs = stock.KernelDensity(kernel=kernel, **params).fit(X).score_samples(Q)
    # Where there is nothing, scikit-learn's tree may leave rounding.
    np.testing.assert_allclose(np.exp(scores), np.exp(theirs), rtol=1e-7, atol=1e-14)
    named = neighbors.KernelDensity(kernel=kernel, metric="chebyshev").fit(2 * X)
    np.testing.assert_allclose(scores, named.score_samples(2 * Q), rtol=1e-7)
