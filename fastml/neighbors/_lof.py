"""Outliers by their local density."""

from sklearn import neighbors as stock
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from fastml._runtime.dispatch import accelerated
from fastml._runtime.docs import documented_by
from fastml._runtime.objects import takes_objects
from fastml._runtime.versioned import Versioned
from fastml.neighbors._base import KNeighbors
from fastml.neighbors._kernels import with_kernels

StockLocalOutlierFactor = stock.LocalOutlierFactor


def _novelty(model):
    return model._check_novelty_score_samples()


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

    @documented_by(StockLocalOutlierFactor.score_samples)
    @available_if(_novelty)
    def score_samples(self, X):
        """How normal new rows are: less so than those of the fit if lower than about -1."""
        if not takes_objects(self.metric):
            return super().score_samples(X)
        check_is_fitted(self)
        distances, rows = self.kneighbors(X, n_neighbors=self.n_neighbors_)
        density = self._local_reachability_density(distances, rows)
        return -(self._lrd[rows] / density[:, None]).mean(axis=1)
