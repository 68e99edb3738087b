"""Principal components of a kernel: scikit-learn, fastml, and fastml without the Gram matrix."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from ..contest import Case, Contestant


class Data(NamedTuple):
    X: np.ndarray
    k: int
    kernel: str
    part: str


def rows(n: int, d: int, k: int, kernel: str, part: str, dtype: str) -> Data:
    return Data(np.random.default_rng(0).normal(size=(n, d)).astype(dtype), k, kernel, part)


def run(data: Data, threads: int, *, library: str, **params: Any) -> Callable[[], Any]:
    estimator = import_module(f"{library}.decomposition").KernelPCA
    model = estimator(data.k, kernel=data.kernel, random_state=0, **params)
    if data.part == "fit":
        return lambda: model.fit(data.X)
    model.fit(data.X)
    return lambda: (model.transform(data.X[:1000]), model)[1]


def error(data: Data, model: Any) -> float:
    """Of the eigenvectors' residuals in the space of the kernel, beside the largest eigenvalue."""
    Z = model.eigenvectors_ * np.sqrt(model.eigenvalues_)
    return float(np.abs(model.transform(data.X[:200]) - Z[:200]).max() / np.abs(Z).max())


def case(
    n: int, d: int = 20, k: int = 5, kernel: str = "rbf", part: str = "fit", dtype: str = "float64"
) -> Case:
    streamed = partial(run, library="fastml", max_gram_mb=0)
    peers = (
        Contestant("scikit-learn", partial(run, library="sklearn"), "scikit-learn"),
        Contestant("fastml", partial(run, library="fastml"), "fastml"),
        Contestant("fastml, streamed", streamed, "fastml"),
    )
    shape = {"n": n, "d": d, "k": k, "kernel": kernel, "part": part, "dtype": dtype}
    return Case("kernel_pca", shape, rows, peers, error, "residual", atol=1e-3)


CASES = (case(3_000), case(3_000, 200, 20), case(3_000, part="transform"))
