"""(K + alpha) c = y by products with K alone."""

import warnings
from collections.abc import Callable

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from fastml._runtime.callbacks import Task

Product = Callable[[np.ndarray], np.ndarray]


def descend(
    product: Product,
    Y: np.ndarray,
    alpha: np.ndarray,
    precondition: Callable[[np.ndarray, np.ndarray], np.ndarray],
    *,
    conjugate: bool,
    tol: float,
    max_iter: int,
    task: Task,
    attributes: Callable[[np.ndarray], dict],
) -> tuple[np.ndarray, int]:
    """C with (K + alpha_j) C_j = Y_j for every column j, and the number of products.

    Preconditioned conjugate gradients, or steepest descent. A column rests once its residual is
    below `tol` times Y's.
    """
    C, R = np.zeros_like(Y), Y.copy()
    goal = tol * np.linalg.norm(Y, axis=0)
    P, before = np.zeros_like(Y), np.ones(Y.shape[1])
    for i in range(max_iter):
        active = np.flatnonzero(np.linalg.norm(R, axis=0) > goal)
        if not len(active):
            return C, max(i, 1)
        with task.subtask("iteration") as step:
            Z = precondition(R[:, active], alpha[active])
            slope = (R[:, active] * Z).sum(axis=0)
            again = slope / before[active] if conjugate and i else 0.0
            P[:, active] = Z + again * P[:, active]
            before[active] = slope
            direction = P[:, active]
            KP = product(direction) + alpha[active] * direction
            curvature = (direction * KP).sum(axis=0)
            if not (curvature > 0).all():
                break  # the kernel is not positive definite, or alpha rounds to nothing
            length = (R[:, active] * direction).sum(axis=0) / curvature
            C[:, active] += length * direction
            R[:, active] -= length * KP
            step.attributes = lambda: attributes(C)
        if step.stop:
            return C, i + 1
    left = (np.linalg.norm(R, axis=0) / np.maximum(np.linalg.norm(Y, axis=0), 1e-300)).max()
    if left > tol:
        warnings.warn(
            f"The residual is {left:.2g} of the targets after {i + 1} iterations, above "
            f"tol={tol:g}. Increase max_iter or alpha, or use solver='cholesky'.",
            ConvergenceWarning,
            stacklevel=5,
        )
    return C, i + 1
