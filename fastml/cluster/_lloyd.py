"""Lloyd's iterations over the compiled step."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from fastml._native import kmeans as native
from fastml._native.rows import Rows
from fastml._runtime.callbacks import NO_TASK, Task
from fastml._runtime.reduce import reduce_blocks
from fastml.cluster._seeding import dense_rows


class Block(NamedTuple):
    """Rows with their weights (None: equal) and their labels, which `Lloyd.map` rewrites.

    `memory` is what saves work from one iteration to the next; None to do without.
    """

    rows: Rows
    w: np.ndarray | None
    labels: np.ndarray
    memory: native.Memory | None = None


class Farthest(NamedTuple):
    """Rows far from their centers, the farthest first: seeds for clusters that are empty."""

    sqdist: np.ndarray
    rows: np.ndarray  # in double, less the shift
    labels: np.ndarray
    weights: np.ndarray


class Part(NamedTuple):
    """What some rows contribute: weighted sums of each cluster, and how many labels changed."""

    sums: np.ndarray
    weights: np.ndarray
    changed: int
    farthest: Farthest | None  # as many as there are clusters without weight


class State(NamedTuple):
    """Centers, less the rows' shift, and how far all of them moved last (squared)."""

    centers: np.ndarray
    drift: float
    settled: bool  # no label changed


class Lloyd:
    """K-means as a reduction over rows; see `fastml._runtime.reduce`."""

    def __init__(self, tol: float, threads: int) -> None:
        self.tol, self.threads = tol, threads

    def init(self, meta: Any, seed: np.ndarray) -> State:
        """`seed` are the initial centers."""
        return State(seed, np.inf, settled=False)

    def map(self, block: Block, state: State) -> Part:
        centers = state.centers
        sums, weights = np.empty(centers.shape), np.empty(len(centers))
        changed = relabel(block, centers, sums, weights, self.threads)
        part = Part(sums, weights, changed, None)
        return part if weights.all() else part._replace(farthest=self._farthest(block, part, state))

    def merge(self, a: Part, b: Part) -> Part:
        weights = a.weights + b.weights
        farthest = None
        if a.farthest is not None and b.farthest is not None and not weights.all():
            both = Farthest(*map(np.concatenate, zip(a.farthest, b.farthest, strict=True)))
            order = np.argsort(-both.sqdist, kind="stable")[: np.count_nonzero(weights == 0)]
            farthest = Farthest(*(column[order] for column in both))
        return Part(a.sums + b.sums, weights, a.changed + b.changed, farthest)

    def update(self, part: Part, state: State) -> tuple[State, bool]:
        if part.farthest is not None:
            relocate(part)
        centers = average(part.sums, part.weights, state.centers.dtype)
        moved = centers - state.centers
        drift, settled = float(np.vdot(moved, moved)), part.changed == 0
        return State(centers, drift, settled), settled or drift <= self.tol

    def _farthest(self, block: Block, part: Part, state: State) -> Farthest:
        """Picked as scikit-learn picks them, in its order."""
        rows, w, labels, _ = block
        n_empty = min(np.count_nonzero(part.weights == 0), rows.n)
        sqdist = np.empty(rows.n, rows.dtype)
        native.inertia(rows, state.centers, None, labels, sqdist, self.threads)
        index = np.argpartition(sqdist, -n_empty)[: -n_empty - 1 : -1]
        weights = np.ones(n_empty) if w is None else w[index].astype(np.float64)
        far = dense_rows(rows, index).astype(np.float64)
        return Farthest(sqdist[index], far, labels[index], weights)


def relabel(
    block: Block,
    centers: np.ndarray,
    sums: np.ndarray | None,
    weights: np.ndarray | None,
    threads: int,
) -> int:
    """Label the rows with their nearest centers; return how many labels changed."""
    if block.memory is not None:
        return block.memory.step(centers, block.labels, sums, weights)
    return native.assign(block.rows, centers, block.w, block.labels, sums, weights, threads)


def memory_for(rows: Rows, w: np.ndarray | None, k: int, threads: int) -> native.Memory | None:
    """What saves work between iterations, where labelling a row is work enough.

    16 bytes a row, and what lower precision makes of the rows if that is 64 MB at most.
    """
    light = k * (rows.d + 16) < 3000 or rows.n * rows.d * k < 1 << 20
    if issparse(rows.X) or light:
        return None
    return native.Memory(rows, w, k, threads)


def relocate(part: Part) -> None:
    """Give each empty cluster one of the rows farthest from their centers, as scikit-learn does.

    The row leaves its cluster's sum; its label is left to the next assignment.
    """
    farthest = part.farthest
    if farthest is None or not _apart(farthest):
        return  # fewer distinct rows than clusters
    empty = np.flatnonzero(part.weights == 0)
    for cluster, row, donor, weight in zip(empty, *farthest[1:], strict=False):
        part.sums[donor] -= row * weight
        part.sums[cluster] = row * weight
        part.weights[cluster] = weight
        part.weights[donor] -= weight


def _apart(farthest: Farthest) -> bool:
    """Whether rows lie farther from their centers than means of equal rows do, by rounding."""
    rounding = 64 * np.finfo(farthest.sqdist.dtype).eps
    norm = np.square(farthest.rows).sum(axis=1).max()
    return farthest.sqdist.max() > rounding**2 * norm


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


class Run(NamedTuple):
    """What one run of k-means ends with; the centers lie about the rows' shift."""

    labels: np.ndarray
    inertia: float
    centers: np.ndarray
    n_iter: int


def lloyd(
    rows: Rows,
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
    memory = memory_for(rows, w, len(centers), threads)
    block = Block(rows, w, np.full(rows.n, -1, dtype=np.int32), memory)
    labels, method = block.labels, Lloyd(tol, threads)
    state, done = method.init(None, centers), False
    for i in range(max_iter):
        with task.subtask("iteration") as step:
            part = reduce_blocks(method, [block], state)
            if report:
                inertia = native.inertia(rows, state.centers, w, labels, None, threads)
                report(f"Iteration {i}, inertia {inertia}")
            state, done = method.update(part, state)
            if attributes:
                step.attributes = lambda centers=state.centers: attributes(centers)
        if done:
            if report:
                reason = (
                    "strict convergence"
                    if state.settled
                    else f"center shift {state.drift} within tolerance {tol}"
                )
                report(f"Converged at iteration {i}: {reason}.")
            break
        if step.stop:
            break
    if not state.settled:
        # The centers moved after the last assignment: labels as predict will give them.
        relabel(block, state.centers, None, None, threads)
    inertia = native.inertia(rows, state.centers, w, labels, None, threads)
    return Run(labels, inertia, state.centers, i + 1)
