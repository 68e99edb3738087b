"""Random projections: scikit-learn and fastml, the same matrix from the same seed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ..contest import Case, Contestant


class Data(NamedTuple):
    X: Any
    m: int
    projection: str
    part: str


def rows(n: int, d: int, m: int, projection: str, kind: str, part: str, dtype: str) -> Data:
    if kind == "dense":
        X = np.random.default_rng(0).normal(size=(n, d)).astype(dtype)
    else:
        X = sparse.random(n, d, 0.01, format="csr", dtype=dtype, random_state=0)
    return Data(X, m, projection, part)


def make(data: Data, library: str) -> Any:
    estimator = getattr(import_module(f"{library}.random_projection"), data.projection)
    return estimator(data.m, random_state=0)


def run(data: Data, threads: int, *, library: str) -> Callable[[], Any]:
    model = make(data, library)
    if data.part == "fit":
        return lambda: model.fit(data.X).components_
    return partial(model.fit(data.X).transform, data.X)


def error(data: Data, result: Any) -> float:
    """How far the matrix, or some rows, are from scikit-learn's."""
    exact = make(data, "sklearn").fit(data.X)
    exact = exact.components_ if data.part == "fit" else exact.transform(data.X[:200])
    return float(abs(result[: exact.shape[0]] - exact).max())


def case(
    n: int,
    d: int,
    m: int,
    projection: str = "SparseRandomProjection",
    kind: str = "dense",
    part: str = "transform",
    dtype: str = "float64",
) -> Case:
    peers = (
        Contestant("scikit-learn", partial(run, library="sklearn"), "scikit-learn"),
        Contestant("fastml", partial(run, library="fastml"), "fastml"),
    )
    shape = {"n": n, "d": d, "m": m, "projection": projection, "kind": kind, "part": part}
    return Case("projection", shape | {"dtype": dtype}, rows, peers, error, "difference", atol=1e-3)


CASES = (
    case(2_000, 10_000, 500),
    case(2_000, 10_000, 500, "GaussianRandomProjection", "csr"),
    case(200, 50_000, 500, part="fit"),
)
