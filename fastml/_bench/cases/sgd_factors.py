"""Matrix completion by stochastic gradient descent: fastml and LIBMF.

Everybody takes the same number of passes over the ratings, with the same penalty and first steps.
LIBMF has no biases; its time is that of `fit` on rows that are ready.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..contest import Case, Contestant
from .als import SMALL, Ratings, movielens_like, test_error


def fit(data: Ratings, threads: int, *, biases: bool) -> Callable[[], Any]:
    from fastml.recommendation import SGDFactorization

    model = SGDFactorization(
        data.f, alpha=data.alpha, max_iter=data.max_iter, biases=biases, tol=0, random_state=0
    )
    pairs = np.c_[data.users, data.items]
    return lambda: model.fit(data.train).predict(pairs)


def fit_libmf(data: Ratings, threads: int) -> Callable[[], Any]:
    with contextlib.redirect_stdout(io.StringIO()):  # it says what it has loaded
        from libmf.mf import MF

    coo = data.train.tocoo()
    rows = np.c_[coo.row, coo.col, coo.data].astype(np.float32)

    def call() -> Any:
        model = MF(
            k=data.f,
            nr_threads=threads,
            nr_iters=data.max_iter,
            lambda_p1=0.0,
            lambda_p2=data.alpha,
            lambda_q1=0.0,
            lambda_q2=data.alpha,
            eta=0.1,
            quiet=True,
        )
        model.fit(rows)
        found = model.model
        U = np.ctypeslib.as_array(found.P, (found.m, found.k))
        V = np.ctypeslib.as_array(found.Q, (found.n, found.k))
        predicted = np.einsum("ij,ij->i", U[data.users], V[data.items])
        # Who has no ratings has no numbers for factors: LIBMF itself then predicts the mean.
        return np.where(np.isnan(predicted), found.b, predicted)

    return call


def case(
    n_users: int, n_items: int, n_ratings: int, f: int = 50, max_iter: int = 20, alpha: float = 0.05
) -> Case:
    """Explicit ratings."""
    peers = (
        Contestant("libmf", fit_libmf, "libmf"),
        Contestant("fastml", partial(fit, biases=True), "fastml"),
        Contestant("fastml (without biases)", partial(fit, biases=False), "fastml"),
    )
    params = {
        "n_users": n_users,
        "n_items": n_items,
        "n_ratings": n_ratings,
        "f": f,
        "max_iter": max_iter,
        "alpha": alpha,
    }
    return Case("sgd factors", params, movielens_like, peers, test_error, "test RMSE", rtol=2e-2)


CASES = (case(*SMALL),)
