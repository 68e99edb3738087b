"""The logistic loss of scores: one column for two classes, one a class for more."""

import numpy as np
from scipy.special import expit, softmax


class Loss:
    """Σ w ℓ over rows; `Y` (n, k) is what probabilities should be, w (n,) includes C."""

    def __init__(self, Y: np.ndarray, w: np.ndarray) -> None:
        self.Y, self.w = Y, w[:, None]
        self.binary = Y.shape[1] == 1

    def value(self, F: np.ndarray) -> float:
        if self.binary:
            return float((self.w * np.logaddexp(0, np.where(self.Y > 0, -F, F))).sum())
        top = F.max(axis=1, keepdims=True)
        total = np.log(np.exp(F - top).sum(axis=1)) + top[:, 0]
        return float(self.w[:, 0] @ (total - (self.Y * F).sum(axis=1)))

    def at(self, F: np.ndarray) -> "Slope":
        return Slope(self, expit(F) if self.binary else softmax(F, axis=1))

    def best_intercept(self, KB: np.ndarray, b: np.ndarray) -> np.ndarray:
        """The intercepts with the least loss, by Newton's method with halved steps."""
        total = self.w.sum()
        value = self.value(KB + b)
        for _ in range(50):
            slope = self.at(KB + b)
            gradient = slope.residual.sum(axis=0)
            if np.abs(gradient).max() <= 1e-14 * total:
                break
            # Classes of more than two share a constant that does not matter.
            hessian = slope.curvature_of_constants()
            step = -np.linalg.lstsq(hessian, gradient, rcond=1e-13)[0]
            for _ in range(40):
                found = self.value(KB + b + step)
                if found <= value:
                    break
                step /= 2
            if not found < value:
                break
            b, value = b + step, found
        return b


class OneScore:
    """A Hessian H = E Eᵀ that is diagonal, as every row has one score: `weight`."""

    def weight(self) -> np.ndarray:
        raise NotImplementedError

    def entry(self, a: int, b: int) -> np.ndarray:
        """Of each row's block of H, what is at (a, b)."""
        return self.weight()[:, 0]

    def spread(self, V: np.ndarray) -> np.ndarray:
        """E V."""
        return np.sqrt(self.weight()) * V

    def gather(self, V: np.ndarray) -> np.ndarray:
        """Eᵀ V."""
        return np.sqrt(self.weight()) * V


class Slope(OneScore):
    """Derivatives where probabilities are P (n, k)."""

    def __init__(self, loss: Loss, P: np.ndarray) -> None:
        self.binary, self.w, self.P = loss.binary, loss.w, P
        self.residual = loss.w * (P - loss.Y)

    def weight(self) -> np.ndarray:
        """The diagonal of the Hessian, which for two classes is all of it."""
        return self.w * self.P * (1 - self.P)

    def entry(self, a: int, b: int) -> np.ndarray:
        if self.binary:
            return super().entry(a, b)
        return self.weight()[:, a] if a == b else -self.w[:, 0] * self.P[:, a] * self.P[:, b]

    def spread(self, V: np.ndarray) -> np.ndarray:
        if self.binary:
            return super().spread(V)
        # E_i = √w_i (diag √p - p √pᵀ): with Σ p = 1, E_i E_iᵀ is H_i.
        root = np.sqrt(self.P)
        return np.sqrt(self.w) * (root * V - self.P * (root * V).sum(axis=1, keepdims=True))

    def gather(self, V: np.ndarray) -> np.ndarray:
        if self.binary:
            return super().gather(V)
        mean = (self.P * V).sum(axis=1, keepdims=True)
        return np.sqrt(self.w * self.P) * (V - mean)

    def curvature(self, V: np.ndarray) -> float:
        """Σ v_iᵀ H_i v_i over rows, H_i = w_i (diag p - p pᵀ)."""
        if self.binary:
            return float((self.weight() * V**2).sum())
        mean = (self.P * V).sum(axis=1, keepdims=True)
        return float((self.w * self.P * (V - mean) ** 2).sum())

    def curvature_of_constants(self) -> np.ndarray:
        """Σ H_i (k, k)."""
        if self.binary:
            return np.atleast_2d(self.weight().sum())
        weighted = self.w * self.P
        return np.diag(weighted.sum(axis=0)) - weighted.T @ self.P
