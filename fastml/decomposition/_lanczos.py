"""The largest eigenvalues of a symmetric operator that is only multiplied with."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from math import ceil, inf, log
from typing import NamedTuple

import numpy as np
from scipy.linalg import qr

from fastml._native.symmetric import combine, orthonormalise, project_out
from fastml._runtime.callbacks import NO_TASK, Task
from fastml._runtime.eigen import Tridiagonal
from fastml._runtime.forks import unforked
from fastml._runtime.threads import n_threads

STEPS = 24  # blocks beside the wanted vectors before the best of them start again


class Eigenpairs(NamedTuple):
    """Values (k,), the largest first, vectors (n, k), and how far these are from being such."""

    values: np.ndarray
    vectors: np.ndarray
    residuals: np.ndarray
    n_iter: int
    converged: bool


def width_of(dtype: np.dtype) -> int:
    """Vectors of a strand: as many as are multiplied at once."""
    return 64 // np.dtype(dtype).itemsize


class Basis:
    """Orthonormal vectors, in strands: blocks (n, width) in C order, one behind the other.

    Products with them are ours: BLAS's threads wait busily between calls where ours should run.
    """

    def __init__(self, n: int, most: int, dtype: np.dtype) -> None:
        self.width, self.n, self.count = width_of(dtype), n, 0
        self.kept = np.empty((most, n, self.width), dtype)
        self.threads = n_threads()
        self.lacking = False  # whether random directions stood in when some were last asked for

    @property
    def m(self) -> int:
        return self.count * self.width

    @property
    def strands(self) -> np.ndarray:
        return self.kept[: self.count]

    @cached_property
    def rng(self) -> np.random.RandomState:
        return np.random.RandomState(0)

    def append(self, fresh: np.ndarray) -> None:
        """Strands that are orthonormal."""
        self.kept[self.count : self.count + len(fresh)] = fresh
        self.count += len(fresh)

    def take_part(self, W: np.ndarray) -> np.ndarray:
        """Leave in the strands W what is orthogonal to the basis: the part in it, (m, columns)."""
        C = np.empty((len(W), self.m, self.width))
        if self.count:
            for strand, c in zip(W, C, strict=True):
                project_out(self.strands, strand, c, self.threads)
        return np.hstack(C)

    def combined(self, S: np.ndarray) -> np.ndarray:
        """The vectors times S (m, columns), in strands of which the last is filled with zeros."""
        out = np.empty((-(-S.shape[1] // self.width), self.n, self.width), self.kept.dtype)
        whole = np.zeros((len(S), len(out) * self.width))
        whole[:, : S.shape[1]] = S
        combine(self.strands, whole, out, self.threads)
        return out

    def orthonormal(self, W: np.ndarray, scale: float) -> tuple[np.ndarray, np.ndarray]:
        """Q and R with W = Q R, Q orthogonal to the basis, in which W has no part but rounding.

        W and Q are in strands, and Q takes W's memory. Directions of W that are rounding alone,
        beside `scale`, are replaced by random ones, with zeros in R.
        """
        R = np.empty((len(W) * self.width,) * 2)
        eps = np.finfo(W.dtype)
        lost = 100 * eps.eps * max(scale, eps.tiny)
        if orthonormalise(self.strands, W, R, self.threads):
            self.lacking = not R.diagonal().min() > lost
            if not self.lacking:
                return W, R
            W = in_strands(of_strands(W) @ R.astype(W.dtype))  # rounding may be independent as well
        return self._of_lower_rank(W, lost)

    @unforked()
    def _of_lower_rank(self, W: np.ndarray, rounding: float) -> tuple[np.ndarray, np.ndarray]:
        Q, R, order = qr(of_strands(W), mode="economic", pivoting=True)
        lost = abs(R.diagonal()) <= rounding
        R[lost] = 0
        self.lacking = bool(lost.any())
        Q[:, lost] = self.rng.normal(size=(len(Q), int(lost.sum())))
        for _ in range(2):
            Q = in_strands(Q)
            self.take_part(Q)
            Q = qr(of_strands(Q), mode="economic")[0]
        back = np.empty_like(R)
        back[:, order] = R
        return in_strands(Q), back


def in_strands(V: np.ndarray) -> np.ndarray:
    """Of (n, b), b a multiple of the width: (strands, n, width)."""
    width = width_of(V.dtype)
    return np.ascontiguousarray(V.reshape(len(V), -1, width).swapaxes(0, 1))


def of_strands(W: np.ndarray) -> np.ndarray:
    """The inverse."""
    return np.ascontiguousarray(W.swapaxes(0, 1)).reshape(W.shape[1], -1)


def largest(
    product: Callable[[np.ndarray], np.ndarray],
    start: np.ndarray,
    k: int,
    *,
    tol: float,
    max_iter: int,
    task: Task = NO_TASK,
) -> Eigenpairs:
    """The k largest eigenpairs, by the block Lanczos method with thick restarts.

    `product` is called with (n, b) blocks as wide as `start`, whole strands. All vectors are kept
    orthogonal to one another, twice over, so that no eigenvalue appears twice (Wu and Simon,
    2000, in blocks). Ends when all residuals |A v - lambda v| are below `tol` times the largest
    |lambda|.

    Of an eigenvalue that is there more than b times a Krylov space has b vectors. So with b < k a
    random block, orthogonal to all that was found, has a few steps to lead to something else.
    """
    unit: float = 0

    def in_units(V: np.ndarray) -> np.ndarray:
        nonlocal unit
        W = product(V)
        unit = unit or _unit_of(W)
        return W if unit == 1 else W / W.dtype.type(unit)

    found = _largest(in_units, start, k, tol, max_iter, task)
    return found._replace(values=found.values * unit, residuals=found.residuals * unit)


def _unit_of(W: np.ndarray) -> float:
    """A power of two beside which squares of such numbers neither overflow nor vanish."""
    exponent = int(np.frexp(np.abs(W).max(initial=0))[1])  # 0 of what is not finite
    return 2.0 ** (exponent - 1) if abs(exponent) > np.finfo(W.dtype).maxexp // 3 else 1.0


def _largest(
    product: Callable[[np.ndarray], np.ndarray],
    start: np.ndarray,
    k: int,
    tol: float,
    max_iter: int,
    task: Task,
) -> Eigenpairs:
    n, b = start.shape
    w = width_of(start.dtype)
    kept = -(-(k + b) // w) * w
    most = kept + STEPS * b
    if n <= most:
        return _of_few_rows(product, n, k, start.dtype)
    basis, H = Basis(n, most // w, start.dtype), np.zeros((most, most))
    check, probed, before = k + 5 * b, None, None
    fresh, _ = basis.orthonormal(in_strands(start).copy(), 0.0)
    for n_iter in range(1, max_iter + 1):
        with task.subtask("iteration") as step:
            m = basis.m
            basis.append(fresh)
            W = in_strands(product(of_strands(fresh)))
            C = basis.take_part(W)
            H[: basis.m, m : basis.m], H[m : basis.m, : basis.m] = C, C.T
            m = basis.m
            fresh, R = basis.orthonormal(W, float(np.linalg.norm(C)))
            full = m + b > most
            # Where there is nothing new to multiply, all may be found.
            if m < check and not (full or basis.lacking) and n_iter < max_iter:
                continue
            wanted = kept if full else k  # the others serve to start again
            values, S = Tridiagonal(H[:m, :m]).leading(min(m, wanted))
            S = S.T
            # What is left of A V S is fresh R times the last rows of S.
            residuals = np.linalg.norm(R @ S[m - b :], axis=0)[:k]
            near = tol * abs(values[0])
            good = m >= k and bool((residuals <= near).all())
            now = n_iter, float(residuals.max() / near) if near > 0 else 0.0
            # A look costs an eigenproblem.
            wait = int(min(0.3 * m + b, b * _until_near(before, now)))
            before, check = now, m + wait
        sure = b >= k or (probed is not None and bool((values[:k] - probed <= 10 * near).all()))
        if (good and sure) or step.stop or n_iter == max_iter:
            vectors = of_strands(basis.combined(S[:, :k]))[:, :k]
            return Eigenpairs(values[:k], vectors, residuals, n_iter, good)
        if full:
            vectors, basis.count = basis.combined(S), 0
            basis.append(vectors)
            H[:] = 0
            H[:kept, :kept] = np.diag(values)
            check = kept + wait
        if good:
            probed, check = values[:k].copy(), basis.m + 3 * b
            noise = in_strands(basis.rng.normal(size=(n, b)).astype(start.dtype))
            basis.take_part(noise)
            fresh, _ = basis.orthonormal(noise, 0.0)
    raise AssertionError("unreachable")


def _until_near(before: tuple[int, float] | None, now: tuple[int, float]) -> float:
    """Products until residuals are as small as wanted, if they decline as they did before.

    before, now: after how many products they were how many times that.
    """
    if before is None or not 1 < now[1] < before[1] < inf:
        return inf
    return ceil(log(now[1]) * (now[0] - before[0]) / log(before[1] / now[1]))


def _of_few_rows(product: Callable, n: int, k: int, dtype: np.dtype) -> Eigenpairs:
    w = width_of(dtype)
    A = product(np.eye(n, -(-n // w) * w, dtype=dtype))[:, :n]
    values, vectors = Tridiagonal((A + A.T) / 2).leading(k)
    vectors = vectors.T
    off = np.linalg.norm(A @ vectors - vectors * values, axis=0)
    return Eigenpairs(values, vectors, off, 1, True)
