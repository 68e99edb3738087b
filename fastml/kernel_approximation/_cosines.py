"""The map of random features, scale cos(X W + offset), for dense and sparse rows."""

from typing import Any

import numpy as np
from scipy.sparse import issparse

from fastml._native import sketch as native
from fastml._runtime.threads import n_threads
from fastml.metrics._rows import pairs

FEW = 16  # rows for which turning W around would cost more than it saves


def cosine_features(X: Any, W: np.ndarray, offset: np.ndarray, scale: float) -> np.ndarray:
    """In the dtype that X (n, d) and W (d, m) have in common."""
    wanted = np.result_type(X.dtype, W.dtype)
    dtype = np.dtype(np.float32 if wanted == np.float32 else np.float64)
    X, offset = X.astype(dtype, copy=False), offset.astype(dtype, copy=False)
    if issparse(X):
        out = pairs("linear", X, np.ascontiguousarray(W.T, dtype=dtype))
    elif len(X) < FEW:
        out = np.ascontiguousarray(X @ W.astype(dtype, copy=False))
    else:
        out = np.empty((len(X), W.shape[1]), dtype)
        X, W = np.require(X, dtype, "CA"), np.ascontiguousarray(W.T, dtype=dtype)
        native.cosine_features(X, W, offset, scale, out, n_threads())
        return out.astype(wanted, copy=False)
    native.cosines(out, offset, scale, n_threads())
    return out.astype(wanted, copy=False)
