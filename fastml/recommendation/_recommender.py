"""The best items for users, and items that are alike."""

from __future__ import annotations

from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from fastml._native.ranking import rank_items
from fastml._runtime.dispatch import accelerated
from fastml._runtime.threads import n_threads
from fastml.recommendation._ratings import Table, column_of


class Seen(NamedTuple):
    """The items that users are not to be shown: indices[begin[i]:end[i]], ascending."""

    begin: np.ndarray
    end: np.ndarray
    indices: np.ndarray

    @classmethod
    def of(cls, matrix: Any, rows: Any = slice(None)) -> Seen:
        """Those with entries in some rows of a CSR matrix."""
        begin, end = matrix.indptr[:-1][rows], matrix.indptr[1:][rows]
        short = matrix.indices.astype(np.int32, copy=False)
        return cls(begin.astype(np.intp), end.astype(np.intp), short)


class Recommender:
    """Mixin: what is done with factors once they are there."""

    _table: Table
    user_factors_: np.ndarray
    item_factors_: np.ndarray
    user_bias_: np.ndarray | None
    item_bias_: np.ndarray | None
    item_ids_: np.ndarray
    global_bias_: float

    def _check_fitted(self) -> None:
        """That there are factors, and one for each id: kernels read them without looking."""
        check_is_fitted(self)
        users, items = self.user_factors_, self.item_factors_
        width = users.shape[-1]
        for factors, bias, ids in (
            (users, self.user_bias_, self._table.users),
            (items, self.item_bias_, self._table.items),
        ):
            shapes = [factors.shape, (len(ids),) if bias is None else bias.shape]
            if shapes != [(len(ids), width), (len(ids),)]:
                raise ValueError(
                    f"Factors and biases of shapes {shapes} cannot be of {len(ids)} ids and "
                    f"{width} components."
                )

    @accelerated
    def recommend(self, users=None, k=10, *, filter_seen=True):
        """Return the items that users would like best.

        Parameters
        ----------
        users : id, array-like of ids, or sparse matrix of shape (n_new_users, n_items), \
                default=None
            For whom: users of the fit, or new ones by their ratings (see `transform`). None: all
            users of the fit, in the order of `user_ids_`.

        k : int, default=10
            How many items. Where there are fewer, as many as there are.

        filter_seen : bool, default=True
            Whether to leave out the items that a user has rated.

        Returns
        -------
        items : ndarray of shape (n_users, k)
            The ids of the items, best first, the one of lower place in `item_ids_` first among
            equals. If too few items are left that a user has not rated, the row ends with ids that
            are -1, or None where ids are not integers with a sign.

        scores : ndarray of shape (n_users, k)
            Their predictions; minus infinity where there is no item.
        """
        self._check_fitted()
        if sparse.issparse(users):
            rows = self._checked_rows(users, len(self.item_ids_), "items")
            factors, bias = self._solve_rows(rows, False)
            seen = Seen.of(rows) if filter_seen else None
            ranked, scores = self._rank_for(factors, bias, seen, k)
        else:
            ranked, scores = self._rank(self._places("users", users), k, filter_seen)
        return _named(ranked, self.item_ids_), scores

    def _rank(self, places: np.ndarray, k: int, filter_seen: bool) -> tuple:
        """The places of the best items for users of the fit, and the scores."""
        bias = None if self.user_bias_ is None else self.user_bias_[places]
        seen = Seen.of(self._table.matrix, places) if filter_seen else None
        return self._rank_for(self.user_factors_[places], bias, seen, k)

    def _rank_for(
        self, factors: np.ndarray, bias: np.ndarray | None, seen: Seen | None, k: int
    ) -> tuple:
        ranked, scores = _ranked(factors, self.item_factors_, self.item_bias_, seen, k)
        scores += self.global_bias_ if bias is None else self.global_bias_ + bias[:, np.newaxis]
        return ranked, scores

    @accelerated
    def similar_items(self, items=None, k=10):
        """Return the items whose factors point most nearly in the same direction.

        Parameters
        ----------
        items : id or array-like of ids, default=None
            Items of the fit. None: all, in the order of `item_ids_`.

        k : int, default=10
            How many others. Where there are fewer, as many as there are.

        Returns
        -------
        items : ndarray of shape (n_items, k)
            The ids of the other items, most similar first.

        similarities : ndarray of shape (n_items, k)
            The cosines of the angles between factors; 0 with factors that are all zero.
        """
        self._check_fitted()
        places = self._places("items", items)
        norms = np.sqrt(np.square(self.item_factors_).sum(axis=1, keepdims=True))
        unit = self.item_factors_ / np.where(norms > 0, norms, 1)
        at = np.arange(len(places))
        itself = Seen(at, at + 1, places.astype(np.int32, copy=False))
        k = min(_checked_number(k), max(1, len(unit) - 1))
        ranked, cosines = _ranked(np.ascontiguousarray(unit[places]), unit, None, itself, k)
        return _named(ranked, self.item_ids_), cosines

    def _places(self, side: str, ids: Any) -> np.ndarray:
        known = getattr(self._table, side)
        if ids is None:
            return np.arange(len(known))
        column = column_of(ids)
        places = known.find(column)
        if (places < 0).any():
            unknown = column[places < 0]
            raise ValueError(
                f"{len(unknown)} of the {side} were not there when this {type(self).__name__} was "
                f"fitted, the first being {unknown[0]!r}. New users and items can be taken in by "
                "partial_fit, new users also be given by their ratings, as a sparse matrix."
            )
        return places


def _checked_number(k: Any) -> int:
    if not isinstance(k, Integral) or k < 1:
        raise ValueError(f"k has to be an integer of at least 1, got {k!r}.")
    return int(k)


def _ranked(
    users: np.ndarray, items: np.ndarray, bias: np.ndarray | None, seen: Seen | None, k: int
) -> tuple[np.ndarray, np.ndarray]:
    k = min(_checked_number(k), len(items))
    ranked, scores = np.empty((len(users), k), np.int32), np.empty((len(users), k), items.dtype)
    if len(users):
        skipped = seen or (None, None, None)
        rank_items(users, items, bias, *skipped, ranked, scores, n_threads())
    return ranked, scores


def _named(ranked: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """The ids at some places; -1 or None for place -1."""
    nobody = ranked < 0
    if not nobody.any():
        return ids[ranked]
    if ids.dtype.kind == "i":
        return np.where(nobody, ids.dtype.type(-1), ids[ranked])
    named = ids[ranked].astype(object)
    named[nobody] = None
    return named
