"""From a table of ratings to recommendations.

The ratings are made up in the shape of MovieLens: a few users and films have most of them. What
users think is of rank 8, plus biases, and what they write down is off by 0.8 stars, so that no
model can have a smaller error on ratings that it has not seen. Draws films.png if matplotlib is
installed.
"""

import numpy as np

from fastml.metrics import ndcg_at_k, rmse
from fastml.recommendation import ALS, split_ratings

N_USERS, N_FILMS, RANK, NOISE = 3_000, 1_000, 8, 0.8


def rating_table(n, rng):
    """Return rows of user, film, rating and time, users and films by name."""
    active, popular = rng.lognormal(size=N_USERS), 1 / (np.arange(N_FILMS) + 30.0)
    user = rng.choice(N_USERS, 2 * n, p=active / active.sum())
    film = rng.choice(N_FILMS, 2 * n, p=popular / popular.sum())
    user, film = np.divmod(rng.permutation(np.unique(user * N_FILMS + film))[:n], N_FILMS)
    U, V = rng.normal(size=(N_USERS, RANK)), rng.normal(size=(N_FILMS, RANK))
    opinion = 3.5 + 0.25 * (U @ V.T)
    opinion += rng.normal(scale=0.4, size=(N_USERS, 1)) + rng.normal(scale=0.5, size=N_FILMS)
    rating = opinion[user, film] + NOISE * rng.normal(size=len(user))
    users = np.array([f"user {i}" for i in range(N_USERS)])
    films = np.array([f"film {i}" for i in range(N_FILMS)])
    return np.c_[users[user], films[film]], rating.astype(np.float32), rng.random(len(user))


pairs, ratings, times = rating_table(250_000, np.random.default_rng(0))
train, test = split_ratings(pairs, times=times, test_size=0.1, random_state=0)
print(f"{len(train)} ratings to learn from, {len(test)} later ones to test with")
print(f"RMSE of the mean {np.std(ratings[test]):.3f}, of what users think {NOISE:.3f}")

ranks = [1, 2, 4, 6, 8, 10, 12, 16]
by_rank = []
for rank in ranks:
    model = ALS(rank, alpha=6.0, max_iter=20, random_state=0).fit(pairs[train], ratings[train])
    by_rank.append(rmse(ratings[test], model.predict(pairs[test])))
    print(f"rank {rank:2d}: RMSE {by_rank[-1]:.3f} after {model.n_iter_} iterations")

best = ranks[int(np.argmin(by_rank))]


class TestErrors:
    """A callback that notes the error on the test ratings after each iteration."""

    def setup(self, estimator, context):
        self.errors = []

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context, *, fitted_estimator):
        if context.task_name == "iteration":
            self.errors.append(rmse(ratings[test], fitted_estimator.predict(pairs[test])))

    def teardown(self, estimator, context):
        pass


by_iteration = {"random": TestErrors(), "svd": TestErrors()}
for init, callback in by_iteration.items():
    model = ALS(best, alpha=6.0, init=init, max_iter=12, tol=0, random_state=0)
    model.set_callbacks(callback).fit(pairs[train], ratings[train])

model = ALS(best, alpha=6.0, random_state=0).fit(pairs[train], ratings[train])
films, scores = model.recommend("user 7", k=5)
print(f"\nuser 7 should see {', '.join(films[0])} (about {scores[0, 0]:.1f} stars)")
like, _ = model.similar_items(films[0, 0], k=3)
print(f"{films[0, 0]} is like {', '.join(like[0])}")

liked = {user: set() for user in model.user_ids_}
for (user, film), rating in zip(pairs[test], ratings[test], strict=True):
    if rating > 4 and user in liked:
        liked[user].add(film)
shown, _ = model.recommend(k=10)
print(f"NDCG@10 over all films: {ndcg_at_k(list(liked.values()), shown):.3f}")

try:
    import matplotlib
except ImportError:
    print("install matplotlib for a plot")
else:
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5), sharey=True, layout="tight")
    left.plot(ranks, by_rank, "o-")
    left.set(xlabel="rank", ylabel="RMSE on later ratings")
    for init, callback in by_iteration.items():
        right.plot(range(1, 13), callback.errors, "o-", label=f'init="{init}"')
    right.set(xlabel="iterations")
    for axes in (left, right):
        axes.axhline(NOISE, color="grey", linestyle=":", label="what users think")
    right.legend()
    figure.savefig("films.png", dpi=120)
