"""Factors for counts, by their likelihood: fastml, a user's function in it, and SciPy's L-BFGS."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..contest import Case, Contestant
from .als import Factors, Ratings, movielens_like

ALPHA = 5.0


def counts(n_users: int, n_items: int, n_ratings: int, f: int, max_iter: int) -> Ratings:
    """Half stars, counted."""
    data = movielens_like(n_users, n_items, n_ratings, f, max_iter)
    data.train.data *= 2
    return data


def poisson(rating: float, score: float) -> tuple[float, float, float]:
    mean = np.exp(score)
    return rating * score - mean, rating - mean, -mean


def objective(coo: Any, U: np.ndarray, V: np.ndarray) -> tuple[float, np.ndarray]:
    """Minus the log-likelihood without biases, with its penalty; and its slopes by scores."""
    scores = np.einsum("ij,ij->i", U[coo.row], V[coo.col])
    means = np.exp(scores)
    squares = np.square(U, dtype=float).sum() + np.square(V, dtype=float).sum()
    value = means.sum(dtype=float) - scores @ coo.data.astype(scores.dtype) + ALPHA / 2 * squares
    return float(value), means - coo.data


def loss(data: Ratings, factors: Factors) -> float:
    """The objective, in double precision."""
    return objective(data.train.tocoo(), *(np.asarray(F, float) for F in factors))[0]


def fit(data: Ratings, threads: int, *, own: bool) -> Callable[[], Factors]:
    from fastml.jit import likelihood
    from fastml.recommendation import GLMFactorization

    model = GLMFactorization(
        data.f,
        likelihood=likelihood(poisson, mean=np.exp) if own else "poisson",
        alpha=ALPHA,
        biases=False,
        max_iter=data.max_iter,
        tol=0,
        random_state=0,
    )

    def call() -> Factors:
        model.fit(data.train)
        return Factors(model.user_factors_, model.item_factors_)

    return call


def fit_scipy(data: Ratings, threads: int) -> Callable[[], Factors]:
    from scipy import sparse
    from scipy.optimize import minimize

    coo, f = data.train.tocoo(), data.f
    n, m = coo.shape
    start = 0.3 * np.random.default_rng(0).standard_normal((n + m) * f)

    def value_and_slope(x: np.ndarray) -> tuple[float, np.ndarray]:
        U, V = x[: n * f].reshape(n, f), x[n * f :].reshape(m, f)
        value, slopes = objective(coo, U, V)
        S = sparse.csr_matrix((slopes, (coo.row, coo.col)), coo.shape)
        return value, np.append((S @ V + ALPHA * U).ravel(), (S.T @ U + ALPHA * V).ravel())

    def call() -> Factors:
        options = {"maxiter": 10 * data.max_iter}
        x = minimize(value_and_slope, start, jac=True, method="L-BFGS-B", options=options).x
        return Factors(x[: n * f].reshape(n, f), x[n * f :].reshape(m, f))

    return call


def case(n_users: int, n_items: int, n_ratings: int, f: int = 16, max_iter: int = 10) -> Case:
    peers = (
        Contestant("scipy L-BFGS", fit_scipy, "scipy"),
        Contestant("fastml", partial(fit, own=False), "fastml"),
        Contestant("fastml (a user's function)", partial(fit, own=True), "fastml"),
    )
    params = {
        "n_users": n_users,
        "n_items": n_items,
        "n_ratings": n_ratings,
        "f": f,
        "max_iter": max_iter,
    }
    return Case("likelihood, poisson", params, counts, peers, loss, "loss", rtol=2e-3)


CASES = (case(2_000, 1_500, 200_000),)
