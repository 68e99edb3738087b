"""Users and items by the names that they have outside."""

from __future__ import annotations

import numpy as np


class Ids:
    """The ids of users or of items, each of which stands for the row of factors at its place."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values
        whole = len(values) > 0 and values.dtype.kind in "iu"
        self._first = int(values[0]) if whole and _consecutive(values) else None
        self._order: np.ndarray | None = None
        self._places: dict | None = None

    def __len__(self) -> int:
        return len(self.values)

    def find(self, column: np.ndarray) -> np.ndarray:
        """The place of each id, -1 where it is not known."""
        values = self.values
        if len(values) == 0:
            return np.full(len(column), -1, np.int32)
        if _only_as_objects(values, column):
            if self._places is None:
                self._places = {value: i for i, value in enumerate(_listed(values))}
            known = self._places
            return np.array([known.get(value, -1) for value in _listed(column)], np.int32)
        if (values.dtype.kind in "US") != (column.dtype.kind in "US"):
            raise ValueError(
                f"These ids are of type {column.dtype}, but those of the fit are of {values.dtype}."
            )
        if self._first is not None and column.dtype.kind in "iu":
            inside = (column >= self._first) & (column < self._first + len(values))
            return np.where(inside, _above(column, self._first), -1).astype(np.int32)
        if self._order is None:
            self._order = np.argsort(values, kind="stable")
        at = np.minimum(values.searchsorted(column, sorter=self._order), len(values) - 1)
        found = self._order[at]
        return np.where(values[found] == column, found, -1).astype(np.int32)

    def extended(self, column: np.ndarray) -> Ids:
        """These ids, and behind them those of the column that are new."""
        new = encode(column[self.find(column) < 0])[0].values
        if len(new) == 0:
            return self
        if _only_as_objects(self.values, new):
            return Ids(_objects(_listed(self.values) + _listed(new)))
        return Ids(np.concatenate([self.values, new]))


def _consecutive(values: np.ndarray) -> bool:
    return bool(
        int(values[-1]) - int(values[0]) == len(values) - 1 and (values[1:] > values[:-1]).all()
    )


def _only_as_objects(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether arrays have no type in common that tells all their values apart."""
    kinds = {a.dtype.kind, b.dtype.kind}
    return "O" in kinds or (kinds == {"i", "u"} and np.result_type(a, b).kind == "f")


def _above(column: np.ndarray, low: int) -> np.ndarray:
    """How far integers are above one of them, which need not fit their own type."""
    return (column.astype(np.uint64) - np.uint64(low % (1 << 64))).view(np.int64)


def _listed(column: np.ndarray) -> list:
    """As objects of Python. Of nanoseconds NumPy would make integers."""
    kind = column.dtype.kind
    if kind in "mM" and np.datetime_data(column.dtype)[0] in ("ns", "ps", "fs", "as"):
        column = column.astype(f"{kind}8[us]")
    return column.tolist()


def _objects(values: list) -> np.ndarray:
    array = np.empty(len(values), object)
    array[:] = values
    return array


def encode(column: np.ndarray) -> tuple[Ids, np.ndarray]:
    """The distinct ids of a column in ascending order (if they have one), and the place of each."""
    if column.dtype.kind == "O":
        values = dict.fromkeys(column.tolist())
        try:
            order = sorted(values)
        except TypeError:  # of several types
            order = list(values)
        ids = Ids(_objects(order))
        return ids, ids.find(column)
    if column.dtype.kind in "iu" and len(column):
        low, high = int(column.min()), int(column.max())
        if high - low < 8 * len(column) + 1024:
            shifted = _above(column, low)
            present = np.zeros(high - low + 1, bool)
            present[shifted] = True
            place = np.cumsum(present, dtype=np.int32) - np.int32(1)
            values = np.flatnonzero(present).astype(column.dtype)
            values += column.dtype.type(low)  # comes round where the type of the ids is too short
            return Ids(values), place[shifted]
    values, codes = np.unique(column, return_inverse=True)
    return Ids(values), codes.ravel().astype(np.int32)
