"""Losses of a target y and a score f, their sums over rows, and regularisers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from fastml.jit._elements import elements
from fastml.kernel_logistic._loss import OneScore

Values = tuple[np.ndarray, np.ndarray, np.ndarray]  # of the loss, its first and second derivative
SMOOTHED = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)  # widths of a corner that is rounded off, one by one


class Corners(NamedTuple):
    """max over s in [low, high] of s e - epsilon |s| - width s² / 2, e = y - f, or 1 - y f.

    With a width it is quadratic about its corners; the width of one that has none is 0.
    """

    low: float
    high: float
    epsilon: float = 0.0
    width: float = 0.0
    margin: bool = False

    def at(self, y: np.ndarray, f: np.ndarray) -> Values:
        e, slope = (1 - y * f, -y) if self.margin else (y - f, -np.ones_like(y))
        inner = np.sign(e) * np.maximum(abs(e) - self.epsilon, 0) / self.width
        s = np.clip(inner, self.low, self.high)
        bends = (s == inner) & (inner != 0 if self.epsilon else (self.low < s) & (s < self.high))
        value = s * e - self.epsilon * abs(s) - self.width * s**2 / 2
        return value, s * slope, bends * slope**2 / self.width

    def error(self) -> float:
        """The most that the width takes from a loss."""
        return self.width * max(self.low**2, self.high**2) / 2


def _log(y: np.ndarray, f: np.ndarray) -> Values:
    p = expit(-y * f)
    return np.logaddexp(0, -y * f), -y * p, y**2 * p * (1 - p)


def _exponential(y: np.ndarray, f: np.ndarray) -> Values:
    value = np.exp(-y * f)
    return value, -y * value, y**2 * value


def _poisson(y: np.ndarray, f: np.ndarray) -> Values:
    mean = np.exp(f)
    return mean - y * f, mean - y, mean


def _sigmoid(y: np.ndarray, f: np.ndarray) -> Values:
    p = expit(-y * f)
    return p, -y * p * (1 - p), y**2 * p * (1 - p) * (1 - 2 * p)


SMOOTH = {"log": _log, "exponential": _exponential, "poisson": _poisson, "sigmoid": _sigmoid}
SIGNS = ("hinge", "squared_hinge", "log", "exponential", "sigmoid")  # of targets -1 and 1
NAMES = (
    *("squared", "absolute", "huber", "quantile", "epsilon_insensitive"),
    *("squared_epsilon_insensitive", "hinge", "squared_hinge"),
    *SMOOTH,
)


def named(name: str, *, delta: float, quantile: float, epsilon: float) -> Any:
    """A function of targets and scores to values and derivatives, or `Corners`."""
    inf = np.inf
    corners = {
        "squared": Corners(-inf, inf, width=1.0),
        "absolute": Corners(-1.0, 1.0),
        "huber": Corners(-delta, delta, width=1.0),
        "quantile": Corners(quantile - 1, quantile),
        "epsilon_insensitive": Corners(-1.0, 1.0, epsilon),
        "squared_epsilon_insensitive": Corners(-inf, inf, epsilon, 1.0),
        "hinge": Corners(0.0, 1.0, margin=True),
        "squared_hinge": Corners(0.0, inf, width=1.0, margin=True),
    }
    return SMOOTH.get(name) or corners[name]


def of_user(loss: Any) -> Callable[[np.ndarray, np.ndarray], Values]:
    """Functions of two numbers: the loss, and its derivative by the score or a difference."""
    value, slope = loss if isinstance(loss, tuple) else (loss, None)

    def at(y: np.ndarray, f: np.ndarray) -> Values:
        values = elements(value, y, f)
        if slope is not None:
            return values, elements(slope, y, f), np.zeros_like(y)
        h = np.cbrt(np.finfo(float).eps) * np.maximum(abs(f), 1)
        above, below = f + h, f - h
        change = elements(value, y, above) - elements(value, y, below)
        return values, change / (above - below), np.zeros_like(y)

    return at


class Risk:
    """The sum over rows of w times the loss, in the form in which Newton's method has it."""

    def __init__(
        self, at: Callable[[np.ndarray, np.ndarray], Values], y: np.ndarray, w: np.ndarray
    ):
        self._at, self._y, self.Y, self.w = at, y, y[:, None], w[:, None]

    def value(self, F: np.ndarray) -> float:
        with np.errstate(over="ignore", invalid="ignore"):
            return float(self.w[:, 0] @ self._at(self._y, F[:, 0])[0])

    def at(self, F: np.ndarray) -> Slope:
        with np.errstate(over="ignore", invalid="ignore"):
            _, first, second = self._at(self._y, F[:, 0])
        return Slope(self.w * first[:, None], self.w * second[:, None])

    def best_intercept(self, KB: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Of a convex loss: where the derivative, which grows, changes its sign."""

        def slope(c: float) -> float:
            return float(self.at(KB + c).residual.sum())

        low = high = float(b[0])
        step = 1.0
        while slope(low) > 0 and step < 1e15:
            low, step = low - step, 2 * step
        step = 1.0
        while slope(high) < 0 and step < 1e15:
            high, step = high + step, 2 * step
        for _ in range(100):
            middle = (low + high) / 2
            if not low < middle < high:
                break
            low, high = (middle, high) if slope(middle) < 0 else (low, middle)
        return np.array([(low + high) / 2])


class Slope(OneScore):
    """Derivatives by the scores (n, 1), weighted."""

    def __init__(self, residual: np.ndarray, second: np.ndarray) -> None:
        self.residual, self._second = residual, second

    def weight(self) -> np.ndarray:
        return self._second

    def curvature(self, V: np.ndarray) -> float:
        return float((self._second * V**2).sum())


class Regulariser(NamedTuple):
    """R(t), not decreasing, and its derivative."""

    value: Callable[[float], float]
    slope: Callable[[float], float]


def regulariser(given: Any) -> Regulariser:
    if given == "squared":
        return Regulariser(lambda t: t * t / 2, lambda t: t)
    if given == "norm":
        return Regulariser(lambda t: t, lambda t: 1.0)
    if isinstance(given, tuple):
        return Regulariser(*given)

    def slope(t: float) -> float:
        h = 6e-6 * max(t, 1.0)
        low = max(t - h, 0.0)
        return (given(t + h) - given(low)) / (t + h - low)

    return Regulariser(given, slope)
