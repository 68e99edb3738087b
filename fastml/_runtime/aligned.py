"""Arrays as kernels with vectors like them."""

from typing import Any

import numpy as np

LINE = 64  # bytes


def aligned_zeros(n: int, width: int, dtype: Any) -> np.ndarray:
    """Zeros of shape (n, width) that begin on a cache line."""
    size = n * width * np.dtype(dtype).itemsize
    raw = np.zeros(size + LINE, np.uint8)
    start = -raw.ctypes.data % LINE
    return raw[start : start + size].view(dtype).reshape(n, width)


def in_lines(width: int, dtype: Any) -> int:
    """The least number of values, not below `width`, that fills whole cache lines."""
    unit = LINE // np.dtype(dtype).itemsize
    return -(-width // unit) * unit
