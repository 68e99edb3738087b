"""When a k-d tree pays: every algorithm gives the same neighbours, so the fastest one searches."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastml._native.kdtree import KDTree
from fastml._runtime.threads import n_threads

# Fewer rows are compared sooner than a tree is built, walked and perhaps given up.
FEWEST_ROWS, FEWEST_ROWS_OF_MANY_COLUMNS, FEW_COLUMNS, MOST_COLUMNS = 2048, 8192, 5, 15
# All within a radius: from about here on tiles win, however many there are.
MOST_COLUMNS_FOR_RADIUS = 6
SAMPLE = 64


def tree_for(metric: str, p: float, data: np.ndarray, k: int) -> Any:
    """A tree of the rows if a search in it beats brute force, or None."""
    n, d = data.shape
    fewest = FEWEST_ROWS if d <= FEW_COLUMNS else FEWEST_ROWS_OF_MANY_COLUMNS
    if n < fewest or d > MOST_COLUMNS or not 1 <= p <= np.inf:
        return None
    # In double, as distances are; of float32 rows it would search in single precision.
    rows = np.ascontiguousarray(data, dtype=np.float64)
    tree = KDTree(rows, metric, p, n_threads())
    if metric == "minkowski":
        return tree
    sample = rows[:: max(1, n // SAMPLE)][:SAMPLE].copy()
    scanned = tree.scanned(sample, min(n, k + 1), n_threads()).mean()
    # Nanoseconds of a query as measured: so much for every point that is compared, and once.
    in_tree = 2.1 * scanned + 150
    in_tiles = (0.0085 * d + 0.035) * n + 1200
    return tree if in_tree < in_tiles else None
