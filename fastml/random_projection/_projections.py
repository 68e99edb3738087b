"""Random projections: scikit-learn's matrices, drawn and multiplied faster."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, get_blas_funcs, lapack
from scipy.sparse import csr_matrix, issparse
from sklearn import get_config
from sklearn import random_projection as stock
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from fastml._native import projection as native
from fastml._native.rows import Rows
from fastml._runtime.beside import beside
from fastml._runtime.dispatch import accelerated
from fastml._runtime.docs import documented_by
from fastml._runtime.sparse import with_short_indices
from fastml._runtime.threads import n_threads
from fastml._runtime.versioned import Versioned
from fastml.metrics._rows import sparse_product

StockGaussian, StockSparse = stock.GaussianRandomProjection, stock.SparseRandomProjection

FEW = 8  # rows for which a panel of them would be mostly empty
WELL = 1e-3  # reciprocal condition of S Sᵀ from which on its factor inverts as well as the SVD


class _Projection(Versioned):
    """What both kinds of projections have in common."""

    def _rows(self, X: Any) -> Any:
        check_is_fitted(self)
        X = validate_data(
            self, X, accept_sparse=["csr", "csc"], reset=False, dtype=[np.float64, np.float32]
        )
        return X.tocsr() if issparse(X) else X

    def _compute_inverse_components(self):
        """The pseudo-inverse: of a wide S, Sᵀ (S Sᵀ)⁻¹, as long as that is well conditioned."""
        S = self.components_
        S = S.toarray() if issparse(S) else S
        wide = S if len(S) <= S.shape[1] else S.T
        exact = wide.astype(np.float64, copy=False)
        gram = exact @ exact.T
        try:
            factor = cho_factor(gram, check_finite=False)
        except LinAlgError:
            return super()._compute_inverse_components()
        if lapack.dpocon(factor[0], np.linalg.norm(gram, 1))[0] < WELL:
            return super()._compute_inverse_components()
        inverse = cho_solve(factor, exact, check_finite=False)
        inverse = inverse.T if wide is S else inverse
        return inverse.astype(S.dtype, copy=False)

    @documented_by(stock.BaseRandomProjection.inverse_transform)
    @accelerated
    def inverse_transform(self, X):
        """Map projections back to rows that have them."""
        check_is_fitted(self)
        X = check_array(X, dtype=[np.float64, np.float32], accept_sparse=("csr", "csc"))
        kept = self.compute_inverse_components
        inverse = self.inverse_components_ if kept else self._compute_inverse_components()
        return _of_dense(X.tocsr(), inverse) if issparse(X) else _by_blas(X, inverse)


def _check_width(X: Any, W: Any) -> None:
    if X.shape[1] != W.shape[1]:
        raise ValueError(f"X has {X.shape[1]} columns, which should be {W.shape[1]} here.")


def _by_blas(X: np.ndarray, W: np.ndarray) -> np.ndarray:
    """X Wᵀ with the GIL, so that no thread of Python's can fork: OpenBLAS does not survive that."""
    _check_width(X, W)
    return get_blas_funcs("gemm", (X, W))(1.0, W.T, X.T, trans_a=True).T


def _of_dense(X: Any, W: np.ndarray) -> np.ndarray:
    """X Wᵀ for X in CSR."""
    _check_width(X, W)
    dtype = np.result_type(X.dtype, W.dtype)
    if X.shape[0] < FEW:
        columns = np.unique(X.indices)
        return X[:, columns].toarray() @ W[:, columns].T
    W = np.ascontiguousarray(W, dtype=dtype)
    out = np.empty((X.shape[0], len(W)), dtype)
    native.project(
        Rows(W), Rows(with_short_indices(X.astype(dtype, copy=False))), True, out, n_threads()
    )
    return out


@documented_by(StockGaussian)
class GaussianRandomProjection(_Projection, StockGaussian):
    """Projection by a dense Gaussian matrix, compiled for sparse rows.

    The same `random_state` draws the matrix that scikit-learn draws. Dense rows are multiplied by
    BLAS; sparse ones meet some rows of the matrix at a time, on all threads.

    Examples
    --------
    >>> import numpy as np
    >>> from fastml.random_projection import GaussianRandomProjection
    >>> X = np.random.default_rng(0).normal(size=(25, 3000))
    >>> Z = GaussianRandomProjection(500, random_state=0).fit_transform(X)
    >>> Z.shape
    (25, 500)
    >>> bool(abs((Z**2).sum(axis=1) / (X**2).sum(axis=1) - 1).max() < 0.2)
    True
    """

    @documented_by(StockGaussian.fit)
    @accelerated
    def fit(self, X, y=None):
        """Draw the matrix."""
        return super().fit(X, y)

    @documented_by(StockGaussian.transform)
    @accelerated
    def transform(self, X):
        """Multiply rows by the matrix."""
        X = self._rows(X)
        return (_of_dense if issparse(X) else _by_blas)(X, self.components_)


