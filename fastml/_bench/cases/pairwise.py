"""Gram matrices and distances: scikit-learn, fastml and daal4py, which sklearnex is made of."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import pairwise as reference

from ..contest import Case, Contestant


class Data(NamedTuple):
    X: np.ndarray
    Y: np.ndarray | None
    name: str
    params: dict[str, float]


def histograms(n: int, m: int, d: int, function: str, dtype: str) -> Data:
    """Uniform rows, which suit every kernel; m = 0: one matrix, against itself."""
    rng = np.random.default_rng(0)
    X = rng.random((n, d)).astype(dtype)
    Y = rng.random((m, d)).astype(dtype) if m else None
    params = {"gamma": 1.0 / d} if function in ("rbf_kernel", "laplacian_kernel") else {}
    return Data(X, Y, function, params)


def error(data: Data, K: np.ndarray) -> float:
    """The largest error in a sample of rows, relative to the largest entry, in double."""
    rows = slice(None, None, max(1, len(data.X) // 50))
    X = data.X[rows].astype(np.float64)
    Y = (data.X if data.Y is None else data.Y).astype(np.float64)
    exact = getattr(reference, data.name)(X, Y, **data.params)
    return float(np.abs(K[rows] - exact).max() / np.abs(exact).max())


def compute(data: Data, threads: int, *, library: str) -> Callable[[], Any]:
    function = getattr(import_module(f"{library}.metrics.pairwise"), data.name)
    return partial(function, data.X, data.Y, **data.params)


def daal(data: Data, threads: int) -> Callable[[], Any]:
    import daal4py

    daal4py.daalinit(threads)
    fptype = "float" if data.X.dtype == np.float32 else "double"
    if data.name == "rbf_kernel":
        sigma = np.sqrt(0.5 / data.params["gamma"])
        kernel = partial(daal4py.kernel_function_rbf, sigma=sigma)
    else:
        kernel = daal4py.kernel_function_linear
    Y = data.X if data.Y is None else data.Y

    def call() -> Any:
        algorithm = kernel(fptype=fptype, computationMode="matrixMatrix")
        return algorithm.compute(data.X, Y).values

    return call


def case(n: int, m: int, d: int, function: str = "rbf_kernel", dtype: str = "float64") -> Case:
    """One function of `sklearn.metrics.pairwise`; its default parameters but for gamma = 1 / d."""
    params = {"n": n, "m": m, "d": d, "function": function, "dtype": dtype}
    peers = [
        Contestant("scikit-learn", partial(compute, library="sklearn"), "scikit-learn"),
        Contestant("fastml", partial(compute, library="fastml"), "fastml"),
    ]
    if function in ("rbf_kernel", "linear_kernel"):
        peers.append(Contestant("daal4py", daal, "scikit-learn-intelex"))
    atol = 1e-5 if dtype == "float32" else 1e-12
    return Case("pairwise", params, histograms, tuple(peers), error, "relative error", atol=atol)


CASES = (
    case(3000, 0, 20),
    case(3000, 3000, 64, dtype="float32"),
    case(3000, 0, 20, "polynomial_kernel"),
    case(1500, 0, 32, "laplacian_kernel"),
    case(1500, 0, 32, "chi2_kernel"),
    case(3000, 0, 20, "euclidean_distances"),
    case(10, 10, 5),
)
