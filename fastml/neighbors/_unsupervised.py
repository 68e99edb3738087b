"""Searching for neighbours."""

from sklearn import neighbors as stock

from fastml._runtime.callbacks import fit_context
from fastml._runtime.dispatch import accelerated
from fastml._runtime.docs import documented_by
from fastml._runtime.versioned import Versioned
from fastml.neighbors._base import KNeighbors, RadiusNeighbors
from fastml.neighbors._kernels import with_kernels

StockNearestNeighbors = stock.NearestNeighbors


@documented_by(StockNearestNeighbors)
class NearestNeighbors(Versioned, KNeighbors, RadiusNeighbors, StockNearestNeighbors):
    """Unsupervised learner for neighbor searches, compiled.

    The neighbors are exact whatever the `algorithm`; among rows at the same distance those with
    the lower index come first. Distances are computed by differences in double precision, so that
    a row is at distance 0 from itself.

    Examples
    --------
    >>> from fastml.neighbors import NearestNeighbors
    >>> samples = [[0, 0, 2], [1, 0, 0], [0, 0, 1]]
    >>> neighbors = NearestNeighbors(n_neighbors=2).fit(samples)
    >>> neighbors.kneighbors([[0, 0, 1.5]])
    (array([[0.5, 0.5]]), array([[0, 2]]))
    """

    _parameter_constraints = with_kernels(StockNearestNeighbors._parameter_constraints)

    @documented_by(StockNearestNeighbors.fit)
    @accelerated
    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y=None):
        """Take the rows of `X` as those to search among."""
        return self._fit(X)
