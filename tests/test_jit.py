"""Functions of the user's, compiled: values, parameters, refusals, exceptions, addresses."""

import ctypes
import functools
import math
import pickle

import numba
import numpy as np
import pytest

import fastml
from fastml import jit
from fastml.jit import (
    NotCompilable,
    NotCompiledWarning,
    compile_pair,
    distances,
    gram,
    kernel,
    pair_address,
)

SCALE = 2.0
WEIGHTS = np.array([1.0, 2.0, 3.0])


def gaussian(x, y, gamma=1.0):
    total = 0.0
    for k in range(len(x)):
        total += (x[k] - y[k]) ** 2
    return math.exp(-gamma * total)


def one_sided(x, y):
    return x[0] - 2 * y[-1]


def manhattan(x, y):
    return np.abs(x - y).sum()


@kernel
def cauchy(x, y, gamma=1.0):
    return 1 / (1 + gamma * ((x - y) ** 2).sum())


@kernel
def not_compilable(x, y):
    return eval("x @ y")


def gram_naive(f, X, Y=None, **params):
    Y = X if Y is None else Y
    return np.array([[f(x, y, **params) for y in Y] for x in X])


def data(n=37, d=3, dtype=np.float64, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d)).astype(dtype)


# -- values


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("d", [1, 2, 7, 64])
@pytest.mark.parametrize(("n", "m"), [(1, 1), (1, 300), (63, 64), (65, 130), (200, 3)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_matches_naive(dtype, n, m, d, threads):
    X, Y = data(n, d, dtype), data(m, d, dtype, seed=1)
    rtol = 1e-5 if dtype == np.float32 else 1e-12
    for f, params in [(gaussian, {"gamma": 0.3}), (one_sided, {}), (manhattan, {})]:
        for other in (None, Y):
            K = gram(f, X, other, n_threads=threads, **params)
            assert K.dtype == dtype
            expected = gram_naive(f, X, other, **params)
            np.testing.assert_allclose(K, expected, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("n", [1, 2, 64, 65, 128, 200, 321])
def test_the_symmetric_half_is_mirrored(n):
    X = data(n, 4)
    full = gram(gaussian, X, symmetric=False)
    np.testing.assert_array_equal(gram(gaussian, X, symmetric=True), full)
    half = distances(one_sided, X)  # by its declaration, not in truth
    upper = np.triu(gram_naive(one_sided, X))
    np.testing.assert_array_equal(half, upper + np.triu(upper, 1).T)


def test_the_number_of_threads_does_not_matter():
    X = data(500, 20)
    one, two = (gram(cauchy, X, n_threads=k) for k in (1, 2))
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("dtype", ["int64", "int32", "int16", "int8", "uint8", "bool", "float16"])
def test_other_dtypes(dtype):
    X = np.random.default_rng(0).integers(0, 2 if dtype == "bool" else 9, (9, 4)).astype(dtype)

    def equal(x, y):
        count = 0
        for k in range(len(x)):
            if x[k] == y[k]:
                count += 1
        return count

    K = gram(equal, X)
    assert K.dtype == (np.float32 if dtype == "float16" else np.float64)
    np.testing.assert_array_equal(K, gram_naive(equal, X))


def test_layouts():
    X = data(20, 6)
    expected = gram_naive(gaussian, X)
    readonly = X.copy()
    readonly.flags.writeable = False
    wide = np.zeros((40, 12))
    wide[::2, ::2] = X
    swapped = X.astype(X.dtype.newbyteorder())
    for given in (readonly, np.asfortranarray(X), wide[::2, ::2], swapped, X.tolist()):
        np.testing.assert_allclose(gram(gaussian, given), expected, rtol=1e-14)


def test_empty():
    assert gram(gaussian, np.empty((0, 3))).shape == (0, 0)
    assert gram(gaussian, data(2), np.empty((0, 3))).shape == (2, 0)


def test_out():
    X = data(5)
    out = np.empty((5, 5), np.float32)
    assert gram(gaussian, X, out=out) is out
    np.testing.assert_allclose(out, gram_naive(gaussian, X), rtol=1e-6)
    for wrong in (np.empty((5, 4)), np.empty((5, 5), int), np.empty((5, 5), order="F")):
        with pytest.raises(ValueError, match="out must"):
            gram(gaussian, X, out=wrong)
    with pytest.raises(ValueError, match="columns"):
        gram(gaussian, X, data(5, 4))


def test_nan_and_infinity():
    X = np.array([[1.0, np.nan], [np.inf, 2.0], [0.0, 0.0]])
    ratio = kernel(lambda x, y: x[0] / y[0], symmetric=False)
    with np.errstate(all="ignore"):
        for f in (manhattan, ratio):
            np.testing.assert_array_equal(gram(f, X), gram_naive(f, X))


def kahan(x, y):
    total = lost = 0.0
    for k in range(len(x)):
        term = x[k] * y[k] - lost
        new = total + term
        lost = (new - total) - term
        total = new
    return total


def test_sums_in_the_order_of_the_loop():
    X = data(20, 1000) * 10.0 ** np.arange(-5, 5).repeat(100)
    for f in (kahan, gaussian):
        np.testing.assert_array_equal(kernel(f, reassociate=False)(X), gram_naive(f, X))
    assert kernel(kahan, reassociate=False) != kernel(kahan)


# -- parameters


def test_parameters_of_every_kind():
    def f(x, y, w, M, power=2, scale=1.0, negative=False, name="sum", shape=(1, 2), g=None):
        total = 0.0
        for k in range(len(x)):
            total += w[k] * M[k, 0] * abs(x[k] - y[k]) ** power
        if name == "mean":
            total /= len(x)
        if g is not None:
            total = g(total)
        return (-total if negative else total) * scale * shape[1]

    def root(v):
        return math.sqrt(v)

    X = data(6)
    M = np.arange(6, dtype=np.int64).reshape(3, 2)
    w = WEIGHTS.astype(np.float32)
    for params in (
        {"w": w, "M": M},
        {"w": w[::-1], "M": np.asfortranarray(M), "power": 3, "scale": np.float32(0.5)},
        {"w": w, "M": M, "negative": True, "name": "mean", "shape": (1, 2.5)},
        {"w": w, "M": M, "power": 1.5, "g": root},
    ):
        np.testing.assert_allclose(
            gram(f, X, **params), gram_naive(f, X, **params), rtol=1e-6, err_msg=str(params)
        )


def test_other_values_are_not_compiled_again():
    def f(x, y, gamma, w):
        return gamma * w[0]

    X = data(2)
    compiled = compile_pair(f, gamma=1.0, w=WEIGHTS)
    assert compile_pair(f, gamma=2.0, w=WEIGHTS[:1]).address == compiled.address
    assert gram(f, X, gamma=3.0, w=2 * WEIGHTS)[0, 0] == 6
    assert jit.is_compiled(f, gamma=1.0, w=WEIGHTS)
    assert not jit.is_compiled(f, gamma=1, w=WEIGHTS)


def test_keyword_only_parameters():
    def f(x, y, *, gamma=2.0, delta):
        return gamma * delta

    assert gram(f, data(1), delta=3.0) == 6
    assert gram(f, data(1), delta=3.0, gamma=1) == 3


def test_wrong_parameters_are_the_users_error():
    with pytest.raises(TypeError, match="unexpected keyword argument 'nu'"):
        gram(gaussian, data(2), nu=1)
    with pytest.raises(NotCompilable, match="gamma is a list: pass an array"):
        gram(gaussian, data(2), gamma=[1.0])


def test_partial_binds_parameters():
    f = functools.partial(gaussian, gamma=0.1)
    X = data(4)
    np.testing.assert_allclose(gram(f, X), gram_naive(gaussian, X, gamma=0.1), rtol=1e-12)
    np.testing.assert_allclose(kernel(f)(X), gram_naive(gaussian, X, gamma=0.1), rtol=1e-12)
    assert kernel(f)(X[0], X[1]) == f(X[0], X[1])


# -- what a function may use


def test_globals_and_closures_are_constants_until_they_are_assigned_anew(monkeypatch):
    offset = 1.0

    def f(x, y):
        return SCALE * x[0] + offset

    X = np.array([[3.0]])
    assert gram(f, X) == 7
    monkeypatch.setitem(globals(), "SCALE", 10.0)
    assert gram(f, X) == 31
    offset = 2.0
    assert gram(f, X) == 32


def test_a_function_made_again_is_not_compiled_again():
    def make(shift):
        return lambda x, y: x[0] + shift

    assert compile_pair(make(1.5)).address == compile_pair(make(1.5)).address
    assert compile_pair(make(2.5)).address != compile_pair(make(1.5)).address
    assert compile_pair(make(1)).address != compile_pair(make(1.0)).address


def helper(a, b, *, power=2):
    return abs(a - b) ** power


def calls_helper(x, y):
    return helper(x[0], y[0]) + helper(x[1], y[1], power=3)


@kernel
def recursive(x, y):
    if len(x) == 1:
        return abs(x[0] - y[0])
    return abs(x[0] - y[0]) + recursive(x[1:], y[1:])


def test_other_functions():
    X = data(5)
    np.testing.assert_allclose(gram(calls_helper, X), gram_naive(calls_helper, X), rtol=1e-12)
    np.testing.assert_allclose(recursive(X), gram_naive(manhattan, X), rtol=1e-12)


def test_functions_compiled_by_the_user():
    compiled = numba.njit(gaussian)
    X = data(5)
    np.testing.assert_allclose(gram(compiled, X), gram_naive(gaussian, X), rtol=1e-12)
    np.testing.assert_allclose(kernel(compiled)(X), gram_naive(gaussian, X), rtol=1e-12)


# -- what cannot be compiled


def changes(x, y):
    x[0] = 1
    return x[0]


def returns_a_vector(x, y):
    return x - y


def uses_pandas(x, y):
    import pandas

    return pandas.Series(x).mean()


def keywords(x, y, **kwargs):
    return 1.0


REFUSED = [
    (changes, r"changes an array that it is given \(test_jit.py, line \d+: x\[0\] = 1\)"),
    (returns_a_vector, r"it returns array\(float64, 1d, C\), not a real number"),
    (uses_pandas, r"it imports a module: do so outside \(test_jit.py, line \d+: import pandas\)"),
    (keywords, r"Numba has no \*\*: name the parameters"),
    (lambda x, y: undefined(x), "name 'undefined' is not defined"),  # noqa: F821
    (lambda x, y: sum(a * b for a, b in zip(x, y)), "yield"),
    (max, "builtin_function_or_method is not a function written in Python"),
    (np.dot, "is not a function written in Python"),
]


@pytest.mark.parametrize(("f", "reason"), REFUSED)
def test_refusals_say_why_in_a_line(f, reason):
    for _ in range(2):  # the second time from memory
        with pytest.raises(NotCompilable, match=reason) as caught:
            compile_pair(f)
    assert "\n" not in str(caught.value)
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)


def test_the_stock_path_runs_and_is_recorded(caplog):
    X = data(4)
    caplog.set_level("INFO", "fastml.dispatch")
    with pytest.warns(NotCompiledWarning, match=r"Numba cannot.*Python calls it pair by pair"):
        np.testing.assert_allclose(not_compilable(X), X @ X.T)
    np.testing.assert_allclose(not_compilable(X, X[:2]), X @ X[:2].T)
    assert not caplog.records[0].native
    assert "not_compilable cannot be compiled: Numba cannot" in caplog.records[0].reason
    with (
        fastml.config_context(strict=True),
        pytest.raises(fastml.NotAcceleratedError, match="not_compilable cannot be compiled"),
    ):
        not_compilable(X)
    with fastml.config_context(strict=True):
        cauchy(X)


# -- exceptions


class Mine(Exception):
    pass


def raises(x, y):
    if x[0] > 30 and y[0] > 40:
        raise Mine("too far")
    return x[0]


def reads_outside(x, y):
    return x[len(y)] if x[0] > 30 else 0.0


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("symmetric", [False, True])
def test_exceptions_are_the_users(symmetric, threads):
    X = np.arange(100.0)[:, None]
    with pytest.raises(Mine, match="too far") as caught:
        gram(raises, X, symmetric=symmetric, n_threads=threads)
    assert caught.traceback[-1].name == "raises"
    with pytest.raises(IndexError, match="out of bounds"):
        gram(reads_outside, X, symmetric=symmetric, n_threads=threads)
    gram(raises, X[:20], symmetric=symmetric, n_threads=threads)


def test_an_exception_that_only_compiled_code_raises():
    def sometimes(x, y):
        if y[0] > 1:
            return None
        return 1.0

    with pytest.raises(NotCompilable, match="rows 0 and 2"):
        gram(sometimes, np.array([[0.0], [1.0], [2.0]]))

    divides = numba.njit(lambda x, y: x[0] / y[0])  # by default, Numba's division raises
    with pytest.raises(ZeroDivisionError):
        gram(divides, np.array([[1.0], [0.0]]))


# -- addresses


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_pair_address(dtype):
    scalar = ctypes.c_float if dtype == np.float32 else ctypes.c_double
    pointer = ctypes.POINTER(scalar)
    function = ctypes.CFUNCTYPE(scalar, pointer, pointer, ctypes.c_ssize_t)
    X = data(2, 5, dtype)
    for gamma in (0.5, 2.0):
        f = function(pair_address(gaussian, dtype, gamma=gamma))
        got = f(*(row.ctypes.data_as(pointer) for row in X), 5)
        assert got == pytest.approx(gaussian(*X, gamma=gamma), rel=1e-6)
    assert pair_address(cauchy, dtype) == pair_address(cauchy, dtype, gamma=1.0)
    f = function(pair_address(raises, dtype))
    X[:] = 50
    assert math.isnan(f(*(row.ctypes.data_as(pointer) for row in X), 5))
    with pytest.raises(NotCompilable):
        pair_address(changes, dtype)
    with pytest.raises(NotCompilable):
        pair_address(gaussian, np.int64)
