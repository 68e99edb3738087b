"""Principal component analysis and factor analysis: scikit-learn, sklearnex and fastml."""

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
    k: int | None


def normal(n: int, d: int, dtype: str, k: int | None) -> Data:
    X = np.random.default_rng(0).standard_normal((n, d))
    return Data((X * np.linspace(1, 3, d) + 1).astype(dtype), k)


def counts(n: int, d: int, density: float, dtype: str, k: int) -> Data:
    """Sparse rows, with columns that are larger than others."""
    X = sparse.random(n, d, density, format="csr", random_state=0)
    return Data((X @ sparse.diags_array(np.linspace(1, 3, d))).tocsr().astype(dtype), k)


def fit(data: Data, threads: int, *, library: str, svd_solver: str = "auto") -> Callable[[], Any]:
    pca = import_module(f"{library}.decomposition").PCA
    model = pca(data.k, svd_solver=svd_solver, random_state=0)
    return lambda: model.fit(data.X).components_


def missed(data: Data, components: np.ndarray) -> float:
    """The part of the variance that the components do not hold."""
    X = data.X.astype(np.float64)
    mean = np.asarray(X.mean(axis=0)).ravel()
    total = (X.multiply(X) if sparse.issparse(X) else X**2).sum() - X.shape[0] * (mean @ mean)
    return float(1 - np.sum((X @ components.T - mean @ components.T) ** 2) / total)


def case(n: int, d: int, dtype: str = "float64", k: int | None = None) -> Case:
    """Fits; all components unless there is a k."""
    params = {"n": n, "d": d, "dtype": dtype, "k": k}
    by_product = partial(fit, library="sklearn", svd_solver="covariance_eigh")
    peers = (Contestant("covariance_eigh", by_product, "scikit-learn"), *PEERS)
    return Case("pca", params, normal, peers, missed, "variance missed", atol=1e-5)


def sparse_case(n: int, d: int, density: float, k: int, dtype: str = "float64") -> Case:
    """Fits of CSR matrices, which sklearnex leaves to scikit-learn."""
    params = {"n": n, "d": d, "density": density, "dtype": dtype, "k": k}
    peers = tuple(peer for peer in PEERS if peer.name != "sklearnex")
    return Case("pca sparse", params, counts, peers, missed, "variance missed", atol=1e-5)


PEERS = tuple(
    Contestant(name, partial(fit, library=library), distribution)
    for name, library, distribution in (
        ("scikit-learn", "sklearn", "scikit-learn"),
        ("sklearnex", "sklearnex", "scikit-learn-intelex"),
        ("fastml", "fastml", "fastml"),
    )
)


def loadings(n: int, d: int, k: int) -> Data:
    """Sums of k factors, and noise that differs between columns."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, k)) @ rng.normal(size=(k, d))
    return Data(X + rng.normal(size=(n, d)) * np.linspace(0.5, 2, d), k)


def fit_factors(data: Data, threads: int, *, library: str, method: str) -> Callable[[], Any]:
    estimator = import_module(f"{library}.decomposition").FactorAnalysis
    return partial(estimator(data.k, svd_method=method, random_state=0).fit, data.X)


def unlikely(data: Data, model: Any) -> float:
    return -float(model.score(data.X))


def factor_case(n: int, d: int, k: int, method: str) -> Case:
    """Factor analysis."""
    peers = tuple(
        Contestant(name, partial(fit_factors, library=library, method=method), name)
        for name, library in (("scikit-learn", "sklearn"), ("fastml", "fastml"))
    )
    params = {"n": n, "d": d, "k": k}
    return Case(f"factor_analysis {method}", params, loadings, peers, unlikely, "-log likelihood")


CASES = (
    case(200_000, 50),
    case(20_000, 500, "float32"),
    case(20_000, 1_000, k=20),
    case(1_000, 1_000),
    sparse_case(50_000, 500, 0.02, 20),
    factor_case(5_000, 50, 5, "randomized"),
)
