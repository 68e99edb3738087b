"""Random features of polynomial kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.fft import irfft, rfft
from scipy.sparse import csr_matrix, issparse
from sklearn import kernel_approximation as stock
from sklearn.utils.validation import check_is_fitted, validate_data

from fastml._native.projection import project, project_sparse
from fastml._native.rows import Rows
from fastml._runtime.beside import beside
from fastml._runtime.dispatch import accelerated
from fastml._runtime.docs import documented_by
from fastml._runtime.sparse import with_short_indices
from fastml._runtime.threads import n_threads
from fastml._runtime.versioned import Versioned

StockPolynomialCountSketch = stock.PolynomialCountSketch

BLOCK = 1 << 18  # numbers that are sketched at once, so that transforms find them in the cache


@documented_by(StockPolynomialCountSketch)
class PolynomialCountSketch(Versioned, StockPolynomialCountSketch):
    """Random features of polynomial kernels, compiled.

    The same `random_state` draws the hashes that scikit-learn draws. Sketches are products with a
    sparse matrix, made on all threads, and their transforms are those of real numbers.

    Examples
    --------
    >>> from fastml.kernel_approximation import PolynomialCountSketch
    >>> sketch = PolynomialCountSketch(n_components=2000, random_state=0)
    >>> Z = sketch.fit_transform([[1.0, 0.0], [1.0, 2.0]])
    >>> (Z @ Z.T).round()
    array([[ 1.,  1.],
           [ 1., 25.]])
    """

    @documented_by(StockPolynomialCountSketch.transform)
    @accelerated
    def transform(self, X):
        """Apply the feature map to `X`."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", reset=False)
        hashes = (self.indexHash_, self.bitHash_)
        if X.shape[1] + (self.coef0 != 0) != self.indexHash_.shape[1]:
            raise ValueError(
                "Number of features of test samples does not match that of training samples."
            )
        stamp = (self.coef0, self.n_components)
        H, Ht, constant = beside(self, hashes, lambda: _matrix(self, X.shape[1]), stamp)
        # Entries of H are signs alone, so that products are exact and sums scikit-learn's.
        X = np.sqrt(self.gamma) * X.astype(np.float64, copy=False)
        X = with_short_indices(X) if issparse(X) else np.ascontiguousarray(X)
        m, degree = self.n_components, len(self.indexHash_)
        out, rows = np.empty((X.shape[0], m)), max(1, BLOCK // (degree * m))
        for i in range(0, X.shape[0], rows):
            part = X[i : i + rows]
            sketches = np.empty((part.shape[0], degree * m))
            if issparse(X):
                project_sparse(Rows(part), Rows(H), sketches, n_threads())
            else:
                project(Rows(part), Rows(Ht), False, sketches, n_threads())
            sketches += constant
            out[i : i + rows] = _convolved(sketches.reshape(-1, degree, m))
        return out


def _matrix(model: Any, d: int) -> tuple[Any, Any, np.ndarray]:
    """What rows are multiplied by for all their sketches, its transpose, and what is added."""
    index, m = np.asarray(model.indexHash_), model.n_components
    if index.min() < 0 or index.max() >= m:
        raise ValueError("indexHash_ has entries that are not in [0, n_components)")
    columns = (index + m * np.arange(len(index))[:, None]).T
    signs = np.asarray(model.bitHash_, dtype=np.float64).T
    constant = np.zeros(len(index) * m)
    if model.coef0 != 0:
        constant[columns[d]] = signs[d] * np.sqrt(model.coef0)
    starts = np.arange(d + 1, dtype=np.int32) * len(index)
    entries = signs[:d].ravel(), columns[:d].ravel().astype(np.int32)
    H = csr_matrix((*entries, starts), shape=(d, len(constant)))
    return H, H.T.tocsr(), constant


def _convolved(sketches: np.ndarray) -> np.ndarray:
    """The circular convolution of the sketches of each row, (n, degree, m) to (n, m)."""
    _, degree, m = sketches.shape
    if degree == 1:
        return sketches[:, 0]
    spectra = rfft(sketches, axis=2, workers=n_threads(), overwrite_x=True)
    return irfft(spectra.prod(axis=1), m, workers=n_threads(), overwrite_x=True)
