"""What clusterings have in common that start several times and that scikit-learn lacks."""

import warnings
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _is_arraylike_not_scalar, check_is_fitted

from fastml._runtime.callbacks import CallbackSupportMixin, Task, fit_context, fit_task
from fastml._runtime.dispatch import accelerated
from fastml._runtime.versioned import Versioned


class Partition(
    Versioned,
    CallbackSupportMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    ClusterMixin,
    BaseEstimator,
):
    """The parameters and conventions of scikit-learn's KMeans, around an iteration of one's own.

    What differs is in `_fit`, and of a fitted model in `_predict`, `_transform` and `_inertia`.
    """

    _parameter_constraints: ClassVar[dict] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "n_init": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
    }

    @accelerated
    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Compute the clustering of the rows of `X`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows to cluster.

        y : Ignored
            Not used, present for API consistency.

        sample_weight : array-like of shape (n_samples,), default=None
            The weight of each row; None for equal ones.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        self._fit(X, sample_weight)
        return self

    def fit_predict(self, X, y=None, sample_weight=None):
        """Compute the clustering and return the label of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows to cluster.

        y : Ignored
            Not used, present for API consistency.

        sample_weight : array-like of shape (n_samples,), default=None
            The weight of each row; None for equal ones.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            The cluster of each row.
        """
        return self.fit(X, sample_weight=sample_weight).labels_

    def fit_transform(self, X, y=None, sample_weight=None):
        """Compute the clustering and return the distances of `X` to its centers.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows to cluster.

        y : Ignored
            Not used, present for API consistency.

        sample_weight : array-like of shape (n_samples,), default=None
            The weight of each row; None for equal ones.

        Returns
        -------
        distances : ndarray of shape (n_samples, n_clusters)
            The distance of each row to each center.
        """
        self.fit(X, sample_weight=sample_weight)
        return self._transform_fitted(X)

    @accelerated
    def predict(self, X):
        """Predict the closest cluster of each row of `X`; ties go to the lower index.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            The index of the nearest center.
        """
        check_is_fitted(self)
        return self._predict(X)

    @accelerated
    def transform(self, X):
        """Distances, of the estimator's kind, from each row of `X` to each center.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        distances : ndarray of shape (n_samples, n_clusters)
            The distances.
        """
        check_is_fitted(self)
        return self._transform(X)

    @accelerated
    def score(self, X, y=None, sample_weight=None):
        """Minus what `inertia_` is of the rows of the fit, of the rows of `X`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        y : Ignored
            Not used, present for API consistency.

        sample_weight : array-like of shape (n_samples,), default=None
            The weight of each row; None for equal ones.

        Returns
        -------
        score : float
            The opposite of the value of `X` on the objective.
        """
        check_is_fitted(self)
        return -self._inertia(X, sample_weight)

    def _transform_fitted(self, X: Any) -> np.ndarray:
        """The distances of the rows that were just fitted."""
        return self.transform(X)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _best_run(self, X: Any, data: Any, w: np.ndarray | None, sample_weight: Any) -> Any:
        """The best of `n_init` runs, by their inertia."""
        n_init, random_state = self._starts(X), check_random_state(self.random_state)
        best = None
        metadata = {"sample_weight": sample_weight}
        with fit_task(self, n_init, X=X, metadata=metadata) as task:
            for _ in range(n_init):
                with task.subtask("run", self.max_iter) as run_task:
                    run = self._run(data, w, random_state, run_task)
                if best is None or run.inertia < best.inertia:
                    best = run
                if run_task.stop:
                    break
        found = len(np.unique(best.labels))
        if found < self.n_clusters:
            warnings.warn(
                f"Number of distinct clusters ({found}) found smaller than n_clusters "
                f"({self.n_clusters}). Possibly due to duplicate points in X.",
                ConvergenceWarning,
                stacklevel=4,
            )
        return best

    def _run(
        self, data: Any, w: np.ndarray | None, random_state: np.random.RandomState, task: Task
    ) -> Any:
        """One run: something with `labels` and `inertia`."""
        raise NotImplementedError

    def _starts(self, X: Any) -> int:
        """How many runs to make, after scikit-learn's checks of what depends on X."""
        if X.shape[0] < self.n_clusters:
            raise ValueError(f"n_samples={X.shape[0]} should be >= n_clusters={self.n_clusters}.")
        given = _is_arraylike_not_scalar(self.init)
        if self.n_init == "auto":
            one_will_do = given or (isinstance(self.init, str) and self.init != "random")
            return 1 if one_will_do else 10
        if given and self.n_init != 1:
            warnings.warn(
                "Explicit initial center position passed: performing only one init in "
                f"{type(self).__name__} instead of n_init={self.n_init}.",
                RuntimeWarning,
                stacklevel=5,
            )
            return 1
        return self.n_init

    def _report(self, line: str) -> None:
        if self.verbose:
            print(line)


def relocate(
    labels: np.ndarray, weights: np.ndarray, w: np.ndarray | None, distance: np.ndarray
) -> bool:
    """Label the rows farthest from their centers as the clusters without weight, if there are any.

    As scikit-learn's k-means does it, but for rows without weight, which would leave the cluster
    as empty as it was. Returns whether any label changed.
    """
    empty = np.flatnonzero(weights == 0)
    if len(empty) == 0:
        return False
    distance = distance if w is None else np.where(w > 0, distance, 0)
    n_empty = min(len(empty), len(distance))
    rows = np.argpartition(distance, -n_empty)[-n_empty:]
    rows = rows[np.argsort(-distance[rows], kind="stable")]
    rows = rows[distance[rows] > 0]  # else there are fewer distinct rows than clusters
    labels[rows] = empty[: len(rows)]
    return len(rows) > 0
