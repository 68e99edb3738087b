"""Trees that split categorical features by sets of levels, for which scikit-learn's have no room.

Levels are numbered: those that the training data has, and one more for missing values if it has
some. Others are unknown, and follow the child that got more rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, hstack, issparse
from sklearn.preprocessing import OrdinalEncoder
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from fastml._native import trees as native

MOST_LEVELS = 256


class Encoder:
    """From rows as the user has them to float32, levels as their numbers.

    Attributes
    ----------
    is_categorical : ndarray of bool, (d,)

    n_levels : ndarray of int32, (d,)
        Zero for numbers.

    categories : list of ndarray, or of None for numbers
    """

    def __init__(self, X: Any, categorical_features: Any) -> None:
        columns = _columns(X)
        self.is_categorical = _which(X, len(columns), categorical_features)
        self.n_levels = np.zeros(len(columns), dtype=np.int32)
        self._missing = np.full(len(columns), -1)  # level
        self.categories: list[Any] = [None] * len(columns)
        self._numbers: dict[int, dict[Any, int]] = {}  # feature -> level -> number
        for j in np.flatnonzero(self.is_categorical):
            known, any_missing = _levels(columns[j])
            self.categories[j] = known
            self.n_levels[j] = len(known) + any_missing
            if self.n_levels[j] > MOST_LEVELS:
                raise ValueError(
                    f"Categorical feature {j} has {self.n_levels[j]} levels; there can be "
                    f"{MOST_LEVELS}."
                )
            if any_missing:
                self._missing[j] = len(known)
            self._numbers[j] = {level: k for k, level in enumerate(known.tolist())}

    def check_levels_of(self, other: Encoder) -> None:
        """Raise ValueError unless the levels are those of the other."""
        same = np.array_equal(self.n_levels, other.n_levels) and all(
            np.array_equal(mine, theirs)
            for mine, theirs in zip(self.categories, other.categories, strict=True)
        )
        if not same or not np.array_equal(self._missing, other._missing):
            raise ValueError("with warm_start, the levels have to be those of the first fit")

    def transform(self, model: Any, X: Any, *, reset: bool = False) -> np.ndarray:
        """The rows as float32; `model` checks, or takes, the number and names of the features."""
        validate_data(model, X, reset=reset, skip_check_array=True)
        columns = _columns(X)
        out = np.empty((len(columns[0]), len(columns)), dtype=np.float32)
        for j in np.flatnonzero(self.is_categorical):
            out[:, j] = self._encode(columns[j], j)
        for j in np.flatnonzero(~self.is_categorical):
            column = np.asarray(columns[j]).reshape(-1, 1)
            out[:, j] = check_array(column, dtype=np.float32, ensure_all_finite="allow-nan")[:, 0]
        return out

    def _encode(self, column: Any, j: int) -> Any:
        """The numbers of its levels; of those that are not known, that of missing ones."""
        known, missing = self.categories[j], self._missing[j]
        if (values := _as_numbers(column)) is not None and known.dtype.kind in "biuf":
            if not known.size:
                return missing
            codes = np.searchsorted(known, values).clip(max=len(known) - 1)
            return np.where(known[codes] == values, codes, missing)
        number = self._numbers[j]
        if hasattr(column, "cat") and hasattr(column.cat, "codes"):  # of pandas
            table = [number.get(level, missing) for level in column.cat.categories.tolist()]
            return np.array([*table, missing])[column.cat.codes]
        return [number.get(level, missing) for level in np.asarray(column, dtype=object).tolist()]


def _as_numbers(column: Any) -> np.ndarray | None:
    values = column if isinstance(column, np.ndarray) else None
    return values if values is not None and values.dtype.kind in "biuf" else None


def _levels(column: Any) -> tuple[np.ndarray, bool]:
    """The levels in order, and whether values are missing besides."""
    values = _as_numbers(column)
    if values is not None:
        missing = np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), bool)
        return np.unique(values[~missing]), bool(missing.any())
    cells = np.asarray(column, dtype=object)
    missing = np.array([_is_missing(cell) for cell in cells], dtype=bool)
    kept = cells[~missing].reshape(-1, 1)
    known = OrdinalEncoder().fit(kept).categories_[0] if len(kept) else kept[:, 0]
    return known, bool(missing.any())


def _columns(X: Any) -> list[Any]:
    if hasattr(X, "columns") and hasattr(X, "dtypes"):
        columns = [X[name] for name in X.columns]
    else:
        if issparse(X):
            raise TypeError("Sparse data was passed for X, but levels need dense data.")
        X = X if isinstance(X, np.ndarray) else np.asarray(X)
        if X.ndim != 2:
            raise ValueError(f"Expected 2D array, got {X.ndim}D array instead")
        columns = list(X.T)
    if not columns or not len(columns[0]):
        raise ValueError(
            "Found array with 0 sample(s) or 0 feature(s) while a minimum of 1 is required."
        )
    return columns


def _is_missing(value: Any) -> bool:
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def _which(X: Any, d: int, given: Any) -> np.ndarray:
    """A mask of the categorical features, given as scikit-learn's gradient boosting takes them."""
    if given is None:
        return np.zeros(d, dtype=bool)
    names = list(getattr(X, "columns", ()))
    if isinstance(given, str):  # "from_dtype"
        kinds = [str(X[name].dtype) for name in names]
        return np.array([k.lower().startswith(("cat", "enum")) for k in kinds] or [False] * d)
    given = np.asarray(given)
    if given.dtype == bool:
        if given.shape != (d,):
            raise ValueError(f"categorical_features set as a boolean mask has to have shape ({d},)")
        return given
    if given.dtype.kind not in "iu":
        unknown = sorted(set(given.tolist()) - set(names))
        if unknown:
            raise ValueError(f"categorical_features has names that X has not: {unknown}")
        given = np.array([names.index(name) for name in given.tolist()], dtype=np.intp)
    if given.size and (given.min() < 0 or given.max() >= d):
        raise ValueError(f"categorical_features set as integer indices must be in [0, {d - 1}]")
    mask = np.zeros(d, dtype=bool)
    mask[given] = True
    return mask


