"""Random features: scikit-learn and fastml, the same features from the same seed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from ..contest import Case, Contestant


def rows(n: int, d: int, m: int, sampler: str, dtype: str) -> tuple[np.ndarray, str, int]:
    return np.random.default_rng(0).random((n, d)).astype(dtype), sampler, m


def make(data: Any, library: str) -> Any:
    X, sampler, m = data
    estimator = getattr(import_module(f"{library}.kernel_approximation"), sampler)
    drawn = {} if sampler == "AdditiveChi2Sampler" else {"n_components": m, "random_state": 0}
    return estimator(**drawn).fit(X)


def transform(data: Any, threads: int, *, library: str) -> Callable[[], Any]:
    return partial(make(data, library).transform, data[0])


def error(data: Any, result: np.ndarray) -> float:
    """How far some rows are from scikit-learn's."""
    exact = make(data, "sklearn").transform(data[0][:200])
    return float(np.abs(result[:200] - exact).max())


def case(
    n: int, d: int = 50, m: int = 500, sampler: str = "RBFSampler", dtype: str = "float64"
) -> Case:
    peers = (
        Contestant("scikit-learn", partial(transform, library="sklearn"), "scikit-learn"),
        Contestant("fastml", partial(transform, library="fastml"), "fastml"),
    )
    shape = {"n": n, "d": d, "m": m, "sampler": sampler, "dtype": dtype}
    return Case("sketch", shape, rows, peers, error, "difference", atol=1e-2)


CASES = (
    case(20_000),
    case(20_000, dtype="float32"),
    case(20_000, sampler="Nystroem"),
    case(5_000, m=100, sampler="PolynomialCountSketch"),
    case(20_000, sampler="AdditiveChi2Sampler"),
)
