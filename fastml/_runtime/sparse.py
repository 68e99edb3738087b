"""Sparse matrices as kernels take them."""

from typing import Any

import numpy as np


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
