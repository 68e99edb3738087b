"""Inner products as cosines, by one more coordinate."""

from __future__ import annotations

import warnings
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_matrix, hstack, issparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted, validate_data

from fastml._runtime.callbacks import fit_context
from fastml._runtime.dispatch import accelerated
from fastml._runtime.versioned import Versioned

SLACK = 1 + 1e-6  # beyond which a norm is more than another but for rounding


class CosineAugmentation(
    Versioned, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    """One more coordinate, by which the largest inner products are the largest cosines.

    Items x become ``(x, sqrt(M² - |x|²)) / M``, M being the norm of the longest, and queries q
    become ``(q, 0) / |q|``. All of these have length 1, and the cosine of a query and an item is
    their inner product over ``M |q|``: whatever finds neighbours by angle or by distance then
    finds the items whose inner products with a query are the largest.

    Parameters
    ----------
    max_norm : float, default=None
        M, for items to come that are longer than those of the fit. None: the norm of the longest.

    Attributes
    ----------
    max_norm_ : float
        M.

    n_features_in_ : int
        The number of features of the rows.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        The names of the features, if all of them are strings.

    See Also
    --------
    GaussianRandomProjection : Fewer coordinates, with cosines about the same.

    References
    ----------
    Bachrach et al., "Speeding Up the Xbox Recommender System Using a Euclidean Transformation for
    Inner-Product Spaces" (2014). Neyshabur and Srebro, "On Symmetric and Asymmetric LSHs for
    Inner Product Search" (2015).

    Examples
    --------
    >>> import numpy as np
    >>> from fastml.neighbors import NearestNeighbors
    >>> from fastml.random_projection import CosineAugmentation
    >>> items, queries = np.array([[3.0, 0.0], [1.0, 1.0], [0.0, 2.0]]), np.array([[2.0, 1.0]])
    >>> augmentation = CosineAugmentation().fit(items)
    >>> search = NearestNeighbors(n_neighbors=1).fit(augmentation.transform(items))
    >>> search.kneighbors(augmentation.transform_queries(queries), return_distance=False)
    array([[0]])
    >>> (queries @ items.T).argmax(axis=1)  # though the second has the smallest angle
    array([0])
    """

    _parameter_constraints: ClassVar[dict] = {
        "max_norm": [Interval(Real, 0, None, closed="neither"), None]
    }

    def __init__(self, max_norm=None):
        self.max_norm = max_norm

    @accelerated
    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        """Find the longest item.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The items.

        y : Ignored
            Not used, present for API consistency.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32])
        longest = float(_norms(X).max())
        self.max_norm_ = float(self.max_norm) if self.max_norm is not None else longest or 1.0
        if longest > self.max_norm_ * SLACK:
            raise ValueError(
                f"An item has the norm {longest:.6g}, above max_norm={self.max_norm_:.6g}."
            )
        self._n_features_out = X.shape[1] + 1
        return self

    @accelerated
    def transform(self, X):
        """Augment items.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The items. Those that are longer than `max_norm_` count as long as that, with a
            warning.

        Returns
        -------
        items : {ndarray, sparse matrix} of shape (n_samples, n_features + 1)
            Items of length 1.
        """
        X = self._rows(X)
        part = _norms(X) / self.max_norm_
        if part.max() > SLACK:
            warnings.warn(
                f"An item has {part.max():.3g} times the norm max_norm_, which counts as its norm "
                "now. Set max_norm to what items may have.",
                stacklevel=2,
            )
        rest = np.sqrt(np.maximum((1 - part) * (1 + part), 0))
        return _augmented(X, 1 / (self.max_norm_ * np.maximum(part, 1)), rest)

    @accelerated
    def transform_queries(self, X):
        """Augment queries.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The queries.

        Returns
        -------
        queries : {ndarray, sparse matrix} of shape (n_samples, n_features + 1)
            Queries of length 1, but for those of zeros.
        """
        X = self._rows(X)
        norms = _norms(X)
        norms[norms == 0] = 1
        return _augmented(X, 1 / norms, np.zeros(X.shape[0]))

    def _rows(self, X: Any) -> Any:
        check_is_fitted(self)
        return validate_data(
            self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False
        )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _norms(X: Any) -> np.ndarray:
    """Of rows, in double."""
    if issparse(X):
        squares = X.multiply(X).astype(np.float64)
        return np.sqrt(np.asarray(squares.sum(axis=1)).ravel())
    X = np.ascontiguousarray(X)  # sums do not depend on the layout
    return np.sqrt(np.einsum("ij,ij->i", X, X, dtype=np.float64))


def _augmented(X: Any, scale: np.ndarray, last: np.ndarray) -> Any:
    if issparse(X):
        out = X.copy()
        out.data *= np.repeat(scale, np.diff(X.indptr)).astype(X.dtype)
        column = csr_matrix(last[:, None].astype(X.dtype))
        return type(X)(hstack([out, column], format="csr"))
    out = np.empty((len(X), X.shape[1] + 1), X.dtype)
    np.multiply(X, scale[:, None].astype(X.dtype), out=out[:, :-1])
    out[:, -1] = last
    return out
