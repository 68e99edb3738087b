"""Outliers by their local density."""

from sklearn import neighbors as stock

from fastml._runtime.dispatch import accelerated
from fastml._runtime.docs import documented_by
from fastml._runtime.versioned import Versioned
from fastml.neighbors._base import KNeighbors
from fastml.neighbors._kernels import with_kernels

StockLocalOutlierFactor = stock.LocalOutlierFactor


@documented_by(StockLocalOutlierFactor)
class LocalOutlierFactor(Versioned, KNeighbors, StockLocalOutlierFactor):
    """Unsupervised Outlier Detection using the Local Outlier Factor (LOF), compiled.

    Examples
    --------
    >>> from fastml.neighbors import LocalOutlierFactor
    >>> LocalOutlierFactor(n_neighbors=2).fit_predict([[-1.1], [0.2], [101.1], [0.3]])
    array([ 1,  1, -1,  1])
    """

    _parameter_constraints = with_kernels(StockLocalOutlierFactor._parameter_constraints)

    @documented_by(StockLocalOutlierFactor.fit)
    @accelerated
    def fit(self, X, y=None):
        """Estimate how dense it is around each row of `X`."""
        return super().fit(X)
