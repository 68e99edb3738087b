"""Distances of rows of truth values: the kernel against a twin, and the metrics beside SciPy's."""

import numpy as np
import pytest
import sklearn.metrics.pairwise as stock
from sklearn.exceptions import DataConversionWarning

import fastml
from fastml._native import pairwise as native
from fastml.metrics import pairwise as ours
from fastml.metrics._booleans import BOOLEAN, _packed

METRICS = sorted(set(BOOLEAN) & set(stock._VALID_METRICS))


def bits(n, d, seed=0):
    X = np.random.default_rng(seed).random((n, d)) < 0.4
    X[:1], X[1:2] = False, True
    return X


def boolean_naive(agreement, x, y):
    a, u, v, w = (x & y).sum(), (x & ~y).sum(), (~x & y).sum(), (~x & ~y).sum()
    numerator, divisor = {
        "dice": (u + v, 2 * a + u + v),
        "jaccard": (u + v, a + u + v),
        "rogerstanimoto": (2 * (u + v), a + w + 2 * (u + v)),
        "russellrao": (u + v + w, len(x)),
        "sokalsneath": (2 * (u + v), a + 2 * (u + v)),
        "yule": (2 * u * v, a * w + u * v),
    }[agreement]
    if numerator == 0 and agreement in ("jaccard", "yule"):
        return 0.0
    return numerator / divisor if divisor else np.nan


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("d", [1, 63, 64, 65, 128, 300])
@pytest.mark.parametrize("agreement", native.Agreement.__members__)
def test_matches_naive(agreement, d, threads):
    for n, m in ((1, 1), (33, 25)):
        X, Y = bits(n, d), bits(m, d, seed=1)
        D = np.full((n, m), -1.0)
        native.boolean_distances(_packed(X), _packed(Y), d, agreement, D, threads)
        expected = [[boolean_naive(agreement, x, y) for y in Y] for x in X]
        np.testing.assert_array_equal(D, expected)


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("metric", METRICS)
def test_equals_scikit_learn_to_the_last_bit(metric, n_jobs):
    X, Y = bits(20, 70), bits(30, 70, seed=1)
    with fastml.config_context(strict=True):
        for args in ((X,), (X, Y), (X[:, ::2], Y[:, ::2])):
            actual = ours.pairwise_distances(*args, metric=metric, n_jobs=n_jobs)
            expected = stock.pairwise_distances(*args, metric=metric, n_jobs=n_jobs)
            np.testing.assert_array_equal(actual, expected)
            assert actual.dtype == expected.dtype


@pytest.mark.parametrize("dtype", [np.float32, np.int8])
def test_other_values_are_converted_with_a_warning(dtype):
    X = bits(10, 9).astype(dtype) * 3
    with pytest.warns(DataConversionWarning, match="boolean for metric jaccard"):
        actual = ours.pairwise_distances(X, metric="jaccard", n_jobs=2)
    with pytest.warns(DataConversionWarning):
        expected = stock.pairwise_distances(X, metric="jaccard", n_jobs=2)
    np.testing.assert_array_equal(actual, expected)
    assert actual.dtype == expected.dtype


@pytest.mark.parametrize("metric", METRICS)
def test_weights_are_scipys(metric):
    X, Y, w = bits(20, 9), bits(10, 9, seed=1), np.arange(9.0) / 3
    with fastml.config_context(strict=True):
        for args in ((X,), (X, Y)):
            actual = ours.pairwise_distances(*args, metric=metric, w=w)
            expected = stock.pairwise_distances(*args, metric=metric, w=w)
            np.testing.assert_allclose(actual, expected, rtol=1e-14, atol=1e-15)
    with pytest.raises(ValueError, match="Weights"):
        ours.pairwise_distances(X, metric=metric, w=w[1:])
