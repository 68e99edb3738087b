"""Logistic regression in the span of a kernel: scores F = K beta + b.

The objective J = Σ w ℓ(F) + tr(betaᵀ K beta) / 2 has the functional gradient G = beta + R, R the
residuals w (P - Y). With b at its best, and so the columns of R summing to zero, -R is feasible
in the dual, and the duality gap is tr(Gᵀ K G) / 2.
"""

from typing import Any, NamedTuple

import numpy as np

from fastml._runtime.callbacks import Task

MOST_STEPS = 200  # of conjugate gradients in one step of Newton's


class Model(NamedTuple):
    beta: np.ndarray
    b: np.ndarray
    KB: np.ndarray  # K beta
    objective: float
    gap: float
    n_iter: int


class Direction(NamedTuple):
    beta: np.ndarray
    b: np.ndarray
    KB: np.ndarray


def nothing(shape: tuple[int, ...]) -> Model:
    """The function that is zero."""
    beta = np.zeros(shape)
    return Model(beta, np.zeros(shape[1]), beta.copy(), np.inf, np.inf, 0)


def newton_direction(
    gram: Any,
    precondition: Any,
    slope: Any,
    G: np.ndarray,
    KG: np.ndarray,
    constant: float,
    tol: float,
) -> Direction:
    """Δ with (1 + H K') Δ = -G, K' = K + constant, and the intercept that goes with it.

    Δ = -G + E y with (1 + Eᵀ K' E) y = Eᵀ K' G, E Eᵀ = H: diagonal for two classes, which have one
    score, else a small block for each row. It is solved by conjugate gradients, for two classes
    once exactly preconditioned and otherwise nearly. The constant in K', large, stands for the
    intercepts: Δb is the constant times the sum of Δ.
    """
    precondition.prepare(slope, constant)
    R = slope.gather(KG)  # G sums to zero
    P, before = np.zeros_like(R), np.inf
    Ey, KEy = np.zeros_like(R), np.zeros_like(R)
    # What is gained by the direction, twice: it falls to Gᵀ K (1 + H K)⁻¹ G as y becomes exact.
    gain, goal = float((G * KG).sum()), 1e-6 * float(np.linalg.norm(R))
    for _ in range(MOST_STEPS):
        if np.linalg.norm(R) <= goal:
            break
        Z = precondition(R)
        rho = float((R * Z).sum())  # about as much is still missing from y
        if not rho > tol * gain:
            break
        P = Z + (rho / before) * P
        before = rho
        EP = slope.spread(P)
        KEP = gram.product(EP)
        BP = P + slope.gather(KEP + constant * EP.sum(axis=0))
        length = rho / float((P * BP).sum())
        R -= length * BP
        Ey += length * EP
        KEy += length * KEP
        gain -= length * rho
    return Direction(Ey - G, constant * Ey.sum(axis=0), KEy - KG)


def line_search(loss: Any, model: Model, towards: Direction, first: float | None) -> float:
    """How far to go: the root of a derivative that increases, to a tenth of where it starts."""
    F, dF = model.KB + model.b, towards.KB + towards.b
    quadratic = float((towards.beta * towards.KB).sum())
    linear = float((towards.beta * model.KB).sum())

    def derivative(t: float) -> tuple[float, float]:
        slope = loss.at(F + t * dF)
        first = float((slope.residual * dF).sum()) + linear + t * quadratic
        return first, slope.curvature(dF) + quadratic

    start, curvature = derivative(0.0)
    if not (start < 0 < curvature):
        return 0.0
    low, high = 0.0, np.inf
    t = -start / curvature if first is None else first
    for _ in range(30):
        here, curvature = derivative(t)
        if abs(here) <= 0.1 * abs(start):
            return t
        low, high = (t, high) if here < 0 else (low, t)
        step = t - here / curvature if curvature > 0 else np.inf
        t = step if low < step < high else (low + high) / 2 if high < np.inf else 2 * t
    return low


def fit(
    gram: Any,
    loss: Any,
    *,
    precondition: Any,
    intercept: bool,
    tol: float,
    max_iter: int,
    task: Task,
    attributes: Any,
    start: Model | None = None,
) -> Model:
    """Newton's method; without a preconditioner, conjugate gradients in the space of functions."""
    model = start or nothing(loss.Y.shape)
    # Of the sum of beta over rows, which intercepts keep at zero.
    K1 = gram.product(np.ones((gram.n, 1))) if intercept else None
    before: tuple[np.ndarray, float] | None = None
    d: Direction | None = None
    for i in range(max_iter + 1):
        if intercept:
            model = model._replace(b=loss.best_intercept(model.KB, model.b))
        slope = loss.at(model.KB + model.b)
        G = model.beta + slope.residual
        KG = gram.product(G)
        gap = float((G * KG).sum()) / 2
        norm = float((model.beta * model.KB).sum())
        objective = loss.value(model.KB + model.b) + norm / 2
        if gap < -max(tol, 1e-6) * abs(objective):
            raise ValueError("The kernel is not positive definite.")
        gap = max(gap, 0.0)
        model = model._replace(objective=objective, gap=gap, n_iter=i)
        if gap <= tol * objective or i == max_iter:
            break
        with task.subtask("iteration") as step:
            if precondition is not None:
                constant = _constant(gram, loss, slope) if intercept else 0.0
                precision = min(0.1, np.sqrt(gap / objective))
                d = newton_direction(gram, precondition, slope, G, KG, constant, precision)
            else:
                d = _conjugate(d, before, G, KG)
                before = G, float((G * KG).sum())
            if K1 is not None:
                mean = d.beta.mean(axis=0)
                d = d._replace(beta=d.beta - mean, KB=d.KB - K1 * mean)
            t = line_search(loss, model, d, None if precondition is None else 1.0)
            model = model._replace(
                beta=model.beta + t * d.beta, b=model.b + t * d.b, KB=model.KB + t * d.KB
            )
            step.attributes = lambda m=model: attributes(m)
        if step.stop or t == 0:
            break
    return model


def _constant(gram: Any, loss: Any, slope: Any) -> float:
    """Large beside the kernel and beside what the data tell of the intercepts."""
    known = float(slope.weight().sum())
    return 1e3 * max(float(np.mean(gram.diagonal)), 1 / max(known, 1e-300))


def _conjugate(d: Direction | None, before: Any, G: np.ndarray, KG: np.ndarray) -> Direction:
    """Away from the gradient, conjugate in the kernel's metric (Polak and Ribière)."""
    none = np.zeros(G.shape[1])
    if d is None:
        return Direction(-G, none, -KG)
    old, square = before
    again = max(0.0, float(((G - old) * KG).sum()) / square)
    if again * float((d.beta * KG).sum()) >= float((G * KG).sum()):
        again = 0.0  # it would lead upwards
    return Direction(again * d.beta - G, none, again * d.KB - KG)
