"""Products by the BLAS that LAPACK's routines here use.

Wheels of NumPy and of SciPy bring an OpenBLAS each. Threads of one stay awake for some time after a
call, in the way of the other's: where factorisations are SciPy's, so had products better be.
"""

import numpy as np
from scipy.linalg import blas


def product(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """A B in C order, of matrices in float32 or float64, both the same; without copies of them."""
    gemm = blas.dgemm if A.dtype == np.float64 else blas.sgemm
    # In Fortran's order it is the transpose of Bᵀ Aᵀ.
    b, turn_b = (B.T, False) if B.flags.c_contiguous else (B, True)
    a, turn_a = (A.T, False) if A.flags.c_contiguous else (A, True)
    return gemm(1.0, b, a, trans_a=turn_b, trans_b=turn_a).T
