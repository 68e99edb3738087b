"""Non-negative matrix factorisation by coordinate descent."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from fastml._native import nmf as native
from fastml._runtime.aligned import aligned_zeros, in_lines
from fastml._runtime.callbacks import NO_TASK, Task
from fastml._runtime.threads import n_threads
from fastml.decomposition._factors import Data, Factor, fitted, product


class Penalties(NamedTuple):
    l1_W: float
    l1_H: float
    l2_W: float
    l2_H: float


class Rule(NamedTuple):
    """When to stop, and whom to tell on the way."""

    tol: float
    max_iter: int
    update_H: bool = True
    verbose: int = 0
    task: Task = NO_TASK


class Descent:
    """Turns for W and for H, the transpose of B, each from products with sparse X; or, without
    update_H, turns for W alone from the same products, and X may be dense.

    sweeps: how many each turn makes over the coordinates of W, and of H.
    """

    def __init__(
        self,
        X: Data,
        W: Factor,
        B: Factor,
        penalties: Penalties,
        update_H: bool,
        sweeps: tuple[int, int] = (1, 1),
    ) -> None:
        self._X, self._W, self._B = X, W, B
        self._penalties, self._sweeps = penalties, sweeps
        self._threads = n_threads()
        self._of_B = B.gram()
        _penalise(self._of_B, penalties.l2_W)
        self._of_W = W.empty_gram()
        self._both = update_H
        self._fixed = None if update_H else product(X.rows, B.at)

    def run(self, order: np.ndarray, count: int, tol: float, first: float) -> tuple:
        """Take one turn each; return 1, the violation and that of the first time."""
        violation = self._turn_W(order[0])
        if self._both:
            violation += self._turn_H(order[1])
        return 1, violation, violation if first < 0 else first

    def settle(self) -> None:
        """Do nothing: the factors are up to date."""

    def _turn_W(self, order: np.ndarray) -> float:
        given = (self._X.rows, self._B.at) if self._fixed is None else (None, self._fixed)
        l1, sweeps = self._penalties.l1_W, self._sweeps[0]
        return native.descend(
            self._W.at, *given, self._of_B, order, l1, sweeps, self._of_W, self._threads
        )

    def _turn_H(self, order: np.ndarray) -> float:
        _penalise(self._of_W, self._penalties.l2_H)
        given, l1, sweeps = self._X.columns, self._penalties.l1_H, self._sweeps[1]
        violation = native.descend(
            self._B.at, given, self._W.at, self._of_W, order, l1, sweeps, self._of_B, self._threads
        )
        _penalise(self._of_B, self._penalties.l2_W)
        return violation


class DenseDescent:
    """The same for dense X and both factors, which lie transposed until they `settle`."""

    def __init__(
        self, X: Data, W: Factor, B: Factor, penalties: Penalties, sweeps: tuple[int, int]
    ) -> None:
        self._factors = W, B
        self._flat = flat(W), flat(B)
        of_B = B.gram()
        _penalise(of_B, penalties.l2_W)
        self._grams = W.empty_gram(), of_B
        self._sums = np.empty(native.sums_of_turns(X.rows, W.k), X.dtype)
        self._how = tuple(penalties), sweeps
        self._rows, self._threads = X.rows, n_threads()

    def run(self, order: np.ndarray, count: int, tol: float, first: float) -> tuple:
        """Take up to `count` turns each, as csrc/nmf/nmf.h says."""
        data = *self._flat, self._rows, self._grams, self._sums
        return native.alternate(*data, order, *self._how, count, tol, first, self._threads)

    def settle(self) -> None:
        """Bring the factors up to date."""
        for factor, found in zip(self._factors, self._flat, strict=True):
            factor.at[:, : factor.k] = found[:, : len(factor.at)].T


def flat(F: Factor) -> np.ndarray:
    """The transpose of F. Rows are an odd number of cache lines apart, and so in different places
    of a cache."""
    n, line = len(F.at), in_lines(1, F.at.dtype)
    out = aligned_zeros(F.k, (-(-n // line) | 1) * line, F.at.dtype)
    out[:, :n] = F.at[:, : F.k].T
    return out


def _penalise(gram: np.ndarray, l2: float) -> None:
    if l2 != 0:
        gram.flat[:: len(gram) + 1] += l2


def descend(
    X: Data,
    W: Factor,
    B: Factor,
    penalties: Penalties,
    rule: Rule,
    *,
    shuffle: bool = False,
    random_state: Any = None,
    repeated: bool = False,
) -> int:
    """Update W and H, the transpose of B; return the number of iterations.

    repeated: in each turn as many sweeps as are cheap beside the products that they start from
    (Gillis and Glineur, 2012), instead of one.
    """
    rng = check_random_state(random_state) if shuffle else None
    order = np.tile(np.arange(W.k, dtype=np.intp), (2, 1))
    sweeps = _sweeps(X, W.k) if repeated else (1, 1)
    solver: Descent | DenseDescent
    if X.sparse or not rule.update_H:
        solver = Descent(X, W, B, penalties, rule.update_H, sweeps)
    else:
        solver = DenseDescent(X, W, B, penalties, sweeps)
    alone = rng is None and not rule.task and not rule.verbose
    n_iter, first = 0, -1.0
    while n_iter < rule.max_iter:
        with rule.task.subtask("iteration") as step:
            if rng is not None:
                for of in order[: 1 + rule.update_H]:
                    of[:] = rng.permutation(W.k)
            count = rule.max_iter - n_iter if alone else 1
            done, violation, first = solver.run(order, count, rule.tol, first)
            n_iter += done
            step.attributes = lambda: solver.settle() or fitted(B)
        if first == 0 or step.stop:
            break
        if rule.verbose:
            print("violation:", violation / first)
        if violation / first <= rule.tol:
            if rule.verbose:
                print("Converged at iteration", n_iter + 1)
            break
    solver.settle()
    return n_iter


def _sweeps(X: Data, k: int) -> tuple[int, int]:
    """So many sweeps for W and for H cost half of what comes before them."""
    n, d = X.shape
    entries = X.X.nnz if X.sparse else n * d
    before = 1 + (entries + d * k) / (n * k), 1 + (entries + n * k) / (d * k)
    return 1 + int(before[0] / 2), 1 + int(before[1] / 2)
