"""Principal component analysis: scikit-learn, sklearnex and fastml."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from ..contest import Case, Contestant


class Data(NamedTuple):
    X: np.ndarray
    k: int | None


def normal(n: int, d: int, dtype: str, k: int | None) -> Data:
    X = np.random.default_rng(0).standard_normal((n, d))
    return Data((X * np.linspace(1, 3, d) + 1).astype(dtype), k)


def fit(data: Data, threads: int, *, library: str) -> Callable[[], Any]:
    model = import_module(f"{library}.decomposition").PCA(data.k, random_state=0)
    return lambda: model.fit(data.X).components_


def missed(data: Data, components: np.ndarray) -> float:
    """The part of the variance that the components do not hold."""
    Z = data.X.astype(np.float64) - data.X.mean(axis=0, dtype=np.float64)
    return float(1 - np.sum((Z @ components.T) ** 2) / np.vdot(Z, Z))


def case(n: int, d: int, dtype: str = "float64", k: int | None = None) -> Case:
    """Fits; all components unless there is a k."""
    peers = tuple(
        Contestant(name, partial(fit, library=library), distribution)
        for name, library, distribution in (
            ("scikit-learn", "sklearn", "scikit-learn"),
            ("sklearnex", "sklearnex", "scikit-learn-intelex"),
            ("fastml", "fastml", "fastml"),
        )
    )
    params = {"n": n, "d": d, "dtype": dtype, "k": k}
    return Case("pca", params, normal, peers, missed, "variance missed", atol=1e-5)


CASES = (case(200_000, 50), case(20_000, 500, "float32"), case(20_000, 1_000, k=20))
