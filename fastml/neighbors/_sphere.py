"""Neighbours on a sphere: in a k-d tree of points in space, whose chords grow as the angles do."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastml._native.kdtree import KDTree
from fastml._runtime.threads import n_threads

# What rounding may do to a chord: angles closer than this are told apart by themselves.
SLACK = 4e-15


class Sphere:
    """Points given as latitude and longitude in radians; distances are angles."""

    def __init__(self, X: Any) -> None:
        self.X = np.require(X, np.float64, "CA")
        self.tree = KDTree(_in_space(self.X), n_threads=n_threads())

    def nearest(self, Q: Any, k: int, threads: int) -> tuple[np.ndarray, np.ndarray]:
        """Distances and rows of the `k` points nearest to each of `Q` (None: but itself)."""
        points, own = self._points(Q)
        # The next one tells whether the last one is sure.
        wanted = min(len(self.X), k + (Q is None) + 1)
        rows, chords = np.empty((len(points), wanted), np.int64), np.empty((len(points), wanted))
        self.tree.query(_in_space(points), wanted, chords, rows, threads)
        distances = angles(points[:, None], self.X[rows])
        distances[rows == own] = np.inf
        order = np.lexsort((rows, distances))[:, :k]
        distances, rows = (np.take_along_axis(a, order, axis=1) for a in (distances, rows))
        if wanted > k + (Q is None):
            doubtful = np.flatnonzero(chords[:, -1] - chords[:, -2] <= SLACK)
            if len(doubtful):
                reach = chords[doubtful, -1] + SLACK
                found = self._among(points[doubtful], own[doubtful], reach, k, threads)
                distances[doubtful], rows[doubtful] = found
        return distances, rows

    def _among(
        self, points: np.ndarray, own: np.ndarray, reach: np.ndarray, k: int, threads: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """The `k` nearest of all points within a chord, which are more than `k`."""
        offsets, rows, _ = self.tree.query_radius(_in_space(points), reach, threads, False, False)
        query = np.repeat(np.arange(len(points)), np.diff(offsets))
        distances = angles(points[query], self.X[rows])
        distances[rows == own[query, 0]] = np.inf
        order = np.lexsort((rows, distances, query))
        order = order[offsets[:-1, None] + np.arange(k)]
        return distances[order], rows[order]

    def within(
        self, Q: Any, radius: Any, sort: bool, threads: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Points within an angle of each of `Q` (None: but itself): offsets, rows, distances."""
        points, own = self._points(Q)
        radius = np.broadcast_to(np.asarray(radius, np.float64), len(points))
        reach = 2 * np.sin(np.clip(radius, 0, np.pi) / 2) * (1 + 1e-12) + SLACK
        offsets, rows, _ = self.tree.query_radius(_in_space(points), reach, threads, False, False)
        query = np.repeat(np.arange(len(points)), np.diff(offsets))
        distances = angles(points[query], self.X[rows])
        near = (distances <= radius[query]) & (rows != own[query, 0])
        query, rows, distances = query[near], rows[near], distances[near]
        if sort:
            order = np.lexsort((rows, distances, query))
            rows, distances = rows[order], distances[order]
        counts = np.bincount(query, minlength=len(points))
        return np.concatenate(([0], np.cumsum(counts))), rows, distances

    def _points(self, Q: Any) -> tuple[np.ndarray, np.ndarray]:
        """The queries, and the row that each is itself (-1: none)."""
        if Q is None:
            return self.X, np.arange(len(self.X))[:, None]
        return np.require(Q, np.float64, "CA"), np.full((len(Q), 1), -1)


def _in_space(X: np.ndarray) -> np.ndarray:
    latitude, longitude = X.T
    ring = np.cos(latitude)
    return np.stack([ring * np.cos(longitude), ring * np.sin(longitude), np.sin(latitude)], axis=1)


def angles(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Angles between points, by the haversine formula."""
    u, v = (np.sin((X[..., c] - Y[..., c]) / 2) for c in (0, 1))
    h = u * u + np.cos(X[..., 0]) * np.cos(Y[..., 0]) * v * v
    return 2 * np.arcsin(np.sqrt(np.minimum(h, 1)))
