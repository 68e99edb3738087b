"""When a k-d tree pays: every algorithm gives the same neighbours, so the fastest one searches."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastml._native.kdtree import KDTree
from fastml._runtime.threads import n_threads

# Fewer rows are compared sooner than a tree is built and walked.
FEWEST_ROWS, MOST_COLUMNS = 8192, 15
SAMPLE = 64


def tree_for(metric: str, p: float, data: np.ndarray, k: int) -> Any:
    """A tree of the rows if a search in it beats brute force, or None."""
    n, d = data.shape
    if n < FEWEST_ROWS or d > MOST_COLUMNS or not 1 <= p <= np.inf:
        return None
    # In double, as distances are; of float32 rows it would search in single precision.
    rows = np.ascontiguousarray(data, dtype=np.float64)
    tree = KDTree(rows, metric, p, n_threads())
    # Measured: a point compared in the tree, and one in a tile, in nanoseconds.
    in_tree, in_tile = 0.05 * d + 1, 0.008 * d + 0.05
    if metric == "minkowski":
        return tree
    sample = rows[:: max(1, n // SAMPLE)][:SAMPLE].copy()
    scanned = tree.scanned(sample, min(n, k + 1), n_threads()).mean()
    return tree if scanned * in_tree < n * in_tile else None
