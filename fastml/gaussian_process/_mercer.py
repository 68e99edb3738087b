"""Whether a kernel is one: a Gram matrix looked at for what no Mercer kernel can have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import eigh
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils.validation import _num_samples

from fastml.jit import ScalarKernel
from fastml.metrics import pairwise


@dataclass(frozen=True, eq=False)
class MercerReport:
    """What `check_mercer` found; true if nothing speaks against the kernel.

    Attributes
    ----------
    holds : bool
        Whether the matrix is that of a Mercer kernel, as far as rounding lets one see.

    n : int
        How many objects were looked at.

    tolerance : float
        What is taken for rounding, in the units of the matrix.

    not_finite : tuple (i, j, value) or None
        A pair for which the kernel is NaN or infinite. Then nothing else is looked for.

    asymmetry : tuple (i, j, difference) or None
        The pair for which k(i, j) - k(j, i) is largest, if that is not rounding.

    negative_diagonal : tuple (i, value) or None
        The least k(i, i), if it is negative.

    too_large : tuple (i, j, value) or None
        A pair with k(i, j)² > k(i, i) k(j, j), against the inequality of Cauchy and Schwarz.

    margin : float
        The least eigenvalue of the (symmetric part of the) matrix.

    coefficients : ndarray of shape (n,)
        Its eigenvector α, of length 1: αᵀKα is the margin. If that is negative, no feature map has
        these products, since it would be the square of a length.
    """

    holds: bool
    n: int
    tolerance: float
    not_finite: tuple[int, int, float] | None
    asymmetry: tuple[int, int, float] | None
    negative_diagonal: tuple[int, float] | None
    too_large: tuple[int, int, float] | None
    margin: float
    coefficients: np.ndarray

    def __bool__(self) -> bool:
        return self.holds

    def __str__(self) -> str:
        if self.not_finite is not None:
            i, j, value = self.not_finite
            return f"Not a Mercer kernel: k({i}, {j}) = {value}."
        if self.holds:
            return (
                f"Mercer's condition holds on these {self.n} objects: the least eigenvalue is "
                f"{self.margin:.3g} (rounding: {self.tolerance:.1g})."
            )
        return "\n".join(["Not a Mercer kernel:", *self._reasons()])

    def _reasons(self) -> list[str]:
        reasons = []
        if self.asymmetry is not None:
            i, j, difference = self.asymmetry
            reasons.append(f"- not symmetric: k({i}, {j}) - k({j}, {i}) = {difference:.3g}")
        if self.negative_diagonal is not None:
            i, value = self.negative_diagonal
            reasons.append(f"- k({i}, {i}) = {value:.3g} is negative: the square of no length")
        if self.too_large is not None:
            i, j, value = self.too_large
            reasons.append(
                f"- k({i}, {j}) = {value:.3g} is more than √(k({i}, {i}) k({j}, {j})) in size"
            )
        if self.margin < -self.tolerance:
            largest = np.argsort(-abs(self.coefficients), kind="stable")[:5]
            terms = ", ".join(f"α[{i}] = {self.coefficients[i]:.3g}" for i in largest)
            dots = ", ..." if self.n > len(largest) else ""
            reasons.append(
                f"- negative eigenvalue {self.margin:.3g}: αᵀKα < 0 for {terms}{dots} "
                "(`coefficients`)"
            )
        return reasons


def check_mercer(kernel: Any, X: Any, *, tol: float | None = None, **params: Any) -> MercerReport:
    """Look at a kernel's Gram matrix for reasons why it is not a Mercer kernel.

    A Mercer kernel is an inner product of features: on any objects, its matrix is symmetric and
    has no negative eigenvalue. Finding nothing on these objects is no proof; what is found is one.

    Parameters
    ----------
    kernel : Kernel, str or callable
        A kernel object; the name of a kernel in `pairwise_kernels`, or "precomputed" for X as the
        matrix; a `fastml.jit.kernel`; or a function of two matrices.

    X : array-like of shape (n, d), or list of objects
        What to evaluate the kernel on. The time grows with the cube of n.

    tol : float, default=None
        How large an asymmetry or negative eigenvalue may be, beside the largest entry. By default
        n times the precision of the matrix.

    **params
        Parameters of the kernel, if it is a name or a callable.

    Returns
    -------
    MercerReport
        It can be printed, and tested for truth.

    Examples
    --------
    >>> import numpy as np
    >>> from fastml.gaussian_process.kernels import RBF, check_mercer
    >>> X = np.array([[0.0], [1.0], [2.0]])
    >>> print(check_mercer(RBF(), X))
    Mercer's condition holds on these 3 objects: the least eigenvalue is 0.207 (rounding: 7e-16).
    >>> print(check_mercer("sigmoid", X[:2], gamma=1.0, coef0=-1.0))
    Not a Mercer kernel:
    - k(0, 0) = -0.762 is negative: the square of no length
    - k(0, 1) = -0.762 is more than √(k(0, 0) k(1, 1)) in size
    - negative eigenvalue -1.23: αᵀKα < 0 for α[0] = 0.851, α[1] = 0.526 (`coefficients`)
    """
    if tol is not None and not tol >= 0:
        raise ValueError(f"tol={tol} must not be negative")
    if _num_samples(X) == 0:
        raise ValueError("X has no objects to evaluate the kernel on")
    K = np.asarray(_matrix(kernel, X, params))
    if K.ndim == 0 and callable(kernel):
        raise ValueError(
            "the kernel returned a number for two matrices: if it is a function of two vectors, "
            "decorate it with fastml.jit.kernel"
        )
    if K.ndim != 2 or K.shape[0] != K.shape[1] or K.size == 0:
        raise ValueError(f"the kernel returned an array of shape {K.shape}, not a square matrix")
    precision = np.finfo(K.dtype if K.dtype == np.float32 else np.float64).eps
    n = len(K)
    K = K.astype(np.float64)
    if not np.isfinite(K).all():
        i, j = np.argwhere(~np.isfinite(K))[0]
        bad = (int(i), int(j), float(K[i, j]))
        nothing = np.full(n, np.nan)
        return MercerReport(False, n, np.nan, bad, None, None, None, np.nan, nothing)
    tolerance = float((n * precision if tol is None else tol) * abs(K).max())
    return _look(K, tolerance)


def _matrix(kernel: Any, X: Any, params: dict[str, Any]) -> Any:
    if isinstance(kernel, str) and kernel == "precomputed":
        return X
    if isinstance(kernel, str):
        return pairwise.pairwise_kernels(X, metric=kernel, **params)
    if isinstance(kernel, Kernel):
        return kernel(X)
    if isinstance(kernel, ScalarKernel):
        # All pairs in both orders: what it declares is what is to be checked.
        kernel = ScalarKernel(kernel, symmetric=False)
    return kernel(X, X, **params)


def _look(K: np.ndarray, tolerance: float) -> MercerReport:
    def worst(excess: np.ndarray, value: np.ndarray) -> tuple[int, int, float] | None:
        i, j = sorted(map(int, np.unravel_index(np.argmax(excess), K.shape)))
        return (i, j, float(value[i, j])) if excess[i, j] > tolerance else None

    difference = K - K.T
    asymmetry = worst(abs(difference), difference)
    K = (K + K.T) / 2
    diagonal = np.diag(K)
    least = int(np.argmin(diagonal))
    negative = (least, float(diagonal[least])) if diagonal[least] < -tolerance else None
    length = np.sqrt(np.maximum(diagonal, 0))
    excess = abs(K) - length[:, None] * length
    np.fill_diagonal(excess, 0)
    too_large = worst(excess, K)
    values, vectors = eigh(K, subset_by_index=[0, 0])
    margin, alpha = float(values[0]), vectors[:, 0]
    alpha = alpha * np.sign(alpha[np.argmax(abs(alpha))])
    holds = asymmetry is None and negative is None and too_large is None and margin >= -tolerance
    return MercerReport(
        holds, len(K), tolerance, None, asymmetry, negative, too_large, margin, alpha
    )
