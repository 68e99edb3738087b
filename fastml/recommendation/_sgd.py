"""Explicit ratings by stochastic gradient descent."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from fastml._native import als
from fastml._native import sgd_factors as native
from fastml._runtime.threads import n_threads
from fastml.recommendation._base import padded
from fastml.recommendation._explicit import Explicit
from fastml.recommendation._ratings import Table, without_entries


class Places(NamedTuple):
    """Where the factors of users, or of items, are while they are learned.

    They are in parts of about as many ratings each, those of a part next to each other.
    """

    row_at: np.ndarray  # of each place, the user or item
    place: np.ndarray  # of each user or item
    part: np.ndarray  # of each user or item
    first: np.ndarray  # place of each part, and the number of places

    @classmethod
    def of(cls, counts: np.ndarray, parts: int) -> Places:
        n = len(counts)
        turn, at = np.divmod(np.arange(n), parts)
        dealt = np.where(turn % 2, parts - 1 - at, at)  # most ratings first, there and back
        part = np.empty(n, np.int32)
        part[np.argsort(-counts, kind="stable")] = dealt
        row_at = np.argsort(part, kind="stable").astype(np.int32)
        place = np.empty(n, np.int32)
        place[row_at] = np.arange(n, dtype=np.int32)
        first = np.append(0, np.cumsum(np.bincount(part, minlength=parts)))
        return cls(row_at, place, part, first.astype(np.intp))


class Rows(NamedTuple):
    """One side while it is learned: factors and the rest of what the kernel keeps, by place."""

    places: Places
    factors: np.ndarray
    records: np.ndarray  # bias, penalty at each rating, squared gradients of factors and of bias
    penalty: np.ndarray  # of the squares of each row, in the whole objective

    def objective(self, scale: float) -> float:
        squares = np.einsum("ij,ij->i", self.factors, self.factors, dtype=np.float64)
        return float(self.penalty @ (scale * squares + (scale * self.records[:, 0]) ** 2))


class Descent(NamedTuple):
    """Ratings in cells, divided by `scale` like the biases; products of factors are so as well."""

    ratings: np.ndarray
    begin: np.ndarray
    users: Rows
    items: Rows
    scale: float
    random_state: np.random.RandomState
    held: tuple[np.ndarray, np.ndarray, np.ndarray]  # places and values of ratings to stop by
    validation: list[float]


class SGDFactorization(Explicit):
    """Matrix completion by steps down the gradient, one for each rating in turn.

    Minimises the same as `ALS`: over the ratings r of users u for items i that were observed, the
    sum of (r - mu - b_u - b_i - u·v)², plus `alpha` times the squares of all factors and biases.
    An iteration takes much less time than one of `ALS`, but more of them are needed; the more
    factors, the more that is worth.

    Parameters
    ----------
    n_components : int, default=50
        The number of factors.

    alpha : float or (float, float), default=0.05
        The penalty; two of them are that of users and that of items.

    weighted_alpha : bool, default=True
        Whether to multiply the penalty of a user or an item by the number of its ratings.

    biases : bool, default=True
        Whether there are biases of users and items and the global one, the mean of the ratings.

    learning_rate : {"adagrad", "constant", "invscaling"}, default="adagrad"
        How long steps are. "adagrad": `eta0` over the root of the squared gradients so far, for
        each user and item by itself. "constant": `eta0`. "invscaling": `eta0` over the number of
        the iteration to the power of `power_t`.

    eta0 : float, default=0.1
        The length of the first steps, for ratings of variance 1, which is what they are scaled to.

    power_t : float, default=0.5
        The exponent for "invscaling".

    early_stopping : bool, default=False
        Whether to hold back some ratings, and to stop when an iteration does not lower the error
        on these by more than `tol` of it.

    validation_fraction : float, default=0.1
        The share of ratings to hold back with `early_stopping`.

    warm_start : bool, default=False
        Whether `fit` goes on from the factors, biases and lengths of steps of the last fit.

    duplicates : {"raise", "mean", "last"}, default="raise"
        What to do with several ratings of the same pair.

    max_iter : int, default=20
        The most iterations, each of which passes through all ratings.

    tol : float, default=1e-4
        Iterations end when one lowers the loss by no more than this share of it.

    random_state : int, RandomState instance or None, default=None
        Decides the first factors and the order of the ratings. An int makes fits repeatable.

    Attributes
    ----------
    user_ids_, item_ids_ : ndarray of shape (n_users,) and (n_items,)
        Who and what the rows of the factors are of. Of a matrix, the numbers of rows and columns.

    user_factors_, item_factors_ : ndarray of shape (n_users, n_components) and \
            (n_items, n_components)
        The factors.

    user_bias_, item_bias_ : ndarray of shape (n_users,) and (n_items,), or None
        The biases.

    global_bias_ : float
        The mean of the ratings; 0 without biases.

    loss_curve_ : list of float
        The objective in each iteration, by the error of each rating as it was before its step.

    validation_curve_ : list of float
        The root of the mean squared error on the ratings held back, after each iteration; empty
        without `early_stopping`.

    n_iter_ : int
        The number of iterations.

    See Also
    --------
    ALS : Solves for all users and all items in turn.

    Notes
    -----
    Users and items are cut into parts, ratings so into cells; cells that have no user and no item
    in common are worked on at the same time. The grid comes from the shape alone, so that the
    result does not depend on the number of threads. New users, new items and the ratings of
    `partial_fit` are solved for as in `ALS`. Ratings in double precision are computed in double
    precision, all others in single.

    Examples
    --------
    >>> import numpy as np
    >>> from fastml.recommendation import SGDFactorization
    >>> rng = np.random.default_rng(0)
    >>> pairs = np.argwhere(rng.random((200, 100)) < 0.3)
    >>> taste = np.outer(rng.normal(size=200), rng.normal(size=100))
    >>> model = SGDFactorization(2, random_state=0).fit(pairs, 3 + taste[tuple(pairs.T)])
    >>> model.score(pairs, 3 + taste[tuple(pairs.T)]) > 0.9
    True
    """

    _parameter_constraints: ClassVar[dict] = {
        **Explicit._parameter_constraints,
        "learning_rate": [StrOptions({"adagrad", "constant", "invscaling"})],
        "eta0": [Interval(Real, 0, None, closed="neither")],
        "power_t": [Interval(Real, 0, None, closed="left")],
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "warm_start": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        n_components=50,
        *,
        alpha=0.05,
        weighted_alpha=True,
        biases=True,
        learning_rate="adagrad",
        eta0=0.1,
        power_t=0.5,
        early_stopping=False,
        validation_fraction=0.1,
        warm_start=False,
        duplicates="raise",
        max_iter=20,
        tol=1e-4,
        random_state=None,
    ):
        self.n_components = n_components
        self.alpha = alpha
        self.weighted_alpha = weighted_alpha
        self.biases = biases
        self.learning_rate = learning_rate
        self.eta0 = eta0
        self.power_t = power_t
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.warm_start = warm_start
        self.duplicates = duplicates
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def _begin(self, table: Table, random_state: np.random.RandomState) -> Descent:
        matrix, dtype = table.matrix, table.matrix.dtype
        held = np.zeros(0, np.intp)
        if self.early_stopping:
            n = int(np.ceil(self.validation_fraction * matrix.nnz))
            held = np.sort(random_state.permutation(matrix.nnz)[: min(n, matrix.nnz - 1)])
        who = np.searchsorted(matrix.indptr, held, side="right") - 1, matrix.indices[held]
        values = matrix.data[held]
        matrix = without_entries(matrix, held) if len(held) else matrix
        centred = matrix.data - dtype.type(self.global_bias_)
        scale = float(np.std(centred, dtype=np.float64)) or 1.0
        counts = np.diff(matrix.indptr), np.bincount(matrix.indices, minlength=matrix.shape[1])
        group = _rows_in_cache(self.n_components, dtype)
        parts = _parts(matrix, group)
        sides = tuple(
            self._rows(side, table, counts[side], parts, scale, random_state) for side in (0, 1)
        )
        users, items = (rows.places for rows in sides)
        ratings = np.empty(matrix.nnz * (8 + dtype.itemsize), np.int8)
        begin = np.empty(parts * parts + 1, np.intp)
        native.deal_ratings(
            centred / dtype.type(scale),
            matrix.indptr.astype(np.intp),
            matrix.indices.astype(np.int32, copy=False),
            users.row_at,
            items.place,
            items.part,
            users.first,
            group,
            random_state.randint(1 << 31),
            ratings,
            begin,
            n_threads(),
        )
        apart = (users.place[who[0]], items.place[who[1]], values)
        return Descent(ratings, begin, *sides, scale, random_state, apart, [])

    def _rows(
        self,
        side: int,
        table: Table,
        counts: np.ndarray,
        parts: int,
        scale: float,
        random_state: np.random.RandomState,
    ) -> Rows:
        f, dtype, n = self.n_components, table.matrix.dtype, len(counts)
        start = (0.1 / np.sqrt(f)) * random_state.standard_normal((n, f))
        records = np.zeros((n, 4), dtype)
        records[:, 2:] = 1
        if self.warm_start and hasattr(self, "user_factors_"):
            self._take_up(side, table, start, records, scale)
        seen = counts > 0
        start[~seen] = 0
        records[~seen, 0] = 0
        share = np.divide(1.0, counts, out=np.zeros(n), where=seen)
        alpha = self._alphas()[side]
        records[:, 1] = alpha / scale * (seen if self.weighted_alpha else share)
        penalty = alpha * (counts if self.weighted_alpha else seen)
        places = Places.of(counts, parts)
        factors = padded(n, f, dtype)
        factors[:, :f] = start[places.row_at]
        at = places.row_at
        return Rows(places, factors, records[at], penalty[at].astype(np.float64))

    def _take_up(
        self, side: int, table: Table, start: np.ndarray, records: np.ndarray, scale: float
    ) -> None:
        """What the last fit left of the users or items that are still there."""
        name, ids = (("user", table.users), ("item", table.items))[side]
        factors, bias = getattr(self, f"{name}_factors_"), getattr(self, f"{name}_bias_")
        if factors.shape[1] != start.shape[1]:
            raise ValueError(
                f"With warm_start, n_components has to stay {factors.shape[1]}; it is "
                f"{start.shape[1]} now."
            )
        places = ids.find(getattr(self, f"{name}_ids_"))
        known = places >= 0
        start[places[known]] = factors[known] / np.sqrt(scale)
        if bias is not None and self.biases:
            records[places[known], 0] = bias[known] / scale
        squares = self._squares[side]
        known = known[: len(squares)]  # without those that partial_fit added
        records[places[: len(squares)][known], 2:] = squares[known]

    def _sweep(self, state):
        users, items, scale = state.users, state.items, state.scale
        epoch = len(state.validation) + 1
        rate = self.eta0 / epoch**self.power_t if self.learning_rate == "invscaling" else self.eta0
        error = native.descend_epoch(
            users.factors,
            items.factors,
            users.records,
            items.records,
            self.n_components,
            state.ratings,
            state.begin,
            state.random_state.permutation(len(users.places.first) - 1).astype(np.int32),
            rate,
            scale,
            self.learning_rate == "adagrad",
            self.biases,
            n_threads(),
        )
        loss = error * scale**2 + users.objective(scale) + items.objective(scale)
        if not np.isfinite(loss):
            raise ValueError(
                f"Factors became infinite in iteration {epoch}: eta0={self.eta0} is too large."
            )
        state.validation.append(self._held_error(state))
        return loss

    def _held_error(self, state: Descent) -> float:
        """The root of the mean squared error on what was held back."""
        users, items, values = state.held
        if not len(values):
            return np.nan
        out = np.empty(len(values), values.dtype)
        f, scale = self.n_components, state.scale
        factors = [np.ascontiguousarray(rows.factors[:, :f]) for rows in (state.users, state.items)]
        bias = [np.ascontiguousarray(rows.records[:, 0]) for rows in (state.users, state.items)]
        als.predict_pairs(*factors, *bias, 0.0, users, items, out, n_threads())
        return float(np.sqrt(np.mean((self.global_bias_ + scale * out - values) ** 2)))

    def _ends(self, state, losses):
        return super()._ends(state, state.validation if self.early_stopping else losses)

    def _fitted(self, state, losses):
        f, found = self.n_components, {}
        for name, rows in (("user", state.users), ("item", state.items)):
            at, dtype = rows.places.place, rows.factors.dtype
            found[f"{name}_factors_"] = rows.factors[at, :f] * dtype.type(np.sqrt(state.scale))
            bias = rows.records[at, 0] * dtype.type(state.scale) if self.biases else None
            found[f"{name}_bias_"] = bias
        return found | {
            "loss_curve_": list(losses),
            "validation_curve_": list(state.validation) if self.early_stopping else [],
            "n_iter_": len(losses),
            "_squares": tuple(
                rows.records[rows.places.place, 2:] for rows in (state.users, state.items)
            ),
        }


def _rows_in_cache(f: int, dtype: np.dtype) -> int:
    """How many users' factors fit in a quarter of a cache, and how many items'."""
    return max(1, (1 << 18) // (-(-f // als.factor_unit) * als.factor_unit * dtype.itemsize))


def _parts(matrix: Any, group: int) -> int:
    """How many parts users and items have.

    The factors of a part of the items are in cache while users pass by, group by group, and there
    are enough cells on a diagonal to go round.
    """
    wanted = max(16, -(-matrix.shape[1] // group))
    return max(1, min(wanted, int((matrix.nnz / 256) ** 0.5), *matrix.shape))
