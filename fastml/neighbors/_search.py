"""Searches: how the neighbours of queries are found for each kind of metric and data."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse
from sklearn.metrics import DistanceMetric
from sklearn.metrics.pairwise import check_pairwise_arrays
from sklearn.neighbors._base import _kneighbors_from_graph, _radius_neighbors_from_graph

from fastml._native import neighbors as native
from fastml._runtime.threads import n_threads
from fastml.metrics import pairwise_distances_chunked
from fastml.neighbors._kernels import FeatureSpace, batches_of, is_kernel
from fastml.neighbors._spaces import as_floats, space_of
from fastml.neighbors._trees import tree_for


class Neighborhoods(NamedTuple):
    """Rows near queries: those of query i are `rows[offsets[i]:offsets[i + 1]]`."""

    offsets: np.ndarray
    rows: np.ndarray
    distances: np.ndarray | None

    def split(self, values: np.ndarray) -> np.ndarray:
        """An array of arrays, one for each query."""
        parts = np.empty(len(self.offsets) - 1, dtype=object)
        for i, (start, stop) in enumerate(pairwise(self.offsets.tolist())):
            parts[i] = values[start:stop]
        return parts


class Searcher:
    """Searches over the rows of `X` (with metric "precomputed", over columns of distances)."""

    def __init__(self, X: Any, metric: Any, params: dict[str, Any], tree_for_k: int | None) -> None:
        self.X, self.metric, self.params = X, metric, params
        self.kernel = FeatureSpace(metric, params) if is_kernel(metric) else None
        known = self.kernel is None and not issparse(X)
        self.space = space_of(metric, params) if known else None
        self.data = None if self.space is None else self.space.rows(X)
        self.tree = None if tree_for_k is None else self._make_tree(tree_for_k)

    def _make_tree(self, k: int) -> Any:
        if self.space is not None and self.space.metric in ("euclidean", "manhattan", "chebyshev"):
            return tree_for(self.space.metric, 2, self.data, k)
        if self.kernel is None and self.metric == "minkowski" and self.params.get("w") is None:
            return tree_for("minkowski", self.params["p"], as_floats(self.X), k)
        return None

    def _for_tree(self, X: Any) -> np.ndarray:
        rows = as_floats(X) if self.space is None else self.space.rows(X)
        return rows.astype(np.float64, copy=False)

    def nearest(
        self, X: Any, k: int, return_distance: bool, n_jobs: int | None
    ) -> tuple[np.ndarray | None, np.ndarray]:
        """The `k` nearest rows to each query; without `X`, to each row but itself."""
        if self.tree is not None and not issparse(X):
            return self._nearest_in_tree(X, k, n_threads(n_jobs))
        if self.space is not None and not issparse(X):
            return self._nearest_rows(X, k, return_distance, n_threads(n_jobs))
        if self.metric == "precomputed":
            return self._nearest_columns(X, k, n_threads(n_jobs))
        return self._nearest_in_chunks(X, k, n_jobs)

    def _nearest_in_tree(self, X, k, threads):
        queries = self._for_tree(self.X if X is None else X)
        rows = np.empty((queries.shape[0], k + (X is None)), dtype=np.int64)
        distances = np.empty(rows.shape)
        self.tree.query(queries, rows.shape[1], distances, rows, threads)
        return without_themselves(distances, rows) if X is None else (distances, rows)

    def _nearest_rows(self, X, k, return_distance, threads):
        data, itself = self.data, X is None
        queries = data if itself else self.space.rows(X)
        if queries.dtype != data.dtype:
            queries, data = queries.astype(np.float64), data.astype(np.float64)
        rows = np.empty((queries.shape[0], k), dtype=np.int64)
        distances = np.empty(rows.shape) if return_distance else None
        native.nearest(queries, data, self.space.metric, itself, distances, rows, threads)
        if return_distance and self._in_single_precision(X):
            distances = distances.astype(np.float32)
        return distances, rows

    def _in_single_precision(self, X):
        """Whether scikit-learn answers in float32, as it does for cosines alone."""
        dtypes = {self.X.dtype, self.X.dtype if X is None else X.dtype}
        return self.metric == "cosine" and dtypes == {np.dtype(np.float32)}

    def _nearest_columns(self, X, k, threads):
        itself = X is None
        table = self.X if itself else X
        if not issparse(table):
            return smallest(table, k, 0 if itself else None, threads)
        distances, rows = _kneighbors_from_graph(table, k + itself, return_distance=True)
        return without_themselves(distances, rows) if itself else (distances, rows)

    def _nearest_in_chunks(self, X, k, n_jobs):
        found = [
            smallest(table, k, start if X is None else None, n_threads(n_jobs))
            for start, table in self._tables(X, n_jobs)
        ]
        distances, rows = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return distances, rows

    def _tables(self, X: Any, n_jobs: int | None) -> Iterator[tuple[int, np.ndarray]]:
        """Distances from queries to all rows, as many queries at a time as memory allows."""
        queries = self.X if X is None else X
        if self.kernel is not None:
            yield from self.kernel.tables(queries, self.X, n_jobs)
            return
        if self.metric == "braycurtis":  # scikit-learn's is not SciPy's, where signs differ
            X, Y = check_pairwise_arrays(queries, self.X, dtype=np.float64)
            metric = DistanceMetric.get_metric("braycurtis")
            for batch in batches_of(X.shape[0], Y.shape[0]):
                yield batch.start, metric.pairwise(X[batch], Y)
            return
        chunks = pairwise_distances_chunked(
            queries, self.X, metric=self.metric, n_jobs=n_jobs, **self.params
        )
        start = 0
        for chunk in chunks:
            yield start, chunk
            start += chunk.shape[0]

    def within(
        self, X: Any, radius: Any, return_distance: bool, sort: bool, n_jobs: int | None
    ) -> Neighborhoods:
        """All rows within `radius` of each query; without `X`, of each row, but itself."""
        if self.tree is not None and X is not None and not issparse(X):
            found = self.tree.query_radius(
                self._for_tree(X), radius, n_threads(n_jobs), return_distance, sort
            )
            return Neighborhoods(*found)
        if self.space is not None and not issparse(X):
            return self._rows_within(X, radius, return_distance, sort, n_threads(n_jobs))
        if self.metric == "precomputed" and issparse(self.X if X is None else X):
            return _in_graph(self.X if X is None else X, radius, X is None)
        return self._within_in_chunks(X, radius, sort, n_jobs)

    def _rows_within(self, X, radius, return_distance, sort, threads):
        data, itself = self.data, X is None
        queries = data if itself else self.space.rows(X)
        if queries.dtype != data.dtype:
            queries, data = queries.astype(np.float64), data.astype(np.float64)
        radii = np.require(np.broadcast_to(radius, queries.shape[0]), np.float64, "CA")
        offsets, rows, distances = native.within(
            queries, data, self.space.metric, itself, radii, return_distance, sort, threads
        )
        if return_distance and self._in_single_precision(X):
            distances = distances.astype(np.float32)
        return Neighborhoods(offsets, rows, distances)

    def _within_in_chunks(self, X, radius, sort, n_jobs):
        n = (self.X if X is None else X).shape[0]
        radii = np.broadcast_to(radius, n)
        found = []
        for start, table in self._tables(X, n_jobs):
            near = table <= radii[start : start + table.shape[0], None]
            if X is None:
                own = np.arange(table.shape[0])
                near[own, start + own] = False
            queries, rows = np.nonzero(near)
            found.append((table[queries, rows], rows, near.sum(axis=1)))
        distances, rows, counts = (np.concatenate(parts) for parts in zip(*found, strict=True))
        if sort:
            order = np.lexsort((rows, distances, np.repeat(np.arange(n), counts)))
            distances, rows = distances[order], rows[order]
        return Neighborhoods(np.concatenate(([0], np.cumsum(counts))), rows, distances)


def _in_graph(graph: Any, radius: float, drop_itself: bool) -> Neighborhoods:
    distances, rows = _radius_neighbors_from_graph(graph, radius, return_distance=True)
    if drop_itself:
        for i, near in enumerate(rows):
            kept = near != i
            rows[i], distances[i] = near[kept], distances[i][kept]
    offsets = np.concatenate(([0], np.cumsum([len(near) for near in rows])))
    return Neighborhoods(offsets, np.concatenate(rows), np.concatenate(distances))


def smallest(
    table: np.ndarray, k: int, first_itself: int | None, threads: int
) -> tuple[np.ndarray, np.ndarray]:
    """The `k` smallest entries of each row and their columns, NaN last.

    With `first_itself`, entry (i, first_itself + i) is dropped from among one more of them.
    """
    table = np.require(table, requirements="CA")
    if table.dtype not in (np.float32, np.float64):
        table = table.astype(np.float64)
    columns = np.empty((table.shape[0], k), dtype=np.int64)
    values = np.empty(columns.shape, dtype=table.dtype)
    skipped = -1 if first_itself is None else first_itself
    native.smallest(table, skipped, values, columns, threads)
    return values, columns


def without_themselves(distances: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Drop query i from its own neighbours; the first of them if it is not there."""
    kept = rows != np.arange(rows.shape[0])[:, None]
    kept[kept.all(axis=1), 0] = False
    shape = (rows.shape[0], rows.shape[1] - 1)
    return distances[kept].reshape(shape), rows[kept].reshape(shape)
