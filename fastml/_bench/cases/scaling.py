"""Scaling columns and rows: scikit-learn and fastml, fit and transform apart.

sklearnex has none of these scalers.
"""

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
    scaler: str


def normal(scaler: str, n: int, d: int, dtype: str, kind: str) -> Data:
    X: Any = np.random.default_rng(0).standard_normal((n, d)).astype(dtype)
    X += 3
    if kind == "csr":
        X[X < 4] = 0  # one in six is stored
        return Data(sparse.csr_matrix(X), scaler)
    return Data(X, scaler)


def _make(data: Data, library: str) -> Any:
    name = data.scaler
    params: dict[str, Any] = {}
    if sparse.issparse(data.X):
        params = {"StandardScaler": {"with_mean": False}}.get(name, {})
    return getattr(import_module(f"{library}.preprocessing"), name)(**params)


def fit(data: Data, threads: int, *, library: str) -> Callable[[], Any]:
    scaler = _make(data, library)
    return lambda: scaler.fit(data.X).scale_


def transform(data: Data, threads: int, *, library: str) -> Callable[[], Any]:
    return partial(_make(data, library).fit(data.X[:1000]).transform, data.X)


EXACT: dict[str, Callable[[np.ndarray], Any]] = {
    "StandardScaler": np.std,
    "MinMaxScaler": lambda x: 1 / np.ptp(x),
    "MaxAbsScaler": lambda x: np.abs(x).max(),
    "RobustScaler": lambda x: np.subtract(*np.percentile(x, [75, 25])),
}


def error_of_scale(data: Data, scale: np.ndarray) -> float:
    """Largest relative error of a scale, beside NumPy's on the columns one by one."""
    columns = data.X.tocsc() if sparse.issparse(data.X) else data.X
    worst = 0.0
    for j in range(0, columns.shape[1], max(1, columns.shape[1] // 5)):
        x = columns[:, [j]].toarray() if sparse.issparse(columns) else columns[:, j]
        x = np.asarray(x, dtype=np.float64).ravel()
        exact = EXACT[data.scaler](x)
        worst = max(worst, abs(float(scale[j]) / exact - 1))
    return worst


def error_of_rows(data: Data, result: Any) -> float:
    """Largest difference of some rows from scikit-learn's, relative to the largest value."""
    rows = np.linspace(0, data.X.shape[0] - 1, 50).astype(int)
    expected = _make(data, "sklearn").fit(data.X[:1000]).transform(data.X[rows])
    difference = abs(result[rows] - expected).max()
    return float(difference / (abs(expected).max() or 1))  # one row less itself is zero


def fit_case(scaler: str, n: int, d: int, dtype: str = "float64", kind: str = "dense") -> Case:
    """Statistics of columns."""
    params = {"scaler": scaler, "n": n, "d": d, "dtype": dtype, "kind": kind}
    atol = 1e-5 if dtype == "float32" else 1e-10
    peers = _peers(fit)
    return Case("scaling-fit", params, normal, peers, error_of_scale, "relative error", atol=atol)


def transform_case(
    scaler: str, n: int, d: int, dtype: str = "float64", kind: str = "dense"
) -> Case:
    """What is done with them."""
    params = {"scaler": scaler, "n": n, "d": d, "dtype": dtype, "kind": kind}
    atol = 1e-6 if dtype == "float32" else 1e-13
    peers = _peers(transform)
    return Case("scaling-transform", params, normal, peers, error_of_rows, "error", atol=atol)


def _peers(prepare: Callable[..., Any]) -> tuple[Contestant, ...]:
    return (
        Contestant("scikit-learn", partial(prepare, library="sklearn"), "scikit-learn"),
        Contestant("fastml", partial(prepare, library="fastml"), "fastml"),
    )


CASES = (
    fit_case("StandardScaler", 500_000, 20),
    fit_case("RobustScaler", 100_000, 20),
    transform_case("StandardScaler", 500_000, 20),
    transform_case("Normalizer", 500_000, 20, "float32"),
    transform_case("StandardScaler", 1, 20),
)
