"""Compiled sums under a condition: what they give, and that they vectorise."""

import numpy as np
import pytest

from fastml.jit import gram


def gram_naive(f, X):
    return np.array([[f(x, y) for y in X] for x in X])


def beyond(x, y, t=0.3):
    total = 0.0
    for k in range(len(x)):
        if x[k] > t:
            total += x[k] * y[k]
    return total


def skips(x, y, t=0.3):
    total, count = 1.0, 0
    for k in range(len(x)):
        if x[k] < t:
            continue
        total -= (x[k] - y[k]) ** 2
        count += 1
    return total / (count + 1)


def chooses(x, y, t=0.3):
    total, weight, product = 0.0, 0.0, 1.0
    for a, b in zip(x, y):
        if a > t:
            total = total + a * b
        elif b > t:
            total -= b
        if a > b:
            weight += 1
            if b > 0:
                weight += a
            product *= b
    return total + weight * product


def looks_back(x, y, t=0.3):
    total = 0.0
    for k in range(len(x)):
        if k > 0:
            total += x[k - 1] * y[k]
    return total


def keeps_what_it_added(x, y, t=0.3):
    total = last = -0.0
    for k in range(len(x)):
        if x[k] > t:
            total += y[k]
            last = total
    return total + 2 * last


CONDITIONAL = [beyond, skips, chooses, looks_back, keeps_what_it_added]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("f", CONDITIONAL)
def test_matches_naive(f, dtype):
    X = np.random.default_rng(0).normal(size=(20, 37), scale=3).astype(dtype)
    eps = 1e-4 if dtype == np.float32 else 1e-11
    K, expected = gram(f, X), gram_naive(f, X.astype(np.float64))
    np.testing.assert_allclose(K, expected, rtol=eps, atol=eps * np.abs(expected).max())


def test_passes_over_what_is_not_finite():
    X = np.array([[np.nan, 1.0, np.inf], [1.0, np.nan, 1.0], [-1.0, -np.inf, -2.0]])
    for f in CONDITIONAL:
        with np.errstate(invalid="ignore"):
            np.testing.assert_array_equal(gram(f, X), gram_naive(f, X))
    nothing = gram(keeps_what_it_added, np.zeros((1, 3)))
    assert np.signbit(nothing[0, 0])  # -0.0, to which nothing was added


@pytest.mark.parametrize("f", [beyond, skips])
def test_vectorises(f):
    from fastml.jit._compile import compile_row
    from fastml.jit._function import slots, unwrap

    function = unwrap(f)
    code = compile_row(function, np.dtype("f8"), np.dtype("f8"), slots(function, {})[0])
    assert "llvm.vector.reduce.fadd" in code.inspect_llvm()
