"""Ratings with a likelihood: of yes and no, of counts, or of the user's own kind."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.special import expit
from sklearn.base import RegressorMixin
from sklearn.utils._param_validation import Interval, StrOptions

from fastml._native import als
from fastml._native import likelihood as native
from fastml._runtime.dispatch import accelerated
from fastml._runtime.threads import n_threads
from fastml.jit import Likelihood
from fastml.recommendation._alternating import Alternating, Side
from fastml.recommendation._base import padded, padded_copy
from fastml.recommendation._ratings import Table, entries_of, values_of


class Newton(NamedTuple):
    """One side: its ratings, its factors with the bias behind them, and what a step works on."""

    rows: Side
    x: np.ndarray
    penalty: np.ndarray  # of |x|²/2, row by row
    scores: np.ndarray
    target: np.ndarray
    scale: np.ndarray
    loss: np.ndarray

    @classmethod
    def of(cls, rows: Side, x: np.ndarray, alpha: float, weighted: bool) -> Newton:
        penalty = alpha * (np.diff(rows.indptr) if weighted else np.ones(len(x)))
        entries = [np.empty_like(rows.target) for _ in range(3)]
        return cls(rows, x, penalty, *entries, np.empty(len(x)))

    def penalties(self) -> float:
        return float(self.penalty @ np.einsum("ij,ij->i", self.x, self.x, dtype=np.float64) / 2)


class GLMFactorization(RegressorMixin, Alternating):
    """Factors for ratings of any distribution, by the score s = mu + b_u + b_i + u·v.

    Minimises, over the ratings that were observed, the sum of -log p(rating | s), plus half of
    `alpha` times the squares of all factors and biases. Users and items take turns: with the items
    fixed there is a generalised linear model for each user, of which a damped Newton step is taken,
    and the other way round. The loss never increases.

    Parameters
    ----------
    n_components : int, default=50
        The number of factors.

    likelihood : {"bernoulli", "poisson", "gaussian"} or callable, default="bernoulli"
        What ratings are. "bernoulli": 0 or 1 (or between), 1 with probability 1 / (1 + exp(-s)).
        "poisson": counts of mean exp(s). "gaussian": of mean s and variance 1, which is the model
        of `ALS`. A function of a rating and a score that returns the log-likelihood and its first
        and second derivative by the score; `fastml.jit.likelihood` makes one that knows the mean
        as well.

    alpha : float or (float, float), default=1.0
        The penalty; two of them are that of users and that of items.

    weighted_alpha : bool, default=False
        Whether to multiply the penalty of a user or an item by the number of its ratings.

    biases : bool, default=True
        Whether there are biases of users and items and the global one, the most likely score.

    solver : {"auto", "cholesky", "cg", "blocks"}, default="auto"
        How the equations of a step are solved. "cholesky": exactly. "cg": `cg_steps` steps of
        conjugate gradients, which is faster for many factors. "blocks": 64 factors at a time.
        "auto": the faster of the first two.

    cg_steps : int, default=3
        The number of steps for "cg".

    duplicates : {"raise", "mean", "last"}, default="raise"
        What to do with several ratings of the same pair.

    max_iter : int, default=20
        The most iterations, in each of which all users and all items take a step.

    tol : float, default=1e-4
        Iterations end when one lowers the loss by no more than this share of it.

    random_state : int, RandomState instance or None, default=None
        Decides the first factors. An int makes fits repeatable.

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
        The score that is most likely if all are the same; 0 without biases.

    loss_curve_ : list of float
        The objective after each iteration.

    n_iter_ : int
        The number of iterations.

    See Also
    --------
    ALS : Squared errors, solved for exactly.
    ImplicitALS : For what users did, where what was not observed counts as well.

    Notes
    -----
    `recommend` ranks by scores, and returns these. An entry's curvature is taken to be at least
    a quarter of its slope, so that no step relies on a curvature that is about to change. Ratings
    in double precision are computed in double precision, all others in single. The result does not
    depend on the number of threads.

    Examples
    --------
    >>> from fastml.recommendation import GLMFactorization
    >>> pairs = [["ann", "tea"], ["ann", "milk"], ["bob", "tea"], ["bob", "cocoa"]]
    >>> model = GLMFactorization(1, alpha=0.1, random_state=0).fit(pairs, [1, 0, 1, 0])
    >>> model.predict([["ann", "tea"], ["bob", "milk"]]).round()
    array([1., 0.], dtype=float32)
    """

    _parameter_constraints: ClassVar[dict] = {
        **Alternating._parameter_constraints,
        "likelihood": [StrOptions(set(native.FAMILIES)), callable],
        "alpha": [Interval(Real, 0, None, closed="left"), tuple, list],
        "weighted_alpha": ["boolean"],
        "biases": ["boolean"],
    }

    def __init__(
        self,
        n_components=50,
        *,
        likelihood="bernoulli",
        alpha=1.0,
        weighted_alpha=False,
        biases=True,
        solver="auto",
        cg_steps=3,
        duplicates="raise",
        max_iter=20,
        tol=1e-4,
        random_state=None,
    ):
        self.n_components = n_components
        self.likelihood = likelihood
        self.alpha = alpha
        self.weighted_alpha = weighted_alpha
        self.biases = biases
        self.solver = solver
        self.cg_steps = cg_steps
        self.duplicates = duplicates
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    @accelerated
    def decision_function(self, X):
        """Return the scores of pairs of a user and an item.

        Parameters
        ----------
        X : array-like or frame of shape (n, 2), or sparse matrix of shape (n_users, n_items)
            Pairs, or a matrix of whose stored entries the places count.

        Returns
        -------
        scores : ndarray of shape (n,)
            Of those that are not known, what `predict` says of other models.
        """
        return super().predict(X)

    def predict(self, X):
        """Predict what ratings are on average.

        Parameters
        ----------
        X : array-like or frame of shape (n, 2), or sparse matrix of shape (n_users, n_items)
            Pairs, or a matrix of whose stored entries the places count.

        Returns
        -------
        predicted : ndarray of shape (n,)
            The means: probabilities, or counts. Of a likelihood without a mean, the scores. Where
            the user or the item is not known, of the score that the global bias and the bias of the
            other make.
        """
        return self._mean()(self.decision_function(X))

    def score(self, X, y=None):
        """Return the mean log-likelihood of ratings.

        Parameters
        ----------
        X : array-like or frame of shape (n, 2), or sparse matrix of shape (n_users, n_items)
            Pairs, or a matrix whose stored entries are the ratings.

        y : array-like of shape (n,), default=None
            The ratings of the pairs.

        Returns
        -------
        score : float
            Without terms that do not depend on scores.
        """
        scores = self.decision_function(X)
        ratings = self._checked(values_of(entries_of(X)[2] if y is None else y, len(scores)))
        return float(np.mean(self._evaluate(ratings.astype(scores.dtype), scores)[0], dtype=float))

    def _mean(self) -> Callable:
        if isinstance(self.likelihood, str):
            return {"bernoulli": expit, "poisson": np.exp, "gaussian": np.asarray}[self.likelihood]
        return getattr(self.likelihood, "mean", None) or np.asarray

    def _address(self, dtype: np.dtype) -> int:
        if isinstance(self.likelihood, str):
            return native.address_of(self.likelihood, dtype == np.float64)
        return Likelihood(self.likelihood).address(dtype)

    def _checked(self, ratings: np.ndarray) -> np.ndarray:
        if self.likelihood in ("bernoulli", "poisson") and (ratings < 0).any():
            raise ValueError(f"Ratings must not be negative where likelihood={self.likelihood!r}.")
        if self.likelihood == "bernoulli" and (ratings > 1).any():
            raise ValueError("Ratings must not exceed 1 where likelihood='bernoulli'.")
        return ratings

    def _evaluate(self, ratings: np.ndarray, scores: np.ndarray) -> list[np.ndarray]:
        """The log-likelihood of each rating, and its two derivatives."""
        found = [np.empty_like(scores) for _ in range(3)]
        if len(scores):
            native.evaluate(ratings, scores, self._address(scores.dtype), *found, n_threads())
        return found

    def _steps(self, ratings: np.ndarray, score: float) -> tuple[np.ndarray, np.ndarray]:
        """For ratings that all have the same score, slopes and curvatures as steps take them."""
        scores = np.full(len(ratings), score, ratings.dtype)
        _, first, second = self._evaluate(ratings, scores)
        curvature = np.maximum(-second, np.abs(first) / native.longest_move)
        return first, np.maximum(curvature, np.finfo(ratings.dtype).eps)

    def _center(self, matrix):
        self._alphas()
        ratings, score = self._checked(matrix.data), 0.0
        for _ in range(50 if self.biases else 0):
            first, curvature = self._steps(ratings, score)
            step = float(first.sum(dtype=float) / curvature.sum(dtype=float))
            score += step
            if not abs(step) > 1e-7:
                break
        return score

    def _initial(self, matrix, random_state):
        f, n = self.n_components, matrix.shape[1]
        first, curvature = self._steps(matrix.data, self.global_bias_)
        V = padded(n, f + self.biases, matrix.dtype)
        # Products of such factors are about as large as what they are to explain.
        size = np.sqrt(np.std(first / curvature, dtype=np.float64) / np.sqrt(f)) or 1.0
        V[:, :f] = size * random_state.standard_normal((n, f))
        return V

    def _side(self, matrix):
        return Side.of(matrix, matrix.data)

    def _begin(self, table: Table, random_state: np.random.RandomState) -> list[Newton]:
        V = self._initial(table.matrix, random_state)
        U = padded(len(table.users), self.n_components + self.biases, V.dtype)
        sides = (self._side(table.matrix), U), (self._side(table.matrix.tocsc()), V)
        alphas = self._alphas()
        return [Newton.of(*sides[k], alphas[k], self.weighted_alpha) for k in (0, 1)]

    def _sweep(self, state):
        users, items = state
        method = self._method()
        shape = self.n_components, self.biases
        self._step(users, items.x, self._alphas()[0], method, *shape)
        loss = self._step(items, users.x, self._alphas()[1], method, *shape) + users.penalties()
        if not np.isfinite(loss):
            raise ValueError("The likelihood is not a number for some ratings and scores.")
        return loss

    def _step(
        self, side: Newton, fixed: np.ndarray, alpha: float, method: str, f: int, biases: bool
    ) -> float:
        """A damped Newton step of one side, in place; return its loss."""
        rows, threads = side.rows, n_threads()
        regressors = padded_copy(fixed)
        offset = np.full(len(fixed), self.global_bias_, fixed.dtype)
        if biases:
            offset += fixed[:, f]
            regressors[:, f] = 1
        given = rows.target, rows.indptr, rows.indices, regressors, offset
        address = self._address(fixed.dtype)
        work = side.scores, side.target, side.scale
        native.linearise(*given, address, side.x, *work, side.loss, threads)
        x = padded_copy(side.x)
        als.solve_rows(
            regressors,
            f + biases,
            *rows._replace(target=side.target, scale=side.scale),
            None,
            x,
            None,
            alpha,
            self.weighted_alpha,
            method,
            self.cg_steps if method == "cg" else 1,
            False,
            False,
            threads,
        )
        moves = side.target  # of no use any more
        return native.damp(
            *given, address, side.penalty, x, side.x, side.scores, moves, side.loss, threads
        )

    def _fitted(self, state, losses):
        f = self.n_components
        found = {"loss_curve_": list(losses), "n_iter_": len(losses)}
        for name, side in zip(("user", "item"), state, strict=True):
            found[f"{name}_factors_"] = side.x[:, :f].copy()
            found[f"{name}_bias_"] = side.x[:, f].copy() if self.biases else None
        return found

    def _solve_rows(self, rows, of_items):
        name = "user" if of_items else "item"
        factors, bias = getattr(self, f"{name}_factors_"), getattr(self, f"{name}_bias_")
        f, biases = factors.shape[1], bias is not None  # not what parameters are by now
        fixed = padded(len(factors), f + biases, factors.dtype)
        fixed[:, :f] = factors
        if biases:
            fixed[:, f] = bias
        self._checked(rows.data)
        x, alpha = padded(rows.shape[0], fixed.shape[1], fixed.dtype), self._alphas()[of_items]
        side, before = Newton.of(self._side(rows), x, alpha, self.weighted_alpha), np.inf
        for _ in range(50 if rows.nnz else 0):
            loss = self._step(side, fixed, alpha, "cholesky", f, biases)
            if not before - loss > 1e-9 * abs(loss):
                break
            before = loss
        return x[:, :f].copy(), x[:, f].copy() if biases else None
