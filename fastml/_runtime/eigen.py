"""Symmetric eigenproblems in full, on our own threads: LAPACK's take no notice of Ctrl-C."""

from __future__ import annotations

import numpy as np

from fastml._native.eigen import symmetric_eigen, work_size
from fastml._runtime.threads import n_threads


def eigenpairs(A: np.ndarray, k: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """All eigenvalues of A in descending order, and the vectors of the k largest, in rows.

    A is symmetric, in float32 or float64, and so is what comes back: all NaN if an entry of A is
    NaN or infinite.
    """
    n = len(A)
    values, vectors = np.empty(n, A.dtype), np.empty((n if k is None else k, n), A.dtype)
    if n:
        # Half of A is read: as well that of its transpose, which is the same.
        A = np.ascontiguousarray(A.T if A.flags.f_contiguous else A)
        # Not the kernel's own: NumPy asks for large pages, which halves the time of large problems.
        work = np.empty(work_size(n), A.dtype)
        symmetric_eigen(A, values, vectors, work, n_threads())
    return values, vectors
