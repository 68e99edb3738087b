"""Random features of the kernels that scikit-learn has samplers for."""

from __future__ import annotations

import numpy as np
from sklearn import kernel_approximation as stock
from sklearn.utils.validation import check_is_fitted, validate_data

from fastml._runtime.dispatch import accelerated
from fastml._runtime.docs import documented_by
from fastml._runtime.versioned import Versioned
from fastml.kernel_approximation._cosines import cosine_features

StockRBFSampler, StockSkewedChi2Sampler = stock.RBFSampler, stock.SkewedChi2Sampler


@documented_by(StockRBFSampler)
class RBFSampler(Versioned, StockRBFSampler):
    """Random features of the Gaussian kernel, compiled.

    The same `random_state` draws the features that scikit-learn draws; `transform` multiplies and
    takes cosines in one pass, on all threads.

    Examples
    --------
    >>> from fastml.kernel_approximation import RBFSampler
    >>> sampler = RBFSampler(gamma=1, n_components=2000, random_state=0)
    >>> Z = sampler.fit_transform([[0.0, 0.0], [1.0, 0.0]])
    >>> (Z @ Z.T).round(1)  # exp(-1) is 0.37
    array([[1. , 0.4],
           [0.4, 1. ]])
    """

    @documented_by(StockRBFSampler.transform)
    @accelerated
    def transform(self, X):
        """Apply the feature map to `X`."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", reset=False)
        scale = (2.0 / self.n_components) ** 0.5
        return cosine_features(X, self.random_weights_, self.random_offset_, scale)


@documented_by(StockSkewedChi2Sampler)
class SkewedChi2Sampler(Versioned, StockSkewedChi2Sampler):
    """Random features of the skewed chi-squared kernel, compiled.

    The same `random_state` draws the features that scikit-learn draws; `transform` multiplies and
    takes cosines in one pass, on all threads.

    Examples
    --------
    >>> from fastml.kernel_approximation import SkewedChi2Sampler
    >>> sampler = SkewedChi2Sampler(skewedness=0.1, n_components=50, random_state=0)
    >>> sampler.fit_transform([[0.0, 1.0], [1.0, 0.0]]).shape
    (2, 50)
    """

    @documented_by(StockSkewedChi2Sampler.transform)
    @accelerated
    def transform(self, X):
        """Apply the feature map to `X`."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        if (-self.skewedness >= X).any():
            raise ValueError("X may not contain entries smaller than -skewedness.")
        scale = np.sqrt(2.0) / np.sqrt(self.n_components)
        logarithms = X + X.dtype.type(self.skewedness)
        np.log(logarithms, out=logarithms)
        return cosine_features(logarithms, self.random_weights_, self.random_offset_, scale)