class LevelTree:
    """A tree with level sets; in all else it has what scikit-learn's `Tree` has.

    Rows have their levels as numbers. Where a node splits by levels its threshold is NaN.

    Attributes
    ----------
    level_sets : list of ndarray, or of None, one for each node
        The levels that go left.
    """

    def __init__(self, tree: Any, words: np.ndarray, n_levels: np.ndarray) -> None:
        self._tree, self._words, self._n_levels = tree, words, n_levels

    @classmethod
    def pruned(cls, tree: Any, before: Any, words: np.ndarray, n_levels: np.ndarray) -> LevelTree:
        """Of a tree that has been pruned, with the sets of what it was before."""
        was = np.zeros(tree.node_count, dtype=np.intp)  # number before of each node
        nodes = np.zeros(1, dtype=np.intp)
        while nodes.size:
            inner = nodes[tree.children_left[nodes] >= 0]
            was[tree.children_left[inner]] = before.children_left[was[inner]]
            was[tree.children_right[inner]] = before.children_right[was[inner]]
            nodes = np.concatenate([tree.children_left[inner], tree.children_right[inner]])
        kept = words[was] * (tree.children_left >= 0)[:, np.newaxis].astype(words.dtype)
        return cls(tree, kept, n_levels)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._tree, name)

    def with_nodes_of(self, tree: Any) -> LevelTree:
        """A tree that has been pruned from this one's nodes, with the sets that are left."""
        return LevelTree.pruned(tree, self._tree, self._words, self._n_levels)

    @property
    def stock(self) -> Any:
        """Scikit-learn's `Tree` of the nodes, which knows nothing of the sets."""
        return self._tree

    @property
    def level_sets(self) -> list[np.ndarray | None]:
        bits = np.unpackbits(self._words.view(np.uint8), axis=1, bitorder="little")
        feature = self._tree.feature
        return [
            np.flatnonzero(bits[k]) if f >= 0 and self._n_levels[f] else None
            for k, f in enumerate(feature)
        ]

    def apply(self, X: np.ndarray) -> np.ndarray:
        return LevelTrees([self]).apply(X, n_threads=1)[:, 0]

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self._tree.value[self.apply(X), 0]

    def decision_path(self, X: np.ndarray) -> csr_matrix:
        n_nodes = self._tree.node_count
        parent = np.full(n_nodes, -1)
        for children in (self._tree.children_left, self._tree.children_right):
            inner = np.flatnonzero(children >= 0)
            parent[children[inner]] = inner
        rows, nodes, at = [], [], self.apply(X)
        which = np.arange(len(at))
        while len(which):
            rows.append(which)
            nodes.append(at)
            at = parent[at]
            which, at = which[at >= 0], at[at >= 0]
        ones = np.ones(sum(map(len, rows)), dtype=np.int64)
        places = np.concatenate(rows or [which]), np.concatenate(nodes or [at])
        return csr_matrix((ones, places), shape=(len(X), n_nodes))


class LevelTrees:
    """Several of them, packed."""

    def __init__(self, trees: Sequence[LevelTree]) -> None:
        self._trees = trees
        pairs = [(tree._tree, tree._words) for tree in trees]
        self._forest = native.LevelForest(pairs, trees[0]._n_levels)
        self.node_counts = self._forest.node_counts

    def predict(self, X: np.ndarray, n_threads: int, average: bool = False) -> np.ndarray:
        total = self._forest.sums(np.ascontiguousarray(X), n_threads)
        if average:
            total /= len(self._trees)
        return total[:, np.newaxis]

    def classes(self, X: np.ndarray, n_threads: int) -> np.ndarray:
        return self.predict(X, n_threads, average=True).argmax(axis=2)

    def apply(self, X: np.ndarray, n_threads: int) -> np.ndarray:
        return self._forest.leaves(np.ascontiguousarray(X), n_threads)

    def decision_path(
        self, X: np.ndarray, n_threads: int, wide: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        paths = hstack([tree.decision_path(X) for tree in self._trees], format="csr")
        return paths.indices, paths.indptr
