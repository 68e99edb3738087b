"""Matrix completion by alternating least squares: fastml, cmfrec and implicit.

Ratings are made up in the shape of MovieLens: few users and items have most of them. Everybody
makes the same number of iterations from first factors of their own. What counts are the errors on
ratings that were held back, and the loss for implicit feedback.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ..contest import Case, Contestant

NOISE = 0.8


def one_thread() -> dict[str, str]:
    """What the peers' documentation asks of OpenBLAS, since they have threads of their own."""
    return {"OPENBLAS_NUM_THREADS": "1"}


class Ratings(NamedTuple):
    train: sparse.csr_matrix
    users: np.ndarray  # of the test
    items: np.ndarray
    ratings: np.ndarray
    f: int
    alpha: float
    max_iter: int


def movielens_like(
    n_users: int, n_items: int, n_ratings: int, f: int, max_iter: int, alpha: float = 10.0
) -> Ratings:
    """Half stars from a model of rank 10 with biases, a tenth of them held back."""
    rng = np.random.default_rng(0)
    active = rng.lognormal(sigma=1.1, size=n_users)
    popular = 1 / (np.arange(n_items) + n_items / 50) ** 0.9
    user = rng.choice(n_users, int(n_ratings * 1.3), p=active / active.sum())
    item = rng.permutation(n_items)[rng.choice(n_items, len(user), p=popular / popular.sum())]
    cell = rng.permutation(np.unique(user.astype(np.int64) * n_items + item))[:n_ratings]
    user, item = np.divmod(cell, n_items)
    U, V = (rng.normal(size=(n, 10)).astype(np.float32) for n in (n_users, n_items))
    rating = 3.5 + 0.4 * rng.normal(size=n_users)[user] + 0.5 * rng.normal(size=n_items)[item]
    for p in range(10):
        rating += 0.6 / np.sqrt(10) * U[user, p] * V[item, p]
    rating += NOISE * rng.normal(size=len(rating))
    rating = np.clip(np.round(2 * rating) / 2, 0.5, 5).astype(np.float32)
    held = len(rating) // 10
    train = sparse.csr_matrix((rating[held:], (user[held:], item[held:])), shape=(n_users, n_items))
    return Ratings(train, user[:held], item[:held], rating[:held], f, alpha, max_iter)


def test_error(data: Ratings, predicted: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(np.asarray(predicted, np.float64) - data.ratings))))


def fit(data: Ratings, threads: int, *, solver: str = "auto") -> Callable[[], Any]:
    from fastml.recommendation import ALS

    model = ALS(
        data.f, alpha=data.alpha, max_iter=data.max_iter, tol=0, solver=solver, random_state=0
    )
    pairs = np.c_[data.users, data.items]
    return lambda: model.fit(data.train).predict(pairs)


def fit_cmfrec(data: Ratings, threads: int, *, cg: bool) -> Callable[[], Any]:
    from cmfrec import CMF

    coo = data.train.tocoo()

    def call() -> Any:
        model = CMF(
            k=data.f,
            lambda_=data.alpha,
            niter=data.max_iter,
            use_cg=cg,
            use_float=True,
            nthreads=threads,
            verbose=False,
            precompute_for_predictions=False,
        )
        return model.fit(coo).predict(data.users, data.items)

    return call


def case(
    n_users: int, n_items: int, n_ratings: int, f: int = 50, max_iter: int = 10, **more: Any
) -> Case:
    """Explicit ratings."""
    peers = (
        Contestant("cmfrec (CG)", partial(fit_cmfrec, cg=True), "cmfrec", one_thread),
        Contestant("cmfrec (Cholesky)", partial(fit_cmfrec, cg=False), "cmfrec", one_thread),
        Contestant("fastml", fit, "fastml"),
        Contestant("fastml (Cholesky)", partial(fit, solver="cholesky"), "fastml"),
    )
    params = {
        "n_users": n_users,
        "n_items": n_items,
        "n_ratings": n_ratings,
        "f": f,
        "max_iter": max_iter,
        **more,
    }
    return Case("als", params, movielens_like, peers, test_error, "test RMSE", rtol=2e-3)


class Factors(NamedTuple):
    users: np.ndarray
    items: np.ndarray


ALPHA = 0.01


def loss(data: Ratings, factors: Factors) -> float:
    """The objective of implicit feedback, with c = 1 + r, over all users and items."""
    U, V = (np.asarray(F, np.float64) for F in factors)
    coo = data.train.tocoo()
    total = float(np.einsum("ij,ij", U.T @ U, V.T @ V))
    for begin in range(0, coo.nnz, 1 << 20):
        part = slice(begin, begin + (1 << 20))
        s = np.einsum("ij,ij->i", U[coo.row[part]], V[coo.col[part]])
        r = coo.data[part].astype(np.float64)
        total += float(((1 + r) * (1 - s) ** 2 - s**2).sum())
    return total + ALPHA * float((U**2).sum() + (V**2).sum())


def fit_implicit(
    data: Ratings, threads: int, *, library: str, solver: str
) -> Callable[[], Factors]:
    if library == "fastml":
        from fastml.recommendation import ImplicitALS

        model = ImplicitALS(
            data.f, alpha=ALPHA, max_iter=data.max_iter, tol=0, solver=solver, random_state=0
        )

        def ours() -> Factors:
            model.fit(data.train)
            return Factors(model.user_factors_, model.item_factors_)

        return ours
    from implicit.cpu.als import AlternatingLeastSquares

    confidence = data.train.copy()
    confidence.data += 1

    def theirs() -> Factors:
        model = AlternatingLeastSquares(
            factors=data.f,
            regularization=ALPHA,
            iterations=data.max_iter,
            use_cg=solver == "cg",
            num_threads=threads,
            random_state=0,
        )
        model.fit(confidence, show_progress=False)
        return Factors(model.user_factors, model.item_factors)

    return theirs


def implicit_case(
    n_users: int, n_items: int, n_ratings: int, f: int, max_iter: int, solver: str
) -> Case:
    """Implicit feedback; a loss lower than the other's is as good as an equal one."""
    peers = tuple(
        Contestant(
            name,
            partial(fit_implicit, library=name, solver=solver),
            name,
            one_thread if name == "implicit" else dict,
        )
        for name in ("implicit", "fastml")
    )
    params = {
        "n_users": n_users,
        "n_items": n_items,
        "n_ratings": n_ratings,
        "f": f,
        "max_iter": max_iter,
    }
    return Case(f"implicit als, {solver}", params, movielens_like, peers, loss, "loss", rtol=1e-2)


SMALL = (6_000, 3_700, 1_000_000)  # as many users, items and ratings as in MovieLens 1M

CASES = (case(*SMALL), implicit_case(*SMALL, f=64, max_iter=5, solver="cg"))
