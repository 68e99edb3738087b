"""Sparse matrices as kernels take them."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.sparse import issparse

BLOCK = 1 << 20  # values of sparse rows that are made dense at a time


def dense_blocks(X: Any) -> Iterator[tuple[slice, np.ndarray]]:
    """Some rows of `X`, dense or in CSR, after the others, as arrays."""
    size = max(1, BLOCK // max(1, X.shape[1]))
    for start in range(0, X.shape[0], size):
        rows = slice(start, min(start + size, X.shape[0]))
        yield rows, X[rows].toarray() if issparse(X) else X[rows]


def with_short_indices(X: Any) -> Any:
    """The CSR matrix `X` with 32-bit indices."""
    if X.indices.dtype == X.indptr.dtype == np.int32:
        return X
    largest = np.iinfo(np.int32).max
    if X.nnz > largest or X.shape[1] > largest:
        raise ValueError(
            f"X has {X.nnz} stored values in {X.shape[1]} columns: more than {largest} of either "
            "needs 64-bit indices, which fastml does not support. Use a part of the rows."
        )
    short = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return type(X)((X.data, *short), shape=X.shape)
