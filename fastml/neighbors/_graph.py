"""Graphs of neighbours."""

from sklearn import neighbors as stock
from sklearn.neighbors._base import KNeighborsMixin, RadiusNeighborsMixin

from fastml._runtime.dispatch import accelerated
from fastml._runtime.docs import documented_by
from fastml._runtime.parameters import validate_params
from fastml._runtime.versioned import Versioned
from fastml.neighbors._base import KNeighbors, RadiusNeighbors
from fastml.neighbors._kernels import with_kernels
from fastml.neighbors._unsupervised import NearestNeighbors

StockKNeighborsTransformer = stock.KNeighborsTransformer
StockRadiusNeighborsTransformer = stock.RadiusNeighborsTransformer
stock_kneighbors_graph = stock.kneighbors_graph
stock_radius_neighbors_graph = stock.radius_neighbors_graph


@documented_by(StockKNeighborsTransformer)
class KNeighborsTransformer(Versioned, KNeighbors, StockKNeighborsTransformer):
    """Transform X into a (weighted) graph of k nearest neighbors, compiled.

    Examples
    --------
    >>> from fastml.neighbors import KNeighborsTransformer
    >>> KNeighborsTransformer(n_neighbors=1).fit_transform([[0.0], [3.0], [1.0]]).toarray()
    array([[0., 0., 1.],
           [0., 0., 2.],
           [1., 0., 0.]])
    """

    _parameter_constraints = with_kernels(StockKNeighborsTransformer._parameter_constraints)

    @documented_by(StockKNeighborsTransformer.fit)
    @accelerated
    def fit(self, X, y=None):
        """Take the rows of `X` as those to search among."""
        return super().fit(X)


@documented_by(StockRadiusNeighborsTransformer)
class RadiusNeighborsTransformer(Versioned, RadiusNeighbors, StockRadiusNeighborsTransformer):
    """Transform X into a (weighted) graph of neighbors nearer than a radius, compiled.

    Examples
    --------
    >>> from fastml.neighbors import RadiusNeighborsTransformer
    >>> RadiusNeighborsTransformer(radius=1.5).fit_transform([[0.0], [3.0], [1.0]]).toarray()
    array([[0., 0., 1.],
           [0., 0., 0.],
           [1., 0., 0.]])
    """

    _parameter_constraints = with_kernels(StockRadiusNeighborsTransformer._parameter_constraints)

    @documented_by(StockRadiusNeighborsTransformer.fit)
    @accelerated
    def fit(self, X, y=None):
        """Take the rows of `X` as those to search among."""
        return super().fit(X)


@documented_by(stock_kneighbors_graph)
@accelerated
@validate_params(
    with_kernels(stock_kneighbors_graph._skl_parameter_constraints),
    prefer_skip_nested_validation=False,
)
def kneighbors_graph(
    X,
    n_neighbors,
    *,
    mode="connectivity",
    metric="minkowski",
    p=2,
    metric_params=None,
    include_self=False,
    n_jobs=None,
):
    """Compute the (weighted) graph of k-neighbors for points in X, compiled.

    Examples
    --------
    >>> from fastml.neighbors import kneighbors_graph
    >>> kneighbors_graph([[0], [3], [1]], 2, include_self=True).toarray()
    array([[1., 0., 1.],
           [0., 1., 1.],
           [1., 0., 1.]])
    """
    if not isinstance(X, KNeighborsMixin):
        params = {"metric": metric, "p": p, "metric_params": metric_params, "n_jobs": n_jobs}
        X = NearestNeighbors(n_neighbors=n_neighbors, **params).fit(X)
    return stock_kneighbors_graph(
        X,
        n_neighbors,
        mode=mode,
        metric=metric,
        p=p,
        metric_params=metric_params,
        include_self=include_self,
        n_jobs=n_jobs,
    )


@documented_by(stock_radius_neighbors_graph)
@accelerated
@validate_params(
    with_kernels(stock_radius_neighbors_graph._skl_parameter_constraints),
    prefer_skip_nested_validation=False,
)
def radius_neighbors_graph(
    X,
    radius,
    *,
    mode="connectivity",
    metric="minkowski",
    p=2,
    metric_params=None,
    include_self=False,
    n_jobs=None,
):
    """Compute the (weighted) graph of neighbors within a radius for points in X, compiled.

    Examples
    --------
    >>> from fastml.neighbors import radius_neighbors_graph
    >>> radius_neighbors_graph([[0], [3], [1]], 1.5, mode="distance").toarray()
    array([[0., 0., 1.],
           [0., 0., 0.],
           [1., 0., 0.]])
    """
    if not isinstance(X, RadiusNeighborsMixin):
        params = {"metric": metric, "p": p, "metric_params": metric_params, "n_jobs": n_jobs}
        X = NearestNeighbors(radius=radius, **params).fit(X)
    return stock_radius_neighbors_graph(
        X,
        radius,
        mode=mode,
        metric=metric,
        p=p,
        metric_params=metric_params,
        include_self=include_self,
        n_jobs=n_jobs,
    )
