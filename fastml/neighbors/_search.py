"""Searches: how the neighbours of queries are found for each kind of metric and data."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse
from sklearn import get_config
from sklearn.exceptions import DataConversionWarning
from sklearn.metrics import DistanceMetric
from sklearn.metrics.pairwise import check_pairwise_arrays
from sklearn.neighbors._base import _kneighbors_from_graph, _radius_neighbors_from_graph

from fastml._native import neighbors as native
from fastml._native.votes import Vote
from fastml._runtime.threads import n_threads
from fastml.metrics import pairwise_distances_chunked
from fastml.metrics._booleans import BOOLEAN, of_truth_values
from fastml.metrics._rows import jobs, pairs
from fastml.neighbors._kernels import TABLE, FeatureSpace, batches_of, is_kernel
from fastml.neighbors._spaces import as_floats, space_of
from fastml.neighbors._sphere import Sphere
from fastml.neighbors._trees import FEWEST_ROWS, MOST_COLUMNS_FOR_RADIUS, tree_for

# What trees have another name for.
OF_TREES = {"infinity": "chebyshev", "p": "minkowski"}
# Metrics between sparse rows, as kernels call them.
OF_STORED = {
    "cityblock": "manhattan",
    "cosine": "cosine_distance",
    "euclidean": "euclidean",
    "l1": "manhattan",
    "l2": "euclidean",
    "manhattan": "manhattan",
}
# Pairs of rows within a radius that are found at a time.
AT_ONCE = 1 << 18


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

    def as_votes(self) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Offsets, rows and distances as votes take them."""
        offsets, rows = (np.require(a, np.int64, "CA") for a in (self.offsets, self.rows))
        given = self.distances is not None
        return offsets, rows, np.require(self.distances, np.float64, "CA") if given else None

    def without_themselves(self) -> Neighborhoods:
        """Drop query i from its own neighbours."""
        counts = np.diff(self.offsets)
        kept = self.rows != np.repeat(np.arange(counts.size), counts)
        offsets = np.concatenate(([0], np.cumsum(kept)))[self.offsets]
        distances = None if self.distances is None else self.distances[kept]
        return Neighborhoods(offsets, self.rows[kept], distances)


