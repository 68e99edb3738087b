"""Non-negative matrix factorisation by multiplicative updates, for any beta-divergence."""

import time
from typing import Any, NamedTuple

import numpy as np

from fastml._native import nmf as native
from fastml._native.rows import Rows
from fastml._runtime.threads import n_threads
from fastml.decomposition._descent import Penalties, Rule
from fastml.decomposition._factors import Data, Factor, error, fitted, product

LOSSES = {"frobenius": 2, "kullback-leibler": 1, "itakura-saito": 0}


class Memory(NamedTuple):
    """What numerators and denominators were in earlier batches, which counts for rho of them."""

    numerator: np.ndarray
    denominator: np.ndarray
    rho: float


NO_MEMORY = (None, None, 0.0)


class Made(NamedTuple):
    """What W, and X, make for the update of H; what it does not need is None."""

    numerator: np.ndarray | None
    denominator: np.ndarray | None
    summary: np.ndarray | None


def summary(F: Factor, beta: float) -> np.ndarray | None:
    """What the other factor's update takes for its denominator: the gram, the sums, or nothing."""
    if beta == 2:
        return F.gram().ravel()
    return F.at.sum(axis=0) if beta == 1 else None


class Multiplication:
    """Updates for one loss, with H the transpose of B."""

    def __init__(self, beta: float, penalties: Penalties) -> None:
        self.beta = beta
        gamma = 1.0 / (2.0 - beta) if beta < 1 else 1.0 / max(beta - 1.0, 1.0)
        # As in scikit-learn, where tiny values would have large powers they are zero.
        self._how_W = float(beta), penalties.l1_W, penalties.l2_W, gamma, beta < 1
        self._how_H = float(beta), penalties.l1_H, penalties.l2_H, gamma, beta <= 1
        self._threads = n_threads()

    def update_W(
        self, X: Data, W: np.ndarray, B: Factor, of_B: Any, *, update: bool = True, back: bool
    ) -> Made:
        """Update W, unless it is only to be used; make what H needs if it comes `back`."""
        return self._multiply(X.rows, W, B.at, B.k, of_B, self._how_W, update, back, NO_MEMORY)

    def update_W_from(self, numerator: np.ndarray, W: Factor, of_B: np.ndarray) -> None:
        """Update W for the squared loss, when X·B is known."""
        denominator = product(Rows(W.at), of_B.reshape(W.at.shape[1], -1))
        self._multiply_given(W, numerator, denominator.ravel(), self._how_W, NO_MEMORY)

    def update_H(
        self, X: Data, W: np.ndarray, B: Factor, made: Made, memory: Any = NO_MEMORY
    ) -> np.ndarray | None:
        """Update H from what W made; return its summary."""
        of_W = made.summary
        if self.beta == 1:
            of_W = np.where(of_W == 0, of_W.dtype.type(1), of_W)
        if X.sparse:
            made = self._multiply(X.columns, B.at, W, B.k, of_W, self._how_H, True, False, memory)
            return made.summary
        if self.beta == 2:
            denominator = product(Rows(B.at), of_W.reshape(W.shape[1], -1)).ravel()
        else:
            denominator = of_W if self.beta == 1 else made.denominator.ravel()
        return self._multiply_given(B, made.numerator, denominator, self._how_H, memory)

    def _multiply(self, rows, W, B, k, of_B, how, update, back, memory) -> Made:
        num, den = (np.empty_like(B) if back else None for _ in range(2))
        den = None if self.beta in (1, 2) else den
        gram, sums = self._empty_summary(W)
        native.multiply(
            W, rows, B, of_B, k, how, update, *memory, num, den, gram, sums, self._threads
        )
        return Made(num, den, sums if gram is None else gram.ravel())

    def _multiply_given(self, F, num, den, how, memory) -> np.ndarray | None:
        gram, sums = self._empty_summary(F.at)
        native.multiply_given(F.at, num, den, F.k, how, *memory, gram, sums, self._threads)
        return sums if gram is None else gram.ravel()

    def _empty_summary(self, F: np.ndarray) -> tuple:
        ld = F.shape[1]
        gram = np.empty((ld, ld), F.dtype) if self.beta == 2 else None
        return gram, np.empty(ld, F.dtype) if self.beta == 1 else None


def multiply(X: Data, W: Factor, B: Factor, beta: float, penalties: Penalties, rule: Rule) -> int:
    """Update W and H, the transpose of B; return the number of iterations."""
    start = time.time()
    solver = Multiplication(beta, penalties)
    of_B = summary(B, beta)
    fixed = product(X.rows, B.at) if beta == 2 and not rule.update_H else None
    at_first = before = error(X, W, B, beta) if rule.tol > 0 else 0.0
    for n_iter in range(1, rule.max_iter + 1):
        with rule.task.subtask("iteration") as step:
            if fixed is not None:
                solver.update_W_from(fixed, W, of_B)
            else:
                back = rule.update_H and not X.sparse
                made = solver.update_W(X, W.at, B, of_B, back=back)
                of_B = solver.update_H(X, W.at, B, made) if rule.update_H else of_B
            step.attributes = lambda: fitted(B)
        if step.stop:
            break
        if rule.tol > 0 and n_iter % 10 == 0:
            now = error(X, W, B, beta)
            if rule.verbose:
                seconds = time.time() - start
                print(f"Epoch {n_iter:02d} reached after {seconds:.3f} seconds, error: {now:f}")
            if (before - now) / at_first < rule.tol:
                break
            before = now
    if rule.verbose and (rule.tol == 0 or n_iter % 10 != 0):
        print(f"Epoch {n_iter:02d} reached after {time.time() - start:.3f} seconds.")
    return n_iter
