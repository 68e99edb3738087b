"""Kernels as metrics: distances between the images of rows in the kernel's feature space."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.utils import gen_batches
from sklearn.utils._param_validation import StrOptions

from fastml.metrics import _dispatch, pairwise_kernels

# "cosine" is the cosine distance.
KERNELS = frozenset(_dispatch.KERNELS) - {"cosine"}


def is_kernel(metric: Any) -> bool:
    """Whether a metric is a kernel: a name of one, a kernel object or a `fastml.jit.kernel`."""
    if isinstance(metric, str):
        return metric in KERNELS
    if not callable(metric):
        return False
    # Whoever has such an object has imported its module.
    return any(
        isinstance(metric, getattr(sys.modules[module], name))
        for module, name in (
            ("sklearn.gaussian_process.kernels", "Kernel"),
            ("fastml.jit", "ScalarKernel"),
        )
        if module in sys.modules
    )


def with_kernels(constraints: dict[str, Any]) -> dict[str, Any]:
    """Parameter constraints by which the metric may also be the name of a kernel."""
    return constraints | {"metric": [*constraints["metric"], StrOptions(set(KERNELS))]}


# MiB of a table: a larger one is no sooner made, and there are several of its size.
TABLE = 32


def batches_of(n_queries: int, n: int) -> Iterator[slice]:
    """Queries so many at a time that tables of their distances fit in the working memory."""
    size = int(min(get_config()["working_memory"] / 4, TABLE) * 2**20 / (8 * max(1, n)))
    return gen_batches(n_queries, max(1, size))


class FeatureSpace:
    """|f(x) - f(z)| with f the feature map: the root of k(x, x) - 2 k(x, z) + k(z, z)."""

    def __init__(self, kernel: Any, params: dict[str, Any]) -> None:
        self.kernel, self.params = kernel, params

    def tables(self, X: Any, Y: Any, n_jobs: int | None) -> Iterator[tuple[int, np.ndarray]]:
        """Distances of the rows of `X` to those of `Y`, by batches: (first row, distances)."""
        squares = self._squared_norms(Y)
        own = squares if X is Y else self._squared_norms(X)
        for batch in batches_of(X.shape[0], Y.shape[0]):
            table = self._gram(X[batch], Y, n_jobs)
            table = own[batch, None] - 2 * table + squares
            # What is left of the difference between equals is rounding.
            table[table < 4 * np.finfo(table.dtype).eps * (own[batch, None] + squares)] = 0
            yield batch.start, np.sqrt(table, out=table)

    def _gram(self, X: Any, Y: Any, n_jobs: int | None = None) -> np.ndarray:
        return pairwise_kernels(X, Y, metric=self.kernel, n_jobs=n_jobs, **self.params)

    def _squared_norms(self, X: Any) -> np.ndarray:
        if hasattr(self.kernel, "diag"):
            return self.kernel.diag(X)
        batches = gen_batches(X.shape[0], 64)
        return np.concatenate([np.diagonal(self._gram(X[b], X[b])) for b in batches])
