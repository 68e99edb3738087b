"""What all neighbour models share: how they are fitted, and how they search."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn import neighbors as stock
from sklearn.base import is_classifier
from sklearn.metrics import DistanceMetric
from sklearn.neighbors._base import (
    VALID_METRICS,
    VALID_METRICS_SPARSE,
    KNeighborsMixin,
    NeighborsBase,
    RadiusNeighborsMixin,
    _check_precomputed,
)
from sklearn.utils.validation import check_is_fitted, validate_data

from fastml._runtime.dispatch import Unsupported, accelerated
from fastml._runtime.docs import documented_by
from fastml._runtime.objects import OBJECTS, takes_objects
from fastml._runtime.plain import is_plain, is_plain_for, is_plain_target, note_columns
from fastml.metrics._functions import function_refusal
from fastml.neighbors._kernels import is_kernel
from fastml.neighbors._search import Searcher
from fastml.neighbors._targets import encode_classes

TREES = {"kd_tree": stock.KDTree, "ball_tree": stock.BallTree}
FITTED = (stock.KDTree, stock.BallTree, NeighborsBase)


class FittedNeighbors:
    """`_fit` of all neighbour models. It builds no scikit-learn tree unless somebody asks."""

    def _fit(self, X, y=None):
        # A box, since searching may not change what the model holds.
        self._fastml_searcher: list[Searcher] = []
        vars(self).pop("_tree", None)
        if isinstance(X, FITTED):
            return super()._fit(X, y)
        X, y = self._validated_training(X, y)
        if y is not None:
            if is_classifier(self):
                encode_classes(self, y)
            else:
                self._y = y
        self._check_algorithm_metric()
        self._set_effective_metric()
        if self.metric == "precomputed":
            X = _check_precomputed(X)
            if X.shape[0] != X.shape[1]:
                raise ValueError(
                    f"Precomputed matrix must be square. Input is a {X.shape[0]}x{X.shape[1]} "
                    "matrix."
                )
            self.n_features_in_ = X.shape[1]
        if X.shape[0] == 0:
            raise ValueError("n_samples must be greater than 0")
        self.n_samples_fit_ = X.shape[0]
        if issparse(X):
            self._check_sparse_metric()
            self._fit_X, self._fit_method = X.copy(), "brute"
        else:
            self._fit_X, self._fit_method = X, self._choose_method(X)
            self._check_method()
            self._check_mahalanobis()
        return self

    def _validated_training(self, X: Any, y: Any) -> tuple[Any, np.ndarray | None]:
        options = {
            "accept_sparse": "csr",
            "order": "C",
            "ensure_all_finite": "allow-nan" if self.metric == "nan_euclidean" else True,
        }
        if takes_objects(self.metric):
            options = OBJECTS
        plain = is_plain(X, sparse=True) and self.metric != "nan_euclidean"
        if not self.__sklearn_tags__().target_tags.required:
            y = None
        elif y is None or not (plain and is_plain_target(y, X.shape[0])):
            return validate_data(self, X, y, multi_output=True, **options)
        if not plain:
            return validate_data(self, X, **options), None
        note_columns(self, X)
        return X, y

    def _check_algorithm_metric(self) -> None:
        if is_kernel(self.metric):
            if self.algorithm not in ("auto", "brute"):
                raise ValueError(f"{self.algorithm} does not support kernels as metric")
        else:
            super()._check_algorithm_metric()

    def _set_effective_metric(self) -> None:
        params = dict(self.metric_params or {})
        self.effective_metric_ = self.metric
        if self.metric == "minkowski":
            p, w = params.pop("p", self.p), params.pop("w", None)
            simple = {1: "manhattan", 2: "euclidean", np.inf: "chebyshev"}
            if w is None and p in simple:
                self.effective_metric_ = simple[p]
            else:
                params |= {"p": p, "w": w}
        self.effective_metric_params_ = params

    def _check_mahalanobis(self) -> None:
        """Only scikit-learn's brute force takes the covariance of the rows themselves."""
        given = {"V", "VI"} & self.effective_metric_params_.keys()
        if self.metric == "mahalanobis" and self._fit_method != "brute" and not given:
            raise ValueError("Must provide either V or VI for Mahalanobis distance")

    def _check_sparse_metric(self) -> None:
        if self.algorithm not in ("auto", "brute"):
            warnings.warn("cannot use tree with sparse input: using brute force", stacklevel=4)
        metric = self.effective_metric_
        known = callable(metric) or is_kernel(metric) or isinstance(metric, DistanceMetric)
        if not known and metric not in VALID_METRICS_SPARSE["brute"]:
            raise ValueError(
                f"Metric '{metric}' not valid for sparse input. Use "
                "sorted(sklearn.neighbors.VALID_METRICS_SPARSE['brute']) to get valid options. "
                "Metric can also be a callable function."
            )

    def _choose_method(self, X: np.ndarray) -> str:
        """The method that scikit-learn would choose: what a converted model will use."""
        if self.algorithm != "auto":
            return self.algorithm
        metric, params = self.effective_metric_, self.effective_metric_params_
        k = self.n_neighbors
        if (
            metric == "precomputed"
            or is_kernel(metric)
            or X.shape[1] > 15
            or (k is not None and k >= len(X) // 2)
        ):
            return "brute"
        if metric == "minkowski" and (params["p"] < 1 or params["w"] is not None):
            return "brute" if params["p"] < 1 else "ball_tree"
        if not callable(metric) and metric in VALID_METRICS["kd_tree"]:
            return "kd_tree"
        return "ball_tree" if callable(metric) or metric in VALID_METRICS["ball_tree"] else "brute"

    def _check_method(self) -> None:
        if self.effective_metric_ != "minkowski":
            return
        p, w = self.effective_metric_params_["p"], self.effective_metric_params_["w"]
        if p < 1 and self._fit_method == "brute":
            warnings.warn(
                "Mind that for 0 < p < 1, Minkowski metrics are not distance metrics. Continuing "
                "the execution with `algorithm='brute'`.",
                stacklevel=4,
            )
        elif p < 1:
            raise ValueError(
                f'algorithm="{self._fit_method}" does not support 0 < p < 1 for the Minkowski '
                'metric. To resolve this problem either set p >= 1 or algorithm="brute".'
            )
        elif w is not None and self._fit_method == "kd_tree":
            raise ValueError(
                "algorithm='kd_tree' is not valid for metric='minkowski' with a weight parameter "
                "'w': try algorithm='ball_tree' or algorithm='brute' instead."
            )

    @property
    def _tree(self) -> Any:
        """The tree of scikit-learn's that its own methods search; None for brute force."""
        if "_tree" not in vars(self):
            make = TREES.get(self._fit_method)
            params = self.effective_metric_params_
            vars(self)["_tree"] = make and make(
                self._fit_X, self.leaf_size, metric=self.effective_metric_, **params
            )
        return vars(self)["_tree"]

    @_tree.setter
    def _tree(self, tree: Any) -> None:
        vars(self)["_tree"] = tree

    def __to_sklearn_state__(self, state: dict[str, Any]) -> dict[str, Any]:
        if is_kernel(self.metric):
            raise TypeError("scikit-learn has no neighbours in a kernel's feature space")
        return state | {"_tree": self._tree} if "_fit_method" in state else state

    def __getstate__(self):
        return {key: v for key, v in super().__getstate__().items() if key != "_fastml_searcher"}

    def _searcher(self) -> Searcher:
        """The search over the training data, made when it is first needed."""
        box = vars(self).setdefault("_fastml_searcher", [])
        if not box:
            X = self._fit_X if issparse(self._fit_X) else np.asarray(self._fit_X)
            metric, params = self.effective_metric_, self.effective_metric_params_
            if callable(metric) and self._fit_method in TREES:
                X = np.asarray(X, dtype=np.float64)  # as a tree would give them to it
            box.append(Searcher(X, metric, params, self.algorithm, self.n_neighbors or 5))
        return box[0]

    def _validated_queries(self, X: Any) -> Any:
        if self.metric == "precomputed":
            X = _check_precomputed(X)
            if X.shape[1] != self.n_samples_fit_:
                raise ValueError(
                    "Precomputed metric requires shape (n_queries, n_indexed). Got "
                    f"({X.shape[0]}, {X.shape[1]}) for {self.n_samples_fit_} indexed."
                )
            return X
        if is_plain_for(self, X, sparse=self._fit_method not in TREES):
            return X
        if takes_objects(self.metric):
            return validate_data(self, X, reset=False, **OBJECTS)
        X = validate_data(
            self,
            X,
            ensure_all_finite="allow-nan" if self.metric == "nan_euclidean" else True,
            accept_sparse="csr",
            reset=False,
            order="C",
        )
        if issparse(X) and self._fit_method in TREES:
            raise ValueError(
                f"{self._fit_method} does not work with sparse matrices. Densify the data, or set "
                "algorithm='brute'"
            )
        return X


def _kneighbors_not_native(self, X=None, n_neighbors=None, return_distance=True):
    return metric_refusal(self, X)


def metric_refusal(self: Any, X: Any) -> Unsupported | None:
    metric = vars(self).get("effective_metric_", "euclidean")
    if isinstance(metric, str | DistanceMetric) or is_kernel(metric):
        return None
    data = self._searcher().X
    return function_refusal(metric, data if X is None else X, data, self.effective_metric_params_)


class KNeighbors(FittedNeighbors, KNeighborsMixin):
    """`kneighbors`, compiled."""

    @documented_by(KNeighborsMixin.kneighbors)
    @accelerated(unless=_kneighbors_not_native)
    def kneighbors(self, X=None, n_neighbors=None, return_distance=True):
        """Find the nearest neighbors of each row of `X`, in the order of (distance, index)."""
        check_is_fitted(self)
        k = self._checked_k(n_neighbors)
        X = self._checked_queries(X, k)
        distances, rows = self._searcher().nearest(X, k, return_distance, self.n_jobs)
        return (distances, rows) if return_distance else rows

    def _checked_queries(self, X: Any, k: int) -> Any:
        """`X` validated, if there are `k` neighbours of each row of it."""
        itself = X is None
        if not itself:
            X = self._validated_queries(X)
        if k + itself > self.n_samples_fit_:
            sign = "<" if itself else "<="
            raise ValueError(
                f"Expected n_neighbors {sign} n_samples_fit, but n_neighbors = {k}, n_samples_fit "
                f"= {self.n_samples_fit_}, n_samples = {(self._fit_X if itself else X).shape[0]}"
            )
        return X

    def _checked_k(self, n_neighbors: Any) -> int:
        if n_neighbors is None:
            return self.n_neighbors
        if n_neighbors <= 0:
            raise ValueError(f"Expected n_neighbors > 0. Got {n_neighbors:d}")
        if not isinstance(n_neighbors, Integral):
            raise TypeError(
                f"n_neighbors does not take {type(n_neighbors)} value, enter integer value"
            )
        return int(n_neighbors)


def _radius_not_native(self, X=None, radius=None, return_distance=True, sort_results=False):
    return metric_refusal(self, X)


class RadiusNeighbors(FittedNeighbors, RadiusNeighborsMixin):
    """`radius_neighbors`, compiled."""

    @documented_by(RadiusNeighborsMixin.radius_neighbors)
    @accelerated(unless=_radius_not_native)
    def radius_neighbors(self, X=None, radius=None, return_distance=True, sort_results=False):
        """Find the neighbors of each row of `X` within a radius."""
        check_is_fitted(self)
        if sort_results and not return_distance:
            raise ValueError("return_distance must be True if sort_results is True.")
        if X is not None:
            X = self._validated_queries(X)
        radius = self.radius if radius is None else radius
        search = self._searcher().parts_within
        found = list(search(X, radius, return_distance, sort_results, self.n_jobs))
        rows = np.concatenate([part.split(part.rows) for part in found])
        if not return_distance:
            return rows
        return np.concatenate([part.split(part.distances) for part in found]), rows