class Searcher:
    """Searches over the rows of `X` (with metric "precomputed", over columns of distances)."""

    def __init__(self, X: Any, metric: Any, params: dict[str, Any], algorithm: str, k: int) -> None:
        if isinstance(metric, str):
            metric = OF_TREES.get(metric, metric)
        self.X, self.metric, self.params, self.algorithm = X, metric, params, algorithm
        self.kernel = FeatureSpace(metric, params) if is_kernel(metric) else None
        known = self.kernel is None and not issparse(X)
        self.space = space_of(metric, params) if known else None
        self.data = None if self.space is None else self.space.rows(X)
        self.targets: np.ndarray | None = None
        trees = algorithm != "brute" and not issparse(X)
        self.tree = self._make_tree(k) if trees else None
        on_sphere = trees and isinstance(metric, str) and metric == "haversine"
        self.sphere = Sphere(X) if on_sphere and len(X) >= FEWEST_ROWS else None

    def _make_tree(self, k: int) -> Any:
        if self.space is not None and self.space.metric in ("euclidean", "manhattan", "chebyshev"):
            return tree_for(self.space.metric, 2, self.data, k)
        if self.kernel is None and self.metric == "minkowski":
            rows = self._for_tree(self.X)
            if np.isfinite(rows).all():
                return tree_for("minkowski", self.params["p"], rows, k)
        return None

    def _for_tree(self, X: Any) -> np.ndarray:
        rows = as_floats(X) if self.space is None else self.space.rows(X)
        rows = rows.astype(np.float64, copy=False)
        if self.space is not None or self.params.get("w") is None:
            return rows
        with np.errstate(all="ignore"):
            return rows * np.asarray(self.params["w"], np.float64) ** (1 / self.params["p"])

    def nearest(
        self, X: Any, k: int, return_distance: bool, n_jobs: int | None
    ) -> tuple[np.ndarray | None, np.ndarray]:
        """The `k` nearest rows to each query; without `X`, to each row but itself."""
        if self.tree is not None and not issparse(X):
            return self._nearest_in_tree(X, k, n_threads(n_jobs))
        if self.sphere is not None and not issparse(X):
            return self.sphere.nearest(X, k, n_threads(n_jobs))
        if self.space is not None and not issparse(X):
            return self._nearest_rows(X, k, return_distance, n_threads(n_jobs))
        if self.metric == "precomputed":
            return self._nearest_columns(X, k, n_threads(n_jobs))
        return self._nearest_in_chunks(X, k, n_jobs)

    def vote(self, X: Any, k: int, vote: Vote, n_jobs: int | None) -> None:
        """Let the `k` nearest rows to each query vote, without a table of them if there is none."""
        threads = n_threads(n_jobs)
        if self.tree is not None and not issparse(X):
            self.tree.vote(None if X is None else self._for_tree(X), k, vote, threads)
        elif self.space is not None and not issparse(X):
            queries, data = self._in_one_dtype(X)
            native.vote(queries, data, self.space.metric, X is None, k, vote, threads)
        elif self.metric == "precomputed" or self.sphere is not None:
            distances, rows = self.nearest(X, k, True, n_jobs)
            vote.count(*_as_votes(rows, distances), 0, threads)
        else:
            for start, table in self.tables(X, n_jobs):
                distances, rows = smallest(table, k, start if X is None else None, threads)
                vote.count(*_as_votes(rows, distances), start, threads)

    def kept_targets(self, targets: np.ndarray, dtype: Any) -> np.ndarray:
        """The targets as votes take them, made once."""
        if self.targets is None or self.targets.dtype != dtype:
            self.targets = np.require(targets, dtype, "CA")
        return self.targets

    def _nearest_in_tree(self, X, k, threads):
        n = self.tree.n if X is None else X.shape[0]
        rows = np.empty((n, k), dtype=np.int64)
        distances = np.empty(rows.shape)
        queries = None if X is None else self._for_tree(X)
        self.tree.query(queries, k, distances, rows, threads, X is None)
        return distances, rows

    def _in_one_dtype(self, X):
        """The queries and the data as kernels compare them; without `X` both are the data."""
        data = self.data
        queries = data if X is None else self.space.rows(X)
        if queries.dtype != data.dtype:
            queries, data = queries.astype(np.float64), data.astype(np.float64)
        return queries, data

    def _nearest_rows(self, X, k, return_distance, threads):
        queries, data = self._in_one_dtype(X)
        rows = np.empty((queries.shape[0], k), dtype=np.int64)
        distances = np.empty(rows.shape) if return_distance else None
        native.nearest(queries, data, self.space.metric, X is None, distances, rows, threads)
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
            for start, table in self.tables(X, n_jobs)
        ]
        distances, rows = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return distances, rows

    def tables(self, X: Any, n_jobs: int | None) -> Iterator[tuple[int, np.ndarray]]:
        """Distances from queries to all rows, as many queries at a time as memory allows."""
        queries = self.X if X is None else X
        if self.kernel is not None:
            yield from self.kernel.tables(queries, self.X, n_jobs)
            return
        if issparse(queries) and not issparse(self.X):
            for batch in batches_of(queries.shape[0], max(self.X.shape)):
                for start, table in self.tables(queries[batch].toarray(), n_jobs):
                    yield batch.start + start, table
            return
        if (
            isinstance(self.metric, str)
            and self.metric in BOOLEAN
            and not issparse(queries)
            and not issparse(self.X)
        ):
            if self.algorithm == "brute" and queries.dtype != bool:
                warnings.warn(
                    f"Data was converted to boolean for metric {self.metric}",
                    DataConversionWarning,
                    stacklevel=6,
                )
            yield from _tables_of_truth_values(self.metric, queries, self.X, self.params)
            return
        if isinstance(self.metric, DistanceMetric):
            yield from _tables_of_object(self.metric, queries, self.X)
            return
        if self.metric == "braycurtis":  # not SciPy's, where signs differ or nothing is there
            yield from self._tables_by("relative", queries, n_jobs)
            return
        by_name = isinstance(self.metric, str) and not self.params
        if issparse(self.X) and by_name and self.metric in OF_STORED:
            yield from self._tables_by(OF_STORED[self.metric], queries, n_jobs)
            return
        memory = min(get_config()["working_memory"], TABLE)
        options = {"metric": self.metric, "n_jobs": n_jobs, "working_memory": memory}
        chunks = pairwise_distances_chunked(queries, self.X, **options, **self.params)
        start = 0
        for chunk in chunks:
            yield start, chunk
            start += chunk.shape[0]

    def _tables_by(
        self, metric: str, queries: Any, n_jobs: int | None
    ) -> Iterator[tuple[int, np.ndarray]]:
        """By a metric of the kernels', in single precision if all rows are and scikit-learn is."""
        itself, data = queries is self.X, self.X
        dtypes = {queries.dtype, data.dtype}
        if dtypes not in ({np.dtype(np.float32)}, {np.dtype(np.float64)}):
            data = data.astype(np.float64)
            queries = data if itself else queries.astype(np.float64)
        n = queries.shape[0]
        for batch in batches_of(n, data.shape[0]):
            here = queries if batch == slice(0, n) else queries[batch]
            with jobs(n_jobs):
                table = pairs(metric, here, data, double=metric in ("manhattan", "relative"))
            yield batch.start, table

    def within(
        self, X: Any, radius: Any, return_distance: bool, sort: bool, n_jobs: int | None
    ) -> Neighborhoods:
        """All rows within `radius` of each query; without `X`, of each row, but itself."""
        if self._tree_for_radius() and not issparse(X):
            queries = self._for_tree(self.X if X is None else X)
            found = Neighborhoods(
                *self.tree.query_radius(queries, radius, n_threads(n_jobs), return_distance, sort)
            )
            return found.without_themselves() if X is None else found
        if self.sphere is not None and not issparse(X):
            return Neighborhoods(*self.sphere.within(X, radius, sort, n_threads(n_jobs)))
        if self._in_tiles(X):
            n = (self.X if X is None else X).shape[0]
            return self._rows_within(X, radius, return_distance, sort, n_threads(n_jobs))(0, n)
        if self.metric == "precomputed" and issparse(self.X if X is None else X):
            return _in_graph(self.X if X is None else X, radius, X is None)
        return self._within_in_chunks(X, radius, sort, n_jobs)

    def vote_within(self, X: Any, radius: Any, vote: Vote, n_jobs: int | None) -> np.ndarray:
        """Let the rows within `radius` of each query vote; returns how many there are of each."""
        threads = n_threads(n_jobs)
        if self._tree_for_radius() and not issparse(X):
            queries = self._for_tree(self.X if X is None else X)
            return self.tree.vote_within(queries, radius, X is None, vote, threads)
        if not self._in_tiles(X):
            found = self.within(X, radius, vote.is_weighted, False, n_jobs)
            vote.count_lists(*found.as_votes(), threads)
            return np.diff(found.offsets)
        queries, data = self._in_one_dtype(X)
        counts = np.empty(queries.shape[0], np.int64)
        radii = np.require(np.broadcast_to(radius, counts.shape), np.float64, "CA")
        native.within_vote(
            queries, data, self.space.metric, X is None, radii, vote, counts, threads
        )
        return counts

    def _in_tiles(self, X: Any) -> bool:
        return self.space is not None and not issparse(X) and not self._tree_for_radius()

    def _tree_for_radius(self) -> bool:
        tiles = self.space is not None and self.data.shape[1] > MOST_COLUMNS_FOR_RADIUS
        return self.tree is not None and not tiles

    def parts_within(
        self, X: Any, radius: Any, return_distance: bool, sort: bool, n_jobs: int | None
    ) -> Iterator[Neighborhoods]:
        """The same for some queries after the others: so memory is used again, which is faster."""
        if not self._in_tiles(X):
            yield self.within(X, radius, return_distance, sort, n_jobs)
            return
        n = (self.X if X is None else X).shape[0]
        start, some = 0, max(1, AT_ONCE // self.data.shape[0])
        within = self._rows_within(X, radius, return_distance, sort, n_threads(n_jobs))
        while start < n:
            stop = min(n, start + some)
            found = within(start, stop)
            yield found
            some = min(16 * some, 1 + AT_ONCE // (1 + len(found.rows) // (stop - start)))
            start = stop

    def _rows_within(self, X, radius, return_distance, sort, threads):
        """A function that finds those of queries [start, stop)."""
        queries, data = self._in_one_dtype(X)
        radii = np.require(np.broadcast_to(radius, queries.shape[0]), np.float64, "CA")
        single = return_distance and self._in_single_precision(X)

        def within(start: int, stop: int) -> Neighborhoods:
            offsets, rows, distances = native.within(
                queries[start:stop],
                data,
                self.space.metric,
                X is None,
                radii[start:stop],
                return_distance,
                sort,
                threads,
                start,
            )
            if single:
                distances = distances.astype(np.float32)
            return Neighborhoods(offsets, rows, distances)

        return within

    def _within_in_chunks(self, X, radius, sort, n_jobs):
        n = (self.X if X is None else X).shape[0]
        radii = np.broadcast_to(radius, n)
        found = []
        for start, table in self.tables(X, n_jobs):
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


def _tables_of_truth_values(
    metric: str, X: Any, Y: Any, params: dict[str, Any]
) -> Iterator[tuple[int, np.ndarray]]:
    X, Y = np.asarray(X) != 0, np.asarray(Y) != 0
    for batch in batches_of(X.shape[0], Y.shape[0]):
        yield batch.start, of_truth_values(metric, X[batch], Y, **params)


def _tables_of_object(metric: Any, X: Any, Y: Any) -> Iterator[tuple[int, np.ndarray]]:
    dtype = np.float32 if type(metric).__name__.endswith("32") else np.float64
    X, Y = check_pairwise_arrays(X, Y, dtype=dtype)
    for batch in batches_of(X.shape[0], Y.shape[0]):
        yield batch.start, metric.pairwise(X[batch], Y)


def _in_graph(graph: Any, radius: float, drop_itself: bool) -> Neighborhoods:
    distances, rows = _radius_neighbors_from_graph(graph, radius, return_distance=True)
    if drop_itself:
        for i, near in enumerate(rows):
            kept = near != i
            rows[i], distances[i] = near[kept], distances[i][kept]
    offsets = np.concatenate(([0], np.cumsum([len(near) for near in rows])))
    return Neighborhoods(offsets, np.concatenate(rows), np.concatenate(distances))


def _as_votes(rows: np.ndarray, distances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.require(rows, np.int64, "CA"), np.require(distances, np.float64, "CA")


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