@documented_by(StockSparse)
class SparseRandomProjection(_Projection, StockSparse):
    """Projection by a sparse matrix of random signs, compiled.

    The same `random_state` draws the matrix that scikit-learn draws, without a call of Python for
    each of its entries. Rows are multiplied by it some at a time, on all threads.

    Examples
    --------
    >>> import numpy as np
    >>> from fastml.random_projection import SparseRandomProjection
    >>> X = np.random.default_rng(0).normal(size=(25, 3000))
    >>> projection = SparseRandomProjection(500, random_state=0).fit(X)
    >>> round(float(projection.density_), 4)
    0.0183
    >>> projection.transform(X).shape
    (25, 500)
    """

    @documented_by(StockSparse.fit)
    @accelerated
    def fit(self, X, y=None):
        """Draw the matrix."""
        return super().fit(X, y)

    def _make_random_matrix(self, n_components, n_features):
        rng = check_random_state(self.random_state)
        self.density_ = stock._check_density(self.density, n_features)
        return _signs(n_components, n_features, self.density_, rng)

    @documented_by(StockSparse.transform)
    @accelerated
    def transform(self, X):
        """Multiply rows by the matrix."""
        given = X
        X, S = self._rows(X), self.components_
        _check_width(X, S)  # which has been checked by what the fit saw, but S may have changed
        if not issparse(S):
            return (_of_dense if issparse(X) else _by_blas)(X, S)
        if issparse(X) and not self.dense_output:
            Z = sparse_product(*_alike(X, S), like=_stock_product)
            # All formats but these two become CSR when they are checked.
            return Z.asformat("csc" if issparse(given) and given.format == "csc" else "csr")
        if X.shape[0] < FEW and not issparse(X):
            return np.ascontiguousarray((S @ X.T).T)
        S, back = beside(self, [S], lambda: _sound(S))
        X, S = _alike(X, back if issparse(X) else S)
        out = np.empty((X.shape[0], self.components_.shape[0]), X.dtype)
        if issparse(X):
            native.project_sparse(Rows(with_short_indices(X)), Rows(S), out, n_threads())
        else:
            native.project(Rows(np.ascontiguousarray(X)), Rows(S), False, out, n_threads())
        return out


def _alike(X: Any, S: Any) -> tuple[Any, Any]:
    """Both in the dtype that they have in common."""
    dtype = np.result_type(X.dtype, S.dtype)
    return X.astype(dtype, copy=False), S.astype(dtype, copy=False)


def _sound(S: Any) -> tuple[Any, Any]:
    """The matrix and its transpose, of which kernels read entries without looking.

    A model may come out of a file.
    """
    S = S.tocsr()
    S.check_format(full_check=True)
    return with_short_indices(S), with_short_indices(S.T.tocsr())


def _signs(m: int, d: int, density: float, rng: Any) -> Any:
    """The matrix of random signs, in CSR unless all of it is full."""
    stock._check_input_size(m, d)
    scale = np.sqrt(1 / density) / np.sqrt(m)
    if density == 1:
        return np.where(_tosses(rng, (m, d)), scale, -scale)
    bits, pool, rows = rng._bit_generator, np.zeros(d, np.int32), []
    for _ in range(m):
        chosen = np.empty(rng.binomial(d, density), np.int32)
        with bits.lock:
            native.choose(bits.capsule, d, chosen, pool)
        rows.append(chosen)
    indices = np.concatenate(rows)
    indptr = np.cumsum([0, *map(len, rows)])
    data = np.where(_tosses(rng, len(indices)), scale, -scale)
    return _kind(get_config().get("sparse_interface"))((data, indices, indptr), shape=(m, d))


def _tosses(rng: Any, size: Any) -> np.ndarray:
    """What `rng.binomial(1, 0.5, size)` draws, and from the same numbers."""
    return rng.random_sample(size) > 0.5


@cache
def _kind(interface: str | None) -> Any:
    """Of sparse matrices that scikit-learn makes: it depends on its version as well."""
    return type(stock._sparse_random_matrix(1, 2, density=0.5, random_state=0))


def _stock_product(X: Any, Y: Any, dense_output: bool) -> Any:
    model = StockSparse(1, dense_output=dense_output).fit(csr_matrix((1, 1)))
    model.components_ = Y
    return model.transform(X)
