"""What factorisations start from: random numbers, or non-negative double singular vectors."""

import warnings
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from fastml._native import nmf as native
from fastml._native.rows import Rows as NativeRows
from fastml._runtime.threads import n_threads
from fastml.linalg._svd import Rows, randomized_svd


class Start:
    """Factors to start from as scikit-learn's, from passes over X and a decomposition of ours."""

    def _check_w_h(self: Any, X, W, H, update_H):
        k = X.shape[1] if self._n_components == "auto" else self._n_components
        random = self.init == "random" or (self.init is None and k > min(X.shape))
        if not update_H or self.init == "custom" or (k > min(X.shape) and not random):
            return super()._check_w_h(X, W, H, update_H)
        if W is not None or H is not None:
            warnings.warn(
                "When init!='custom', provided W or H are ignored. Set  init='custom' to use them "
                "as initialization.",
                RuntimeWarning,
                stacklevel=2,
            )
        self._n_components = k
        least, total = survey(X)
        if least < 0:
            raise ValueError("Negative values in data passed to NMF initialization.")
        mean = X.dtype.type(total / np.prod(X.shape))
        if random:
            return random_start(X, k, mean, self.random_state)
        return nndsvd(X, k, self.init or "nndsvda", mean, self.random_state)


def survey(X: Any) -> tuple[float, float]:
    """The least of the values that X stores, and their sum, which is finite if they all are."""
    return native.survey(NativeRows(X), n_threads())


def random_start(X: Any, k: int, mean: Any, random_state: Any) -> tuple[np.ndarray, np.ndarray]:
    """W and H of normal numbers without their signs, at the scale of X."""
    rng = check_random_state(random_state)
    H, W = (
        np.sqrt(mean / k) * rng.standard_normal(size=shape).astype(X.dtype, copy=False)
        for shape in ((k, X.shape[1]), (X.shape[0], k))
    )
    return np.abs(W, out=W), np.abs(H, out=H)


def nndsvd(
    X: Any, k: int, init: str, mean: Any, random_state: Any
) -> tuple[np.ndarray, np.ndarray]:
    """W and H from singular vectors (Boutsidis, 2008): the larger of a pair's parts of one sign.

    What is zero in them then stays zero ("nndsvd"), or becomes the mean of X ("nndsvda") or small
    and random ("nndsvdar").
    """
    U, s, Vt = randomized_svd(Rows(X), k, random_state=random_state)
    parts = []
    for sign in (1, -1):
        left, right = np.maximum(sign * U, 0), np.maximum(sign * Vt, 0)
        norms = _norms(left, 0), _norms(right, 1)
        size = norms[0] * norms[1]
        # Where there is nothing the scale does not matter.
        scale = np.sqrt(s * size) / np.where(size > 0, norms, 1)
        parts.append((size, left * scale[0], right * scale[1][:, np.newaxis]))
    (size, W, H), (other, W_other, H_other) = parts
    larger = size > other
    W = np.where(larger, W, W_other)
    H = np.where(larger[:, np.newaxis], H, H_other)
    # The first pair has no two signs.
    W[:, 0], H[0] = np.sqrt(s[0]) * np.abs(U[:, 0]), np.sqrt(s[0]) * np.abs(Vt[0])
    W[W < 1e-6] = 0
    H[H < 1e-6] = 0
    if init == "nndsvda":
        W[W == 0] = H[H == 0] = mean
    elif init == "nndsvdar":
        rng = check_random_state(random_state)
        for factor in (W, H):
            none = factor == 0
            factor[none] = abs(mean * rng.standard_normal(size=none.sum()) / 100)
    return W, H


def _norms(values: np.ndarray, axis: int) -> np.ndarray:
    return np.sqrt(np.sum(np.square(values), axis=axis))
