"""Data to components and back: what the estimators that find principal components share."""

from typing import Any

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.decomposition._base import _BasePCA
from sklearn.utils.validation import check_array, check_is_fitted

from fastml._runtime.dispatch import Unsupported, accelerated
from fastml._runtime.docs import documented_by
from fastml._runtime.forks import unforked
from fastml.decomposition._spectra import refuse_infinite, times
from fastml.preprocessing._matrix import foreign, is_sparse, to_transform

# Of a product with so few rows the laying out of the components is most of the work.
FEW_ROWS = 32


def _not_native(self: Any, X: Any) -> Unsupported | None:
    return foreign(X)


class Projection(TransformerMixin):
    """Mixin that stands before the stock class."""

    @documented_by(_BasePCA.transform)
    @accelerated(unless=_not_native)
    def transform(self, X):
        """Project `X` on the components, in one pass over it."""
        return self._project(self._rows(X, sparse=("csr", "csc")))

    def _rows(self, X: Any, sparse: Any) -> Any:
        return to_transform(self, X, "components_", sparse=sparse, dtypes=(np.float64, np.float32))

    @unforked()
    def _project(self, X: Any) -> np.ndarray:
        V = self.components_
        mean = self.mean_.astype(np.result_type(X, V), copy=False)
        scale = None
        if self.whiten:
            scale = np.sqrt(self.explained_variance_)
            # Of components without variance there is nothing to make one of.
            scale = np.maximum(scale, np.finfo(scale.dtype).eps)
        if is_sparse(X):
            projected = X @ V.T
            projected -= mean @ V.T
        elif len(X) < FEW_ROWS:
            projected = np.subtract(X, mean, order="C") @ V.T
        else:
            projected = times(X, V, mean)
        if not np.isfinite(projected.sum()) or not len(V):
            refuse_infinite(np.nan, X, type(self).__name__)
        if scale is not None:
            projected /= scale
        return projected

    @documented_by(_BasePCA.inverse_transform)
    @accelerated(unless=_not_native)
    def inverse_transform(self, X):
        """Turn components back into data."""
        check_is_fitted(self)
        X = check_array(X, input_name="X", dtype=[np.float64, np.float32])
        V = self.components_
        if self.whiten:
            V = np.sqrt(self.explained_variance_[:, None]) * V
        found = X @ V
        # In place if that leaves the type: IncrementalPCA's means of float32 rows are double.
        fits = np.result_type(found, self.mean_) == found.dtype
        return np.add(found, self.mean_, out=found if fits else None)
