"""Kernel k-means: clustering by distances in the feature space of a kernel."""

from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight

from fastml._native import kernel_kmeans as native
from fastml._runtime.threads import n_threads
from fastml.cluster._gram import Gram, gram_of
from fastml.cluster._members import Centers, greedy_seeds, moved
from fastml.cluster._partition import Partition, relocate
from fastml.metrics._dispatch import KERNEL
from fastml.metrics._kernel_function import function_of, is_precomputed, validated


class Run(NamedTuple):
    labels: np.ndarray
    inertia: float
    members: np.ndarray
    centers: Centers
    n_iter: int


class KernelKMeans(Partition):
    """K-means in the feature space of a kernel.

    Finds groups that no plane separates, such as rings, and works on whatever has a kernel. A
    center is the mean of its members in feature space and exists only through them: each
    iteration adds up kernel values by cluster, once for all rows and then for those alone that
    changed their cluster.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters.

    kernel : str, kernel object or callable, default="rbf"
        A name that `fastml.metrics.pairwise_kernels` knows; "precomputed", if `X` is
        the Gram matrix (`predict` then takes the kernel between new rows and those of the fit);
        a kernel of `gaussian_process.kernels`; a function made by `fastml.jit.kernel`; or a
        function of two rows.

    gamma : float, default=None
        Gamma of the rbf, laplacian, polynomial, sigmoid and chi2 kernels. None: the kernel's
        default.

    degree : float, default=3
        The degree of the polynomial kernel.

    coef0 : float, default=1
        The constant of the polynomial and sigmoid kernels.

    kernel_params : dict, default=None
        Further arguments of a kernel that is a function.

    init : {"k-means++", "random"}, callable or array-like, default="k-means++"
        Where to start. "k-means++": rows that are drawn one after the other, by their squared
        distance in feature space to the nearest of those before, each the best of several tries.
        "random": any rows. An array has the indices of `n_clusters` rows, or the label of every
        row, or, of shape (n_clusters, n_features), points to start from. A callable takes `X`,
        `n_clusters` and a random state, and returns such an array.

    n_init : "auto" or int, default="auto"
        How many runs to make, of which the best is kept. "auto": 10 for "random" or a callable,
        else 1.

    max_iter : int, default=300
        The most iterations of a run.

    tol : float, default=1e-6
        A run ends when an iteration decreases the inertia by no more than this part of it.

    max_gram_mb : float, default=1024
        The most memory for the Gram matrix of the rows, in MiB. One that needs more (in the
        precision of `X`) is never formed but computed again, a block at a time, in every
        iteration. 0: never form it. None: always.

    verbose : int, default=0
        Whether to print the progress.

    random_state : int, RandomState instance or None, default=None
        Decides the initial rows. An int makes fits repeatable.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        The cluster of each row.

    inertia_ : float
        The sum of the squared distances of the rows to their centers in feature space, weighted
        if there are weights.

    n_iter_ : int
        The number of iterations of the best run.

    X_fit_ : {ndarray, sparse matrix} of shape (n_samples, n_features)
        The rows of the fit, which the centers are made of; None if the kernel is precomputed.

    dual_coef_ : sparse matrix of shape (n_clusters, n_samples)
        The centers as weighted means of the rows of the fit.

    center_sqnorms_ : ndarray of shape (n_clusters,)
        The squared norms of the centers; infinite for a cluster that has no members.

    n_features_in_ : int
        The number of features.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        The names of the features, if all of them are strings.

    See Also
    --------
    KMeans : The same for the linear kernel, and much faster.
    SpectralClustering : Clusters the eigenvectors of an affinity instead.

    Notes
    -----
    For a positive definite kernel no iteration increases the inertia. For another, a run ends when
    one would. Distances to new rows need K(x, x), so with a precomputed kernel there are
    `predict` and `fit_transform`, but `transform` and `score` are not possible.

    Examples
    --------
    >>> from fastml.cluster import KernelKMeans
    >>> from sklearn.datasets import make_circles
    >>> X, ring = make_circles(300, factor=0.2, noise=0.05, random_state=0)
    >>> model = KernelKMeans(n_clusters=2, gamma=2, n_init=5, random_state=0).fit(X)
    >>> len({(a, b) for a, b in zip(ring.tolist(), model.labels_.tolist())})
    2
    >>> inside, outside = model.predict([[0, 0], [1, 0]])
    >>> bool(inside != outside)
    True
    """

    _parameter_constraints: ClassVar[dict] = {
        **Partition._parameter_constraints,
        "kernel": KERNEL,
        "gamma": [Interval(Real, 0, None, closed="left"), None],
        "degree": [Interval(Real, 0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "kernel_params": [dict, None],
        "init": [StrOptions({"k-means++", "random"}), callable, "array-like"],
        "max_gram_mb": [Interval(Real, 0, None, closed="left"), None],
    }

    def __init__(
        self,
        n_clusters=8,
        *,
        kernel="rbf",
        gamma=None,
        degree=3,
        coef0=1,
        kernel_params=None,
        init="k-means++",
        n_init="auto",
        max_iter=300,
        tol=1e-6,
        max_gram_mb=1024,
        verbose=0,
        random_state=None,
    ):
        self.n_clusters = n_clusters
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.max_gram_mb = max_gram_mb
        self.verbose = verbose
        self.random_state = random_state

    def _transform_fitted(self, X: Any) -> np.ndarray:
        if not is_precomputed(self.kernel):
            return self.transform(X)
        K = validated(self, X, reset=False)
        return self._distances(K, K.diagonal())

    def _predict(self, X: Any) -> np.ndarray:
        return self._closeness(validated(self, X, reset=False)).argmin(axis=1).astype(np.int32)

    def _transform(self, X: Any) -> np.ndarray:
        self._check_has_diagonal("transform", "Use fit_transform")
        X = validated(self, X, reset=False)
        return self._distances(X, function_of(self).diagonal(X))

    def _inertia(self, X: Any, sample_weight: Any) -> float:
        self._check_has_diagonal("score", "Use inertia_")
        X = validated(self, X, reset=False)
        sqdist = function_of(self).diagonal(X) + self._closeness(X).min(axis=1)
        w = _check_sample_weight(sample_weight, X, dtype=np.float64)
        return float(w @ np.maximum(sqdist, 0))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = is_precomputed(self.kernel)
        tags.input_tags.sparse = not tags.input_tags.pairwise
        return tags

    def _check_has_diagonal(self, method: str, instead: str) -> None:
        if is_precomputed(self.kernel):
            raise ValueError(
                f"{method} needs K(x, x) of new rows x, which a precomputed kernel between them "
                f"and the rows of the fit does not tell. {instead}, or predict."
            )

    def _fit(self, X: Any, sample_weight: Any) -> None:
        self._check_kernel_params()
        X = validated(self, X, reset=True)
        w = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if is_precomputed(self.kernel):
            if X.shape[0] != X.shape[1]:
                raise ValueError(f"Precomputed kernel must be a square matrix; got {X.shape}.")
            if not _is_symmetric(X):
                raise ValueError("Precomputed kernel must be symmetric: pass (K + K.T) / 2.")
            gram, self.X_fit_ = Gram(np.require(X, requirements="A")), None
        else:
            gram, self.X_fit_ = gram_of(function_of(self), X, self.max_gram_mb), X
        if not gram.is_finite():
            raise ValueError(f"The kernel {self.kernel!r} gives NaN or infinity for rows of X.")
        best = self._best_run(X, gram, w, sample_weight)
        if not np.isfinite(best.inertia):  # what a streamed matrix does not show before
            raise ValueError(f"The kernel {self.kernel!r} gives NaN or infinity for rows of X.")
        vars(self).update(self._fitted(best.members, best.centers, w))
        self.labels_ = best.labels
        self.inertia_ = best.inertia
        self.n_iter_ = best.n_iter

    def _check_kernel_params(self) -> None:
        if self.kernel_params and (not callable(self.kernel) or isinstance(self.kernel, Kernel)):
            raise TypeError(
                f"kernel={self.kernel!r} does not take kernel_params, which are for functions: "
                "set gamma, degree and coef0 of the model, or parameters of the kernel object."
            )

    def _fitted(self, members: np.ndarray, centers: Centers, w: np.ndarray) -> dict[str, Any]:
        return {
            "_members": members,
            "_coef": w * centers.scale[members],
            "center_sqnorms_": centers.norm,
            "_n_features_out": self.n_clusters,
        }

    @property
    def dual_coef_(self):
        """The centers as weighted means of the rows of the fit."""
        at = self._members, np.arange(len(self._members), dtype=np.int32)
        shape = len(self.center_sqnorms_), len(self._members)
        return sparse.csr_matrix((self._coef, at), shape=shape)

    def _closeness(self, X: Any) -> np.ndarray:
        """Squared distances of rows to centers, short of K(x, x)."""
        if self.X_fit_ is None:
            products = (self.dual_coef_ @ X.T).T
        else:
            products = function_of(self).apply(X, self.X_fit_, self.dual_coef_.T.toarray())
        return self.center_sqnorms_ - 2 * products.astype(np.float64, copy=False)

    def _distances(self, X: Any, diagonal: np.ndarray) -> np.ndarray:
        distances = np.sqrt(np.maximum(diagonal[:, None] + self._closeness(X), 0))
        single = getattr(X, "dtype", None) == np.float32
        return distances.astype(np.float32) if single else distances

    def _run(self, data, w, random_state, task):
        gram, threads = data, n_threads()
        labels, closeness = self._first_labels(gram, w, random_state)
        self._report("Initialization complete")
        members, centers, before = labels, None, None
        rounding = np.finfo(gram.dtype).eps * (w @ np.abs(gram.diagonal))
        for i in range(self.max_iter):
            with task.subtask("iteration") as step:
                if centers is not None:
                    labels = members.copy()
                    native.nearest_centers(*centers[:3], labels, closeness, threads)
                if closeness is not None:
                    self._relocate(labels, gram, closeness, w)
                settled = centers is not None and bool((labels == members).all())
                if not settled:
                    before = centers
                    centers = moved(gram, members, labels, w, before, self.n_clusters)
                    if before is not None and centers.inertia > before.inertia + rounding:
                        # The kernel is not positive definite: back to where it was better.
                        centers = moved(gram, labels, members, w, centers, self.n_clusters)
                        settled = True
                    else:
                        members = labels
                closeness = np.empty(gram.n) if closeness is None else closeness
                self._report(f"Iteration {i}, inertia {centers.inertia}")
                step.attributes = lambda m=members, c=centers: self._fitted(m, c, w)
            if settled or (
                before is not None
                and before.inertia - centers.inertia <= self.tol * centers.inertia
            ):
                self._report(f"Converged at iteration {i}.")
                break
            if step.stop:
                break
        # The centers moved after the last assignment: labels as predict will give them.
        labels = members.copy()
        native.nearest_centers(*centers[:3], labels, closeness, threads)
        inertia = float(w @ np.maximum(gram.diagonal + closeness, 0))
        return Run(labels, inertia, members, centers, i + 1)

    def _relocate(
        self, labels: np.ndarray, gram: Gram, closeness: np.ndarray, w: np.ndarray
    ) -> None:
        weights = np.bincount(labels, w, minlength=self.n_clusters)
        if weights.all():
            return
        sqdist = gram.diagonal + closeness
        sqdist[sqdist <= 64 * np.finfo(gram.dtype).eps * np.abs(gram.diagonal).max()] = 0
        relocate(labels, weights, w, sqdist)

    def _first_labels(
        self, gram: Gram, w: np.ndarray, random_state: np.random.RandomState
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Labels to start with, and how close rows are to what they stand for, if to anything."""
        k, n, init = self.n_clusters, gram.n, self.init
        if isinstance(init, str) and init == "k-means++":
            init = greedy_seeds(gram, w, k, random_state)
        elif isinstance(init, str):
            init = random_state.choice(n, k, replace=False, p=w / w.sum())
        elif callable(init):
            X = gram.K if self.X_fit_ is None else self.X_fit_
            init = init(X, k, random_state=random_state)
        init = np.asarray(init)
        if init.ndim == 2 and self.X_fit_ is not None and len(init) == k:
            points = init.astype(self.X_fit_.dtype)
            if points.shape[1] != self.n_features_in_:
                raise ValueError(
                    f"The shape of the initial centers {init.shape} does not match the number of "
                    f"features of the data {self.n_features_in_}."
                )
            function = function_of(self)
            rows, norm = function(points, self.X_fit_), function.diagonal(points)
            rows = np.require(rows, np.float64, "C")
        elif init.shape == (k,) and init.dtype.kind in "iu" and 0 <= init.min() <= init.max() < n:
            rows, norm = gram.rows(init), gram.diagonal[init]
        elif init.shape == (n,) and init.dtype.kind in "iu" and 0 <= init.min() <= init.max() < k:
            return init.astype(np.int32), None
        else:
            raise ValueError(
                f"init should be indices of {k} rows, or labels below {k} of all {n} rows"
                f"{'' if self.X_fit_ is None else ', or points'}; got an array of shape "
                f"{init.shape} and dtype {init.dtype}."
            )
        labels, closeness = np.zeros(n, np.int32), np.empty(n)
        native.nearest_centers(rows, norm, np.ones(k), labels, closeness, n_threads())
        return labels, closeness


def _is_symmetric(K: np.ndarray) -> bool:
    """Up to rounding, beside the largest entry; some rows at a time."""
    tolerance = np.sqrt(np.finfo(K.dtype).eps) * max(K.max(), -K.min())
    blocks = (slice(i, i + 256) for i in range(0, len(K), 256))
    return all(
        np.abs(K[rows, rows.start :] - K[rows.start :, rows].T).max() <= tolerance
        for rows in blocks
    )
