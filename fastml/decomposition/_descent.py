"""Non-negative matrix factorisation by coordinate descent."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from fastml._native import nmf as native
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
    """Turns for W and for H, the transpose of B.

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
        self._penalise(self._of_B, penalties.l2_W)
        self._of_W = W.empty_gram() if update_H else None
        self._back = B.empty() if update_H and not X.sparse else None
        self._fixed = None if update_H else product(X.rows, B.at)

    def turn_W(self, order: np.ndarray) -> float:
        """Update W; return by how much it was not optimal."""
        given = (self._X.rows, self._B.at) if self._fixed is None else (None, self._fixed)
        l1, sweeps = self._penalties.l1_W, self._sweeps[0]
        outputs = self._back, self._of_W
        return native.descend(
            self._W.at, *given, self._of_B, order, l1, sweeps, *outputs, self._threads
        )

    def turn_H(self, order: np.ndarray) -> float:
        """Update H, after W; return by how much it was not optimal."""
        self._penalise(self._of_W, self._penalties.l2_H)
        given = (self._X.columns, self._W.at) if self._X.sparse else (None, self._back)
        l1, sweeps = self._penalties.l1_H, self._sweeps[1]
        violation = native.descend(
            self._B.at, *given, self._of_W, order, l1, sweeps, None, self._of_B, self._threads
        )
        self._penalise(self._of_B, self._penalties.l2_W)
        return violation

    @staticmethod
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
    cyclic = np.arange(W.k, dtype=np.intp)
    sweeps = _sweeps(X, W.k) if repeated else (1, 1)
    solver = Descent(X, W, B, penalties, rule.update_H, sweeps)
    turns = (solver.turn_W, solver.turn_H) if rule.update_H else (solver.turn_W,)
    first = 0.0
    for n_iter in range(1, rule.max_iter + 1):
        with rule.task.subtask("iteration") as step:
            violation = 0.0
            for turn in turns:
                order = cyclic if rng is None else rng.permutation(W.k)
                violation += turn(order.astype(np.intp, copy=False))
            step.attributes = lambda: fitted(B)
        if n_iter == 1:
            first = violation
        if first == 0 or step.stop:
            break
        if rule.verbose:
            print("violation:", violation / first)
        if violation / first <= rule.tol:
            if rule.verbose:
                print("Converged at iteration", n_iter + 1)
            break
    return n_iter


def _sweeps(X: Data, k: int) -> tuple[int, int]:
    """So many sweeps for W and for H cost half of what comes before them."""
    n, d = X.shape
    entries = X.X.nnz if X.sparse else n * d
    before = 1 + (entries + d * k) / (n * k), 1 + (entries + n * k) / (d * k)
    return 1 + int(before[0] / 2), 1 + int(before[1] / 2)
