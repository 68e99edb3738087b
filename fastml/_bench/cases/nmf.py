"""Non-negative matrix factorisation: the loss of fastml and scikit-learn after equal iterations."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ..contest import Case, Contestant


class Problem(NamedTuple):
    X: Any
    params: dict[str, Any]


def parts(n: int, d: int, k: int, density: float, dtype: str, **params: Any) -> Problem:
    """Sums of k parts with noise; or counts of words by topic, where few words occur."""
    rng = np.random.default_rng(0)
    if density == 1:
        X = rng.random((n, k)) ** 3 @ rng.random((k, d)) ** 3 + 0.1 * rng.random((n, d))
        return Problem(X.astype(dtype), {"n_components": k, **params})
    topics = rng.gamma(0.05, size=(k, d)) / np.arange(1, d + 1) ** 0.5
    words = int(n * d * density)
    topic = np.repeat(rng.integers(0, k, n), -(-words // n))
    row = np.repeat(np.arange(n), -(-words // n))
    column = np.empty(len(row), np.int64)
    for t in range(k):
        mine = topic == t
        column[mine] = rng.choice(d, mine.sum(), p=topics[t] / topics[t].sum())
    # Half of the words are of no topic.
    column = np.where(rng.random(len(row)) < 0.5, rng.integers(0, d, len(row)), column)
    X = sparse.csr_matrix((np.ones(len(row), dtype), (row, column)), shape=(n, d))
    return Problem(X, {"n_components": k, **params})


def fit(problem: Problem, threads: int, *, library: str, kind: str, **own: Any) -> Callable:
    cls = getattr(import_module(f"{library}.decomposition"), kind)
    params = {"init": "random", "tol": 0, "random_state": 0} | problem.params | own
    return partial(cls(**params).fit, problem.X)


def loss(problem: Problem, model: Any) -> float:
    return float(model.reconstruction_err_)


def case(
    n: int,
    d: int,
    k: int,
    density: float = 1.0,
    *,
    dtype: str = "float64",
    kind: str = "NMF",
    max_iter: int = 20,
    **params: Any,
) -> Case:
    peers = [
        Contestant(label, partial(fit, library=library, kind=kind), label)
        for label, library in (("scikit-learn", "sklearn"), ("fastml", "fastml"))
    ]
    if kind == "NMF" and "solver" not in params:
        hals = partial(fit, library="fastml", kind=kind, solver="hals", max_iter=max_iter // 2)
        name = "fastml (hals, half the iterations)"
        peers.append(Contestant(name, hals, "fastml", beside=True))
    params = {"n": n, "d": d, "k": k, "density": density, "dtype": dtype, "max_iter": max_iter} | (
        params
    )
    return Case("nmf" if kind == "NMF" else kind, params, parts, tuple(peers), loss, "loss")


KL: dict[str, Any] = {"beta_loss": "kullback-leibler", "max_iter": 10}

CASES = (
    case(2_000, 1_000, 20),
    case(20_000, 10_000, 20, 0.005),
    case(2_000, 1_000, 20, solver="mu", **KL),
    case(20_000, 10_000, 20, 0.005, solver="mu", **KL),
)
