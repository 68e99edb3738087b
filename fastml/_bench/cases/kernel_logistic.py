"""Kernel logistic regression: fastml, and what its factorisations cost alone.

scikit-learn has no such estimator; its Gaussian process classifier does not solve this problem.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..contest import Case, Contestant


class Data(NamedTuple):
    X: np.ndarray
    y: np.ndarray


def waves(n: int, d: int, k: int, dtype: str) -> Data:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    scores = np.sin(2 * X) @ rng.normal(size=(d, k)) + 0.3 * rng.gumbel(size=(n, k))
    return Data(X.astype(dtype), scores.argmax(axis=1))


def fit(data: Data, threads: int, *, solver: str) -> Callable[[], Any]:
    from fastml.kernel_logistic import KernelLogisticRegression

    model = KernelLogisticRegression(10, solver=solver)

    def call() -> Any:
        model.fit(data.X, data.y)
        return model.dual_gap_ / model.objective_

    return call


def factorise(data: Data, threads: int) -> Callable[[], Any]:
    """As many times as Newton's method does."""
    from scipy.linalg import lapack
    from sklearn.metrics.pairwise import rbf_kernel

    from fastml.kernel_logistic import KernelLogisticRegression

    steps = KernelLogisticRegression(10).fit(data.X, data.y).n_iter_
    K = rbf_kernel(data.X)
    K.flat[:: len(K) + 1] += 1
    potrf = lapack.dpotrf if K.dtype == np.float64 else lapack.spotrf
    lower = K.copy()

    def call() -> Any:
        for _ in range(steps):
            np.copyto(lower, K)
            potrf(lower.T, lower=1, clean=0, overwrite_a=1)
        return 0.0

    return call


def gap(data: Data, result: float) -> float:
    return result


def case(n: int, d: int = 20, k: int = 2, dtype: str = "float64") -> Case:
    peers = [Contestant("fastml", partial(fit, solver="auto"), "fastml")]
    if k == 2:
        peers.append(Contestant("fastml, streamed", partial(fit, solver="newton-cg"), "fastml"))
        peers.append(Contestant("Cholesky alone", factorise, "scipy"))
    shape = {"n": n, "d": d, "k": k, "dtype": dtype}
    return Case("kernel-logistic", shape, waves, tuple(peers), gap, "relative gap", atol=1e-5)


CASES = (case(2_000), case(2_000, k=4))
