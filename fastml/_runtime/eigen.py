"""Symmetric eigenproblems in full, on our own threads: LAPACK's take no notice of Ctrl-C."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastml._native import eigen
from fastml._runtime.threads import n_threads


class Tridiagonal:
    """The tridiagonal form of a symmetric matrix, in float32 or float64: half of its problem."""

    def __init__(self, A: np.ndarray) -> None:
        self.n = len(A)
        # Not the kernel's own: NumPy asks for large pages, which halves the time of large problems.
        self.work = np.empty(eigen.work_size(self.n) if self.n else 0, A.dtype)
        if self.n:
            # Half of A is read: as well that of its transpose, which is the same.
            A = np.ascontiguousarray(A.T if A.flags.f_contiguous else A)
            eigen.tridiagonal_form(A, self.work, n_threads())

    def count_below(self, part: float) -> int:
        """How many eigenvalues are below `part` times the greatest; 0 if that is not positive."""
        return eigen.count_below(part, self.n, self.work) if self.n else 0

    def eigenpairs(self, k: int | None = None, dtype: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """All eigenvalues in descending order, and the vectors of the k largest, in rows.

        All are NaN if an entry of the matrix is NaN or infinite. dtype: of the vectors; if that is
        float32 where the matrix is in double, they are had sooner, with the digits of float32.
        """
        n = self.n
        values = np.empty(n, self.work.dtype)
        vectors = np.empty((n if k is None else k, n), self.work.dtype if dtype is None else dtype)
        if n:
            eigen.eigenpairs(values, vectors, self.work, n_threads())
        return values, vectors

    def leading(self, k: int, dtype: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """The same without the other eigenvalues, which is sooner had where k is a small part."""
        values = np.empty(k, self.work.dtype)
        vectors = np.empty((k, self.n), values.dtype if dtype is None else dtype)
        if k:
            eigen.leading_pairs(values, vectors, self.work, n_threads())
        return values, vectors


def few_pairs(A: np.ndarray, k: int, tol: float = 0) -> tuple[np.ndarray, np.ndarray] | None:
    """The k largest by Lanczos' method, if it finds them in few products: sooner than any form.

    A, C order: its half on and above the diagonal is read. tol: of residuals, beside the largest
    eigenvalue; 0 is rounding. None as well where it is not certain how often an eigenvalue is
    there, or an entry is not finite.
    """
    values, vectors = np.empty(k, A.dtype), np.empty((k, len(A)), A.dtype)
    if not k or not eigen.few_pairs(A, tol, values, vectors, n_threads()):
        return None
    return values, vectors


def eigenpairs(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """As those of A's tridiagonal form."""
    return Tridiagonal(A).eigenpairs()
