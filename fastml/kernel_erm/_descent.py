"""Descent in a kernel's space, along the functional gradient, for any loss and regulariser.

The score of row i is (K beta)_i + b. By the representer theorem no other function can be better,
and the functional gradient of J = Σ w ℓ + alpha R(|f|) has the expansion w ℓ' + alpha R'(t) / t
beta, t = |f|. Limited memory BFGS takes inner products in the kernel's space, so that it does not
depend on how the kernel is conditioned, and needs one product with K a step: those of directions
follow from those of gradients. A line search needs none.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fastml._runtime.callbacks import Task
from fastml.kernel_erm._losses import Regulariser, Risk
from fastml.kernel_logistic._newton import Model

MEMORY = 20


class Element(NamedTuple):
    """A function of the kernel's space, and a constant."""

    beta: np.ndarray
    KB: np.ndarray
    b: float

    def plus(self, t: float, other: Element) -> Element:
        return Element(self.beta + t * other.beta, self.KB + t * other.KB, self.b + t * other.b)

    def times(self, t: float) -> Element:
        return Element(t * self.beta, t * self.KB, t * self.b)


class Space:
    """Inner products, in which the constant 1 has the square norm `unit`."""

    def __init__(self, unit: float) -> None:
        self.unit = unit

    def dot(self, u: Element, v: Element) -> float:
        return float(u.beta @ v.KB) + self.unit * u.b * v.b

    def direction(self, G: Element, memory: deque) -> Element:
        """Minus the inverse Hessian times G, by the two loops of limited memory BFGS."""
        q, factors = G, []
        for s, y, rho in reversed(memory):
            a = rho * self.dot(s, q)
            factors.append(a)
            q = q.plus(-a, y)
        if memory:
            s, y, rho = memory[-1]
            q = q.times(1 / (rho * self.dot(y, y)))
        for (s, y, rho), a in zip(memory, reversed(factors), strict=True):
            q = q.plus(a - rho * self.dot(y, q), s)
        return q.times(-1.0)


class Objective:
    """J and its functional gradient."""

    def __init__(
        self, gram: Any, risk: Risk, R: Regulariser, alpha: float, intercept: bool, unit: float
    ) -> None:
        self.gram, self.risk, self.R, self.alpha = gram, risk, R, alpha
        self.intercept, self.unit = intercept, unit

    def value(self, f: Element) -> float:
        norm = np.sqrt(max(float(f.beta @ f.KB), 0.0))
        return self.risk.value(f.KB[:, None] + f.b) + self.alpha * float(self.R.value(norm))

    def gradient(self, f: Element) -> Element:
        residual = self.risk.at(f.KB[:, None] + f.b).residual[:, 0]
        square = float(f.beta @ f.KB)
        norm = np.sqrt(max(square, 0.0))
        pull = self.alpha * float(self.R.slope(norm))
        constant = float(residual.sum()) / self.unit if self.intercept else 0.0
        G = residual + pull / norm * f.beta if norm > 0 else residual
        KG = self.gram.product(G[:, None])[:, 0]
        if norm == 0 and pull > 0:  # the subgradient of least norm
            length = np.sqrt(max(float(G @ KG), 0.0))
            keep = max(0.0, 1 - pull / length) if length > 0 else 0.0
            G, KG = keep * G, keep * KG
        return Element(G, KG, constant)

    def along(self, f: Element, d: Element) -> Callable[[float], tuple[float, float]]:
        """J(f + t d) and its derivative as a function of t."""
        F, dF = f.KB + f.b, d.KB + d.b
        a, b, c = float(f.beta @ f.KB), float(d.beta @ f.KB), float(d.beta @ d.KB)

        def at(t: float) -> tuple[float, float]:
            scores = (F + t * dF)[:, None]
            norm = np.sqrt(max(a + 2 * t * b + t * t * c, 0.0))
            value = self.risk.value(scores) + self.alpha * float(self.R.value(norm))
            slope = float(self.risk.at(scores).residual[:, 0] @ dF)
            grows = (b + t * c) / norm if norm > 0 else np.sqrt(max(c, 0.0))
            return value, slope + self.alpha * float(self.R.slope(norm)) * grows

        return at


def line_search(at: Callable[[float], tuple[float, float]], start: float, slope: float) -> float:
    """A step after which J has fallen and its slope has flattened (the weak Wolfe conditions)."""
    low, high, t, best = 0.0, np.inf, 1.0, 0.0
    for _ in range(60):
        value, here = at(t)
        if not value <= start + 1e-4 * t * slope:
            high = t
        elif here < 0.9 * slope:
            low = best = t
        else:
            return t
        t = (low + high) / 2 if high < np.inf else 2 * low
    return best


def descend(
    objective: Objective,
    space: Space,
    start: Model,
    *,
    tol: float,
    max_iter: int,
    task: Task,
    attributes: Any,
) -> Model:
    """Until half the squared norm of the gradient is `tol` of the objective."""
    f = Element(start.beta[:, 0], start.KB[:, 0], float(start.b[0]))
    memory: deque = deque(maxlen=MEMORY)
    value, G = objective.value(f), objective.gradient(f)

    def model(i: int) -> Model:
        parts = f.beta[:, None], np.array([f.b]), f.KB[:, None]
        return Model(*parts, value, space.dot(G, G) / 2, i)

    for i in range(1, max_iter + 1):
        gap = space.dot(G, G) / 2
        if not gap > tol * abs(value):
            return model(i - 1)
        with task.subtask("iteration") as step:
            d = space.direction(G, memory)
            slope = space.dot(G, d)
            if not (memory and slope < 0):
                memory.clear()
                scale = min(1.0, abs(value) / gap)
                d, slope = G.times(-scale), -2 * gap * scale
            t = line_search(objective.along(f, d), value, slope)
            s, old = d.times(t), G
            if t > 0:
                f = f.plus(1.0, s)
                value, G = objective.value(f), objective.gradient(f)
            y = G.plus(-1.0, old)
            curvature = space.dot(s, y)
            stuck = t == 0 and not memory
            if t == 0:
                memory.clear()
            elif curvature > 1e-14 * np.sqrt(space.dot(s, s) * space.dot(y, y)):
                memory.append((s, y, 1 / curvature))
            step.attributes = lambda i=i: attributes(model(i))
        if step.stop or stuck:
            break
    return model(i)
