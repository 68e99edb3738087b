"""Lloyd's iterations over the compiled step."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fastml._native import kmeans as native
from fastml._runtime.callbacks import NO_TASK, Task
from fastml.cluster._seeding import dense_rows


class Run(NamedTuple):
    """What one run of k-means ends with; the centers lie about the rows' shift."""

    labels: np.ndarray
    inertia: float
    centers: np.ndarray
    n_iter: int


def lloyd(
    rows: native.Rows,
    w: np.ndarray | None,
    centers: np.ndarray,
    *,
    max_iter: int,
    tol: float,
    threads: int,
    report: Callable[[str], None] | None = None,
    task: Task = NO_TASK,
    attributes: Callable[[np.ndarray], dict[str, Any]] | None = None,
) -> Run:
    """Alternate assignment and averaging until no label or hardly any center moves.

    `report` takes the lines that verbose mode prints. `attributes` makes the fitted attributes of
    the model reached, for callbacks.
    """
    k, d = centers.shape
    labels = np.full(rows.n, -1, dtype=np.int32)
    sums, weights = np.empty((k, d)), np.empty(k)
    settled = False
    for i in range(max_iter):
        with task.subtask("iteration") as step:
            changed = native.assign(rows, centers, w, labels, sums, weights, threads)
            if report:
                inertia = native.inertia(rows, centers, w, labels, None, threads)
                report(f"Iteration {i}, inertia {inertia}")
            if not weights.all():
                relocate(rows, w, centers, labels, sums, weights, threads)
            moved = average(sums, weights, centers.dtype)
            settled = changed == 0
            drift = float(np.vdot(moved - centers, moved - centers))
            centers = moved
            if attributes:
                step.attributes = lambda centers=centers: attributes(centers)
        if settled:
            if report:
                report(f"Converged at iteration {i}: strict convergence.")
            break
        if drift <= tol:
            if report:
                report(f"Converged at iteration {i}: center shift {drift} within tolerance {tol}.")
            break
        if step.stop:
            break
    if not settled:
        # The centers moved after the last assignment: labels as predict will give them.
        native.assign(rows, centers, None, labels, None, None, threads)
    inertia = native.inertia(rows, centers, w, labels, None, threads)
    return Run(labels, inertia, centers, i + 1)


def relocate(
    rows: native.Rows,
    w: np.ndarray | None,
    centers: np.ndarray,
    labels: np.ndarray,
    sums: np.ndarray,
    weights: np.ndarray,
    threads: int,
) -> None:
    """Give each empty cluster one of the rows farthest from their centers, as scikit-learn does.

    The row leaves its cluster's sum; its label is left to the next assignment.
    """
    empty = np.flatnonzero(weights == 0)
    sqdist = np.empty(rows.n, rows.dtype)
    native.inertia(rows, centers, None, labels, sqdist, threads)
    if sqdist.max() == 0:
        return  # fewer distinct rows than clusters
    farthest = np.argpartition(sqdist, -empty.size)[: -empty.size - 1 : -1]
    for cluster, row in zip(empty, farthest, strict=True):
        donor, weight = labels[row], 1.0 if w is None else w[row]
        x = dense_rows(rows, [row])[0].astype(np.float64)
        sums[donor] -= x * weight
        sums[cluster] = x * weight
        weights[cluster] = weight
        weights[donor] -= weight


def average(sums: np.ndarray, weights: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Cluster means; a cluster without weight goes where scikit-learn puts it.

    That is to the largest cluster: to its mean if that comes before it, to its sum (not yet
    divided when scikit-learn gets there) if it comes after.
    """
    occupied = weights > 0
    if occupied.all():
        return (sums / weights[:, None]).astype(dtype)
    largest = weights.argmax()
    means = sums.copy()
    for j in range(len(weights)):
        if occupied[j]:
            means[j] /= weights[j]
        else:
            means[j] = means[largest]
    return means.astype(dtype)
