"""What factorizations of a matrix of users and items have in common."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from fastml._native import als as native
from fastml._runtime.aligned import aligned_zeros
from fastml._runtime.callbacks import CallbackSupportMixin, Task, fit_context, fit_task
from fastml._runtime.dispatch import accelerated
from fastml._runtime.threads import n_threads
from fastml._runtime.versioned import Versioned
from fastml._runtime.whole import whole_or_not_at_all
from fastml.recommendation._ratings import (
    Table,
    csr_of,
    pairs_of,
    read,
    rounded,
    values_of,
    without_duplicates,
)
from fastml.recommendation._recommender import Recommender


def padded(n: int, f: int, dtype: Any) -> np.ndarray:
    """Zeros of shape (n, at least f), every row on a cache line."""
    unit = native.factor_unit
    ld = -(-f // unit) * unit
    return aligned_zeros(n, ld, dtype)


def padded_copy(factors: np.ndarray) -> np.ndarray:
    copy = padded(*factors.shape, factors.dtype)
    copy[:, : factors.shape[1]] = factors
    return copy


class Factorization(Recommender, Versioned, CallbackSupportMixin, BaseEstimator):
    """Users and items as vectors whose products tell what a user makes of an item.

    What differs is in the methods that are not implemented here.
    """

    _parameter_constraints: ClassVar[dict] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "duplicates": [StrOptions({"raise", "mean", "last"})],
        "random_state": ["random_state"],
    }
    _ones = False  # whether pairs without ratings count as ones

    @accelerated
    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        """Learn the factors of users and items.

        Parameters
        ----------
        X : sparse matrix of shape (n_users, n_items), or array-like or frame of shape (n, 2)
            A matrix whose stored entries are what was observed, zeros among them; or pairs of a
            user and an item, by ids of any type.

        y : array-like of shape (n,), default=None
            The ratings of the pairs. Not used with a matrix.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        table = read(X, y, self.duplicates, self._ones)
        losses: list[float] = []
        with whole_or_not_at_all(self):  # ids must not be of other factors
            self.global_bias_ = self._center(table.matrix)
            state = self._begin(table, check_random_state(self.random_state))
            self._adopt(table)
            with fit_task(self, self.max_iter, X=X, y=y) as task:
                self._iterate(state, losses, task)
            vars(self).update(self._fitted(state, losses))
        return self

    def _iterate(self, state: Any, losses: list[float], task: Task) -> None:
        for _ in range(self.max_iter):
            with task.subtask("iteration") as step:
                losses.append(self._sweep(state))
                if not np.isfinite(losses[-1]):
                    raise ValueError(
                        "The loss is not a finite number: ratings, or alpha, are too large for "
                        f"{self._table.matrix.dtype}."
                    )
                step.attributes = lambda: self._fitted(state, losses)
            if step.stop or self._ends(state, losses):
                break

    def _ends(self, state: Any, losses: list[float]) -> bool:
        return len(losses) > 1 and losses[-2] - losses[-1] <= self.tol * abs(losses[-2])

    def _adopt(self, table: Table) -> None:
        self._table = table
        self.user_ids_, self.item_ids_ = table.users.values, table.items.values

    def _alphas(self) -> tuple[float, float]:
        """The penalties of users and of items."""
        pair = self.alpha if isinstance(self.alpha, tuple | list) else (self.alpha, self.alpha)
        if len(pair) != 2 or not all(isinstance(a, Real) and a >= 0 for a in pair):
            raise ValueError(f"alpha has to be a number or two, not below 0; got {self.alpha!r}.")
        return float(pair[0]), float(pair[1])

    def _center(self, matrix: Any) -> float:
        """The global bias."""
        raise NotImplementedError

    def _begin(self, table: Table, random_state: np.random.RandomState) -> Any:
        """What iterations work on."""
        raise NotImplementedError

    def _sweep(self, state: Any) -> float:
        """Go through all ratings once, in place; return the objective."""
        raise NotImplementedError

    def _fitted(self, state: Any, losses: list[float]) -> dict[str, Any]:
        """The fitted attributes."""
        raise NotImplementedError

    def _solve_rows(self, rows: Any, of_items: bool) -> tuple[np.ndarray, np.ndarray | None]:
        """The factors and biases of rows of ratings, those of the other side as they are."""
        raise NotImplementedError

    @accelerated
    def partial_fit(self, X, y=None):
        """Take in new ratings, of known and of new users and items.

        A new rating of a pair takes the place of the one before. The factors of the users and of
        the items that are concerned are solved for anew, users first, the others stay; so does the
        global bias. On an estimator that is not fitted, the same as `fit`.

        Parameters
        ----------
        X : sparse matrix of shape (n_users, n_items), or array-like or frame of shape (n, 2)
            As in `fit`. A matrix may have more rows and columns than that of the fit.

        y : array-like of shape (n,), default=None
            The ratings of the pairs.

        Returns
        -------
        self : object
            The estimator.
        """
        if not hasattr(self, "user_factors_"):
            return self.fit(X, y)
        self._check_fitted()
        new = read(X, y, self.duplicates, self._ones)
        old = self._table
        users, items = old.users.extended(new.users.values), old.items.extended(new.items.values)
        ours, theirs = old.matrix.tocoo(), new.matrix.tocoo()
        row, column = users.find(new.users.values), items.find(new.items.values)
        row, column = row[theirs.row], column[theirs.col]
        matrix = csr_of(
            np.append(ours.row, row),
            np.append(ours.col, column),
            np.append(ours.data, rounded(theirs.data, self.user_factors_.dtype)),
            (len(users), len(items)),
        )
        with whole_or_not_at_all(self):
            self._adopt(Table(without_duplicates(matrix, "last"), users, items))
            self._extend("user", len(users))
            self._extend("item", len(items))
            self._refresh(np.unique(row), np.unique(column), len(old.items))
        return self

    def _extend(self, side: str, n: int) -> None:
        for name in (f"{side}_factors_", f"{side}_bias_"):
            known = getattr(self, name)
            if known is not None and len(known) < n:
                more = np.zeros((n - len(known), *known.shape[1:]), known.dtype)
                setattr(self, name, np.concatenate([known, more]))

    def _refresh(self, users: np.ndarray, items: np.ndarray, n_known: int) -> None:
        """Solve for some users by the items known before, for some items, and the users again."""
        by_user, by_item = self._table.matrix[users], self._table.matrix.T.tocsr()[items]
        known = by_user[:, :n_known]
        known.resize(by_user.shape)
        for rows, at, side in (
            (known, users, "user"),
            (by_item, items, "item"),
            (by_user, users, "user"),
        ):
            factors, bias = self._solve_rows(rows, of_items=side == "item")
            for name, values in ((f"{side}_factors_", factors), (f"{side}_bias_", bias)):
                if values is not None:
                    changed = getattr(self, name).copy()
                    changed[at] = values
                    setattr(self, name, changed)

    @accelerated
    def predict(self, X):
        """Predict what users make of items.

        Parameters
        ----------
        X : array-like or frame of shape (n, 2), or sparse matrix of shape (n_users, n_items)
            Pairs of a user and an item; or a matrix, of whose stored entries, row by row, the
            places count and the values do not.

        Returns
        -------
        predicted : ndarray of shape (n,)
            The predictions. Where the user or the item is not known they are made of what is:
            the global bias, and the bias of the other.
        """
        self._check_fitted()
        users, items = pairs_of(X, self._table.users, self._table.items)
        out = np.empty(len(users), self.user_factors_.dtype)
        if len(out):
            native.predict_pairs(
                self.user_factors_,
                self.item_factors_,
                self.user_bias_,
                self.item_bias_,
                self.global_bias_,
                users,
                items,
                out,
                n_threads(),
            )
        return out

    @accelerated
    def transform(self, X):
        """Return the factors of new users, by what they made of the items of the fit.

        Parameters
        ----------
        X : sparse matrix of shape (n_new_users, n_items)
            Their ratings; columns in the order of `item_ids_`.

        Returns
        -------
        factors : ndarray of shape (n_new_users, n_components)
            Those of least loss, the items staying as they are. Of a row without ratings, zeros.
        """
        self._check_fitted()
        return self._solve_rows(self._checked_rows(X, len(self.item_ids_), "items"), False)[0]

    @accelerated
    def transform_items(self, X):
        """Return the factors of new items, by what the users of the fit made of them.

        Parameters
        ----------
        X : sparse matrix of shape (n_new_items, n_users)
            Their ratings; columns in the order of `user_ids_`.

        Returns
        -------
        factors : ndarray of shape (n_new_items, n_components)
            Those of least loss, the users staying as they are. Of a row without ratings, zeros.
        """
        self._check_fitted()
        return self._solve_rows(self._checked_rows(X, len(self.user_ids_), "users"), True)[0]

    def _checked_rows(self, X: Any, n: int, of: str) -> Any:
        if not sparse.issparse(X) or X.shape[1] != n:
            raise ValueError(
                f"Expected a sparse matrix with {n} columns, one for each of the {of} of the fit; "
                f"got {type(X).__name__} of shape {np.shape(X)}."
            )
        coo = X.tocoo()
        values = rounded(values_of(coo.data, coo.nnz), self.user_factors_.dtype)
        return without_duplicates(csr_of(coo.row, coo.col, values, X.shape), self.duplicates)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "user_factors_")
