"""Ratings as they are given, and as the kernels take them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from fastml.recommendation._ids import Ids, encode


class Table(NamedTuple):
    """Ratings, by the places of users and items."""

    matrix: sparse.csr_matrix  # (users, items), indices ascending, no pair twice
    users: Ids
    items: Ids


def columns_of(pairs: Any) -> tuple[np.ndarray, np.ndarray]:
    """The users and the items of an (n, 2) array or frame."""
    if hasattr(pairs, "iloc") or hasattr(pairs, "get_columns"):
        if pairs.shape[1] != 2:
            raise ValueError(f"Expected two columns, of users and items; got {pairs.shape[1]}.")
        if hasattr(pairs, "iloc"):
            columns = [pairs.iloc[:, i].to_numpy() for i in (0, 1)]
        else:
            columns = [column.to_numpy() for column in pairs.get_columns()]
    else:
        array = _as_array(pairs)
        if array.ndim != 2 or array.shape[1] != 2:
            raise ValueError(
                f"Expected pairs of a user and an item, an array of shape (n, 2); got one of shape "
                f"{array.shape}. A matrix of users and items has to be sparse."
            )
        columns = [array[:, 0], array[:, 1]]
    for column in columns:
        missing = column != column if column.dtype.kind in "fcmM" else np.False_
        if np.any(missing) or (column.dtype.kind == "O" and any(map(_is_missing, column))):
            raise ValueError("There are pairs without a user or without an item.")
    return columns[0], columns[1]


def _is_missing(value: Any) -> bool:
    """Whether an id is None, NaN or NaT, none of which equals itself, or what pandas calls NA."""
    try:
        return value is None or bool(value != value)
    except TypeError:  # whether NA equals itself it does not say
        return True
    except ValueError:  # an array
        return False


def column_of(ids: Any) -> np.ndarray:
    """One or several ids as an array of them."""
    if hasattr(ids, "to_numpy"):
        ids = ids.to_numpy()
    array = np.atleast_1d(_as_array(ids))
    if array.ndim != 1:
        raise ValueError(f"Expected one id or a sequence of ids, got shape {array.shape}.")
    return array


def _as_array(ids: Any) -> np.ndarray:
    array = np.asarray(ids)
    if isinstance(ids, np.ndarray | str | bytes):
        return array
    # Of (1, "a"), the 1 is to stay a number, and of (-1, 2**63) the second is not to be rounded.
    rounded = array.dtype.kind == "f" and np.any(np.abs(array) >= 2**53)
    return np.asarray(ids, dtype=object) if rounded or array.dtype.kind in "US" else array


def values_of(y: Any, n: int) -> np.ndarray:
    """Ratings as finite floats: double if they are double, else single."""
    values = np.asarray(y.to_numpy() if hasattr(y, "to_numpy") else y)
    if values.dtype.kind not in "fiub":
        raise ValueError(f"Ratings have to be real numbers, got {values.dtype}.")
    values = values.ravel() if values.ndim == 2 and values.shape[1] == 1 else values
    if values.shape != (n,):
        raise ValueError(f"Expected {n} ratings, one for each pair; got shape {values.shape}.")
    values = values.astype(np.float64 if values.dtype == np.float64 else np.float32, copy=False)
    if not np.isfinite(values).all():
        raise ValueError("There are ratings that are NaN or infinite.")
    return values


def rounded(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Finite ratings in the precision of a model, where they have to be finite too."""
    with np.errstate(over="ignore"):
        values = values.astype(dtype, copy=False)
    if not np.isfinite(values).all():
        raise ValueError(f"There are ratings that are too large for {dtype}.")
    return values


def read(X: Any, y: Any, duplicates: str, ones: bool) -> Table:
    """The ratings of a sparse matrix, or of pairs; those are 1 if `ones` and none are given."""
    if sparse.issparse(X):
        users, items = (Ids(np.arange(n, dtype=np.int64)) for n in X.shape)
        coo = X.tocoo()
        matrix = csr_of(coo.row, coo.col, values_of(coo.data, coo.nnz), X.shape)
    else:
        user, item = columns_of(X)
        if y is None and not ones:
            raise ValueError("Pairs need ratings: fit(pairs, ratings).")
        values = values_of(np.ones(len(user), np.float32) if y is None else y, len(user))
        (users, row), (items, column) = encode(user), encode(item)
        matrix = csr_of(row, column, values, (len(users), len(items)))
    if matrix.nnz == 0:
        raise ValueError("There are no ratings.")
    return Table(without_duplicates(matrix, duplicates), users, items)


def csr_of(row: Any, column: Any, values: np.ndarray, shape: tuple[int, int]) -> Any:
    """CSR with ascending indices; zeros stay, and what is there twice does so in its order."""
    coo = sparse.coo_matrix((values, (row, column)), shape=shape)
    coo.has_canonical_format = True  # or duplicates would be added up
    by_item = coo.tocsc()
    return by_item.tocsr()  # counting sorts: by item, then by user


def without_duplicates(matrix: Any, duplicates: str) -> Any:
    """The matrix with pairs that are stored twice averaged, or the last of them taken."""
    again = np.zeros(matrix.nnz, bool)  # entries that repeat the one before them
    again[1:] = matrix.indices[1:] == matrix.indices[:-1]
    starts = matrix.indptr[:-1]
    again[starts[starts < matrix.nnz]] = False
    if not again.any():
        return matrix
    if duplicates == "raise":
        at = int(again.argmax())
        user = int(matrix.indptr.searchsorted(at, side="right")) - 1
        raise ValueError(
            f"There are {int(again.sum())} ratings of pairs that have one already (the first: user "
            f'number {user}, item number {matrix.indices[at]}). With duplicates="mean" or "last" '
            "they are merged."
        )
    first = np.flatnonzero(~again)
    if duplicates == "mean":
        count = np.diff(np.append(first, matrix.nnz))
        data = np.add.reduceat(matrix.data, first) / count.astype(matrix.dtype)
    else:
        data = matrix.data[np.append(first[1:], matrix.nnz) - 1]
    indptr = np.append(0, np.cumsum(~again))[matrix.indptr]
    return sparse.csr_matrix((data, matrix.indices[first], indptr), shape=matrix.shape)


def without_entries(matrix: Any, places: np.ndarray) -> Any:
    """The matrix without the entries at some places in its data."""
    kept = np.ones(matrix.nnz, bool)
    kept[places] = False
    indptr = np.append(0, np.cumsum(kept))[matrix.indptr]
    return sparse.csr_matrix((matrix.data[kept], matrix.indices[kept], indptr), shape=matrix.shape)


def entries_of(X: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The rows, columns and values that a sparse matrix has stored, row by row."""
    coo = X.tocoo()
    entries = coo.row.astype(np.int64), coo.col.astype(np.int64), coo.data
    if (coo.row[1:] < coo.row[:-1]).any():
        order = np.argsort(coo.row, kind="stable")
        entries = tuple(entry[order] for entry in entries)
    return entries


def pairs_of(X: Any, users: Ids, items: Ids) -> tuple[np.ndarray, np.ndarray]:
    """The places of the users and items of pairs, or of the entries of a sparse matrix."""
    if sparse.issparse(X):
        row, column, _ = entries_of(X)
        return users.find(row), items.find(column)
    user, item = columns_of(X)
    return users.find(user), items.find(item)
