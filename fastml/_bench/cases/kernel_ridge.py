"""Kernel ridge regression: scikit-learn, fastml, and Cholesky's factorisation alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from ..contest import Case, Contestant

ALPHA = 0.1


class Data(NamedTuple):
    X: np.ndarray
    y: np.ndarray
    kernel: str
    solver: str


def waves(n: int, d: int, kernel: str, dtype: str, solver: str) -> Data:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    y = np.sin(X[:, 0]) + X[:, 1 % d] + 0.1 * rng.normal(size=n)
    return Data(X.astype(dtype), y.astype(dtype), kernel, solver)


def params(data: Data) -> dict[str, Any]:
    return {"kernel": data.kernel, "alpha": ALPHA, "gamma": 1 / data.X.shape[1]}


def residual(data: Data, result: np.ndarray) -> float:
    """How far (K + alpha) c, or what is predicted, is from what it should be, in double."""
    from sklearn.metrics.pairwise import pairwise_kernels

    X = data.X.astype(np.float64)
    if not len(result):  # the factorisation alone has no solution to judge
        return 0.0
    rows = slice(None, None, max(1, len(X) // 500))
    K = pairwise_kernels(X[rows], X, metric=data.kernel, filter_params=True, **params(data))
    off = K @ result + ALPHA * result[rows] - data.y[rows]
    return float(np.abs(off).max() / np.abs(data.y).max())


def fit(data: Data, threads: int, *, library: str) -> Callable[[], Any]:
    estimator = import_module(f"{library}.kernel_ridge").KernelRidge
    more = {"solver": data.solver} if library == "fastml" else {}
    model = estimator(**params(data), **more)
    return lambda: model.fit(data.X, data.y).dual_coef_


def factorise(data: Data, threads: int) -> Callable[[], Any]:
    from scipy.linalg import lapack
    from sklearn.metrics.pairwise import pairwise_kernels

    K = pairwise_kernels(data.X, metric=data.kernel, filter_params=True, **params(data))
    K.flat[:: len(K) + 1] += ALPHA
    potrf = lapack.dpotrf if K.dtype == np.float64 else lapack.spotrf
    lower = K.copy()

    def call() -> Any:
        np.copyto(lower, K)  # a few per cent of the time, which a fit does not spend
        potrf(lower.T, lower=1, clean=0, overwrite_a=1)
        return np.empty(0)

    return call


def predict(data: Data, threads: int, *, library: str) -> Callable[[], Any]:
    estimator = import_module(f"{library}.kernel_ridge").KernelRidge
    model = estimator(**params(data)).fit(data.X[:2000], data.y[:2000])
    return lambda: model.predict(data.X)


def spread(data: Data, result: np.ndarray) -> float:
    """How far predictions are from those of scikit-learn in double."""
    from sklearn.kernel_ridge import KernelRidge

    X, y = data.X.astype(np.float64), data.y.astype(np.float64)
    exact = KernelRidge(**params(data)).fit(X[:2000], y[:2000]).predict(X[:1000])
    return float(np.abs(result[:1000] - exact).max() / np.abs(exact).max())


def fit_case(
    n: int, d: int = 20, kernel: str = "rbf", dtype: str = "float64", solver: str = "auto"
) -> Case:
    """fastml may take another solver."""
    peers = (
        Contestant("scikit-learn", partial(fit, library="sklearn"), "scikit-learn"),
        Contestant("fastml", partial(fit, library="fastml"), "fastml"),
        Contestant("Cholesky alone", factorise, "scipy"),
    )
    shape = {"n": n, "d": d, "kernel": kernel, "dtype": dtype, "solver": solver}
    atol = 1e-3 if dtype == "float32" else 1e-5
    return Case("kernel-ridge-fit", shape, waves, peers, residual, "residual", atol=atol)


def predict_case(n: int, d: int = 20, kernel: str = "rbf", dtype: str = "float64") -> Case:
    """Of a model that has 2,000 rows."""
    peers = (
        Contestant("scikit-learn", partial(predict, library="sklearn"), "scikit-learn"),
        Contestant("fastml", partial(predict, library="fastml"), "fastml"),
    )
    shape = {"n": n, "d": d, "kernel": kernel, "dtype": dtype, "solver": "auto"}
    return Case("kernel-ridge-predict", shape, waves, peers, spread, "difference", atol=1e-3)


CASES = (fit_case(1_000), fit_case(3_000), predict_case(5_000))
