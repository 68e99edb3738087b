"""Compiled functions as kernels of estimators, as objects, and in the life of a process."""

import copy
import math
import os
import pickle
import signal
import threading
import time
import timeit

import numpy as np
import pytest
from joblib import Parallel, delayed
from scipy.sparse import csr_array, csr_matrix
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import pairwise_distances, pairwise_kernels
from sklearn.svm import SVC
from suites.harness import in_child, run_python

import fastml
from fastml._runtime import sparse as _sparse
from fastml.jit import compile_pair, distances, gram, kernel
from fastml.metrics import pairwise as ours


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


def gram_naive(f, X, Y=None, **params):
    Y = X if Y is None else Y
    return np.array([[f(x, y, **params) for y in Y] for x in X])


def data(n=37, d=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


# -- kernels in scikit-learn's estimators


def test_scalars_and_matrices():
    X = data(6)
    assert cauchy(X[0], X[1]) == gram_naive(cauchy, X)[0, 1]
    np.testing.assert_allclose(cauchy(X), gram_naive(cauchy, X), rtol=1e-12)
    np.testing.assert_allclose(cauchy(X, X[:2], gamma=3), gram_naive(cauchy, X, X[:2], gamma=3))


@kernel(symmetric=False)
def leaning(x, y):
    return x[0] - 2 * y[-1]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize("f", [cauchy, leaning])
def test_sparse_rows(f, dtype, monkeypatch):
    monkeypatch.setattr(_sparse, "BLOCK", 5 * 3)  # five rows
    X = np.round(3 * data(23)).astype(dtype)
    S, expected = csr_matrix(X), f(X)
    with fastml.config_context(strict=True):
        for found in (f(S), f(S, S), f(S.tocsc()), f(S, X), f(X, csr_array(S))):
            np.testing.assert_array_equal(found, expected)
            assert found.dtype == expected.dtype
        np.testing.assert_array_equal(ours.pairwise_kernels(S, metric=f), expected)
        np.testing.assert_array_equal(ours.pairwise_kernels(S, S[:4], metric=f), expected[:, :4])
    assert f(S[:0], S).shape == (0, 23)
    assert repr(cauchy) == "<kernel cauchy>"
    assert cauchy.__name__ == "cauchy"


def test_where_scikit_learn_takes_kernels():
    X = data(60)
    y = X[:, 0] > 0
    K = cauchy(X)
    svc = SVC(kernel=cauchy).fit(X, y)
    np.testing.assert_array_equal(
        svc.decision_function(X), SVC(kernel="precomputed").fit(K, y).decision_function(K)
    )
    np.testing.assert_allclose(pairwise_kernels(X, metric=cauchy, gamma=1.0), K, rtol=1e-12)
    np.testing.assert_allclose(pairwise_distances(X, metric=manhattan), distances(manhattan, X))
    ridge = KernelRidge(kernel=cauchy, kernel_params={"gamma": 2.0}).fit(X, X[:, 1])
    assert clone(ridge).kernel is cauchy
    assert clone(cauchy) is cauchy


# -- copies and pickles


def test_copies():
    assert copy.copy(cauchy) is cauchy
    assert copy.deepcopy(cauchy) is cauchy
    assert kernel(gaussian) == kernel(gaussian) != kernel(gaussian, symmetric=False)
    assert hash(kernel(gaussian)) == hash(kernel(gaussian))


def test_pickles():
    for f in (cauchy, kernel(gaussian, reassociate=False), kernel(symmetric=False)(one_sided)):
        again = pickle.loads(pickle.dumps(f))
        assert again == f
        assert again.symmetric == f.symmetric
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(kernel(lambda x, y: x[0]))


def test_pickles_from_main():
    out = run_python(
        "import pickle, cloudpickle, numpy as np\n"
        "from fastml.jit import kernel\n"
        "@kernel\n"
        "def f(x, y, c=2.0): return c * x[0] * y[0]\n"
        "again = [m.loads(m.dumps(f)) for m in (pickle, cloudpickle)]\n"
        "print(*[g(np.ones((1, 1))).item() for g in again])\n"
    )
    assert out.split() == ["2.0", "2.0"]


def test_workers():
    scale = 3.0
    by_value = kernel(lambda x, y: scale * x[0])
    X = data(10)
    for f in (by_value, cauchy):
        for K in Parallel(n_jobs=2)(delayed(f)(X) for _ in range(3)):
            np.testing.assert_array_equal(K, f(X))


def test_fork():
    X = data(300)
    expected = cauchy(X)  # the parent has compiled it, and has threads
    np.testing.assert_array_equal(in_child(lambda: cauchy(X)), expected)
    again = in_child(lambda: gram(lambda x, y: x[1] * y[1], X))
    np.testing.assert_allclose(again, np.outer(X[:, 1], X[:, 1]))


# -- the process


def test_numba_is_imported_when_something_is_compiled():
    code = (
        "import sys, numpy as np, fastml.jit\n"
        "f = fastml.jit.kernel(lambda x, y: x[0] * y[0])\n"
        "f(np.ones(2), np.ones(2)); print('numba' in sys.modules)\n"
        "f(np.ones((2, 2))); print('numba' in sys.modules)\n"
    )
    assert run_python(code).split() == ["False", "True"]


def test_without_numba_python_runs():
    code = (
        "import sys; sys.modules['numba'] = None\n"
        "import numpy as np, fastml.jit\n"
        "f = fastml.jit.kernel(lambda x, y: x[0] * y[0])\n"
        "print(f(2 * np.ones((1, 1))).item())\n"
        "try: fastml.jit.compile_pair(f)\n"
        "except fastml.jit.NotCompilable as error: print(error)\n"
    )
    first, second = run_python(code).splitlines()
    assert first == "4.0"
    assert "Numba cannot be imported" in second


def slow(x, y):
    total = 0.0
    for i in range(200_000):
        total += math.sin(x[0] * i) * y[0]
    return total


@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c(threads):
    X = np.ones((1000, 1))
    compile_pair(slow)
    start = time.monotonic()
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        gram(slow, X, n_threads=threads)
    assert time.monotonic() - start < 3
    timer.join()


def test_several_threads_compile_and_run_at_once():
    X = data(50)
    expected = gram_naive(gaussian, X, gamma=0.7)
    results = []
    f = kernel(lambda x, y, gamma: gaussian(x, y, gamma))
    threads = [threading.Thread(target=lambda: results.append(f(X, gamma=0.7))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4
    for K in results:
        np.testing.assert_allclose(K, expected, rtol=1e-12)


def test_faster_than_pair_by_pair():
    """A small part of what is measured in benchmarks, to notice when it is lost."""
    X = data(120, 20)
    gram(gaussian, X)
    python = min(timeit.repeat(lambda: gram_naive(gaussian, X[:10]), number=1, repeat=5)) / 100
    ours = min(timeit.repeat(lambda: gram(gaussian, X), number=1, repeat=20)) / 14400
    assert ours < python / 50
