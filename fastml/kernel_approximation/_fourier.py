"""Random features of any shift-invariant kernel."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from fastml._runtime.callbacks import fit_context
from fastml._runtime.dispatch import accelerated
from fastml._runtime.versioned import Versioned
from fastml.kernel_approximation._cosines import cosine_features

# Spectral densities: draws of frequencies from the Fourier transform of the kernel.
SAMPLERS = {
    "rbf": lambda rng, gamma, size: np.sqrt(2 * gamma) * rng.normal(size=size),
    "laplacian": lambda rng, gamma, size: gamma * rng.standard_cauchy(size=size),
    "cauchy": lambda rng, gamma, size: rng.laplace(scale=np.sqrt(gamma), size=size),
}


class RandomFourierFeatures(
    Versioned, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    """Random features of a shift-invariant kernel, named or of one's own.

    A kernel k(x - y) with k(0) = 1 that is positive definite is the mean of cos(w·(x - y)) over
    frequencies w, which are distributed by its Fourier transform g. Features
    ``sqrt(2 / n_components) cos(w·x + b)``, of frequencies drawn from g and offsets b, have
    products that are the kernel on average.

    Parameters
    ----------
    kernel : {"rbf", "laplacian", "cauchy"} or callable, default="rbf"
        ``exp(-gamma |x - y|²)``, ``exp(-gamma |x - y|₁)``, or the product over features of
        ``1 / (1 + gamma (x - y)²)``. A callable ``sampler(n_features, n_components,
        random_state)`` returns frequencies, of shape (n_features, n_components), drawn from the
        density of another kernel, or, with `importance`, from any other.

    gamma : float, default=None
        The scale of a named kernel. None: one over the number of features.

    importance : callable, default=None
        ``importance(frequencies)`` returns for each column g / p, the density that frequencies
        should have over the one that they were drawn from. Features are multiplied by its root.

    n_components : int, default=100
        The number of features.

    random_state : int, RandomState instance or None, default=None
        Decides the frequencies and offsets. An int makes fits repeatable.

    Attributes
    ----------
    random_weights_ : ndarray of shape (n_features, n_components)
        The frequencies.

    random_offset_ : ndarray of shape (n_components,)
        The offsets, uniform in [0, 2 pi).

    importance_ : ndarray of shape (n_components,) or None
        What features are multiplied by, if there is `importance`.

    n_features_in_ : int
        The number of features of the rows.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        The names of the features, if all of them are strings.

    See Also
    --------
    RBFSampler : The same for the Gaussian kernel alone.
    Nystroem : Features from a sample of the rows, for any kernel.

    References
    ----------
    Rahimi and Recht, "Random Features for Large-Scale Kernel Machines" (2007).

    Examples
    --------
    >>> from fastml.kernel_approximation import RandomFourierFeatures
    >>> X = [[0.0, 0.0], [1.0, 0.0]]
    >>> features = RandomFourierFeatures("laplacian", gamma=1, n_components=5000, random_state=0)
    >>> Z = features.fit_transform(X)
    >>> (Z @ Z.T).round(1)  # exp(-1) is 0.37
    array([[1. , 0.4],
           [0.4, 1. ]])
    """

    _parameter_constraints: ClassVar[dict] = {
        "kernel": [StrOptions(set(SAMPLERS)), callable],
        "gamma": [Interval(Real, 0, None, closed="left"), None],
        "importance": [callable, None],
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self, kernel="rbf", *, gamma=None, importance=None, n_components=100, random_state=None
    ):
        self.kernel = kernel
        self.gamma = gamma
        self.importance = importance
        self.n_components = n_components
        self.random_state = random_state

    @accelerated
    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        """Draw frequencies and offsets.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows, of which only the number of features and the dtype matter.

        y : Ignored
            Not used, present for API consistency.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32])
        rng, size = check_random_state(self.random_state), (X.shape[1], self.n_components)
        if callable(self.kernel):
            W = np.asarray(self.kernel(*size, rng), dtype=np.float64)
            if W.shape != size:
                raise ValueError(f"The sampler returned frequencies of shape {W.shape}, not {size}")
        else:
            W = SAMPLERS[self.kernel](rng, 1 / size[0] if self.gamma is None else self.gamma, size)
        self.importance_ = self._roots(W)
        self.random_weights_ = W.astype(X.dtype, copy=False)
        self.random_offset_ = rng.uniform(0, 2 * np.pi, size[1]).astype(X.dtype, copy=False)
        self._n_features_out = self.n_components
        return self

    def _roots(self, W: np.ndarray) -> Any:
        if self.importance is None:
            return None
        weights = np.asarray(self.importance(W), dtype=np.float64)
        if weights.shape != (W.shape[1],) or not (weights >= 0).all():
            raise ValueError("importance must return a number >= 0 for each of the frequencies")
        return np.sqrt(weights)

    @accelerated
    def transform(self, X):
        """Apply the feature map to `X`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        features : ndarray of shape (n_samples, n_components)
            Their products approximate the kernel.
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        scale = (2.0 / self.n_components) ** 0.5
        Z = cosine_features(X, self.random_weights_, self.random_offset_, scale)
        if self.importance_ is not None:
            Z *= self.importance_.astype(Z.dtype)
        return Z

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
