"""Principal component analysis, batch by batch."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import decomposition as stock
from sklearn.utils import gen_batches
from sklearn.utils.extmath import svd_flip
from sklearn.utils.validation import validate_data

from fastml._native import scaling
from fastml._runtime.callbacks import CallbackSupportMixin, fit_context, fit_task
from fastml._runtime.dispatch import Unsupported, accelerated
from fastml._runtime.docs import documented_by
from fastml._runtime.forks import unforked
from fastml._runtime.threads import n_threads
from fastml._runtime.versioned import Versioned
from fastml.decomposition._projection import Projection
from fastml.decomposition._spectra import spectrum
from fastml.preprocessing._matrix import foreign, is_sparse, readable

StockIncrementalPCA = stock.IncrementalPCA


def _not_native(self: Any, X: Any, *args: Any, **kwargs: Any) -> Unsupported | None:
    return foreign(X)


@documented_by(StockIncrementalPCA)
class IncrementalPCA(Versioned, CallbackSupportMixin, Projection, StockIncrementalPCA):
    """Principal component analysis batch by batch, compiled.

    What each batch makes of the components is what scikit-learn makes of it. It is found from
    products of columns, or of rows where those are fewer, and by LAPACK where products would lose
    digits.

    Examples
    --------
    >>> import numpy as np
    >>> from fastml.decomposition import IncrementalPCA
    >>> X = np.random.default_rng(0).normal(size=(300, 4)) * [4, 2, 1, 1]
    >>> pca = IncrementalPCA(n_components=2, batch_size=100).fit(X)
    >>> int(pca.n_samples_seen_)
    300
    >>> pca.partial_fit(X).transform(X).shape
    (300, 2)
    """

    @documented_by(StockIncrementalPCA.fit)
    @accelerated(unless=_not_native)
    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        """Find the principal components of `X` in batches of rows."""
        self.components_ = None
        self.n_samples_seen_ = 0
        self.mean_ = self.var_ = 0.0
        X = validate_data(
            self, X, accept_sparse=["csr", "csc", "lil"], dtype=[np.float64, np.float32]
        )
        n, d = X.shape
        self.batch_size_ = 5 * d if self.batch_size is None else self.batch_size
        batches = list(gen_batches(n, self.batch_size_, min_batch_size=self.n_components or 0))
        X = X.tocsr() if is_sparse(X) else X
        with fit_task(self, len(batches), X=X) as task:
            for batch in batches:
                with task.subtask("batch") as step:
                    rows = X[batch]
                    self._take(rows.toarray() if is_sparse(rows) else rows)
                    step.attributes = {}
                if step.stop:
                    break
        return self

    @documented_by(StockIncrementalPCA.partial_fit)
    @accelerated(unless=_not_native)
    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X, y=None, check_input=True):
        """Take the rows of `X` into account, as one batch."""
        first = not hasattr(self, "components_")
        if check_input:
            if is_sparse(X):
                raise TypeError(
                    "IncrementalPCA.partial_fit does not support sparse input. Either convert data "
                    "to dense or use IncrementalPCA.fit to do so in batches."
                )
            X = validate_data(self, X, dtype=[np.float64, np.float32], reset=first)
        if first:
            self.components_ = None
            self.n_samples_seen_ = 0
            self.mean_ = self.var_ = 0.0
        self._take(X, first)
        return self

    def _count_components(self, n: int, d: int, first: bool) -> int:
        k, known = self.n_components, self.components_
        if k is None:
            k = min(n, d) if known is None else len(known)
        elif k > d:
            raise ValueError(
                f"n_components={k!r} invalid for n_features={d}, need more rows than columns for "
                "IncrementalPCA processing"
            )
        elif k > n and first:
            raise ValueError(
                f"n_components={k} must be less or equal to the batch number of samples {n} for "
                "the first partial_fit call."
            )
        if known is not None and len(known) != k:
            raise ValueError(
                f"Number of input features has changed from {len(known)} to {k} between calls to "
                "partial_fit! Try setting n_components to a fixed value."
            )
        return k

    @unforked()
    def _take(self, X: np.ndarray, first: bool = False) -> None:
        n, d = X.shape
        self.n_components_ = k = self._count_components(n, d, first)
        seen = self.n_samples_seen_
        count, batch_mean, square = np.empty((3, d))
        scaling.moments(readable(X), None, count, batch_mean, square, n_threads())
        total = seen + n
        off = self.mean_ - batch_mean
        variance = (seen * self.var_ + square + seen * n / total * off**2) / total
        mean = batch_mean + seen / total * off
        Z = X - batch_mean.astype(X.dtype)
        if seen > 0:
            before = self.singular_values_[:, None] * self.components_
            Z = np.vstack((before, Z, np.sqrt(seen * n / total) * off))
        found = spectrum(Z, np.zeros(d), k)
        _, vectors = svd_flip(None, found.vectors[:k].astype(Z.dtype), u_based_decision=False)
        with np.errstate(divide="ignore", invalid="ignore"):
            explained = np.ldexp(found.squares[:k], 2 * found.exponent) / (total - 1)
            ratio = np.ldexp(found.squares[:k], 2 * found.exponent) / (variance * total).sum()
        self.n_samples_seen_ = np.float64(total)  # as scikit-learn counts them
        self.components_ = vectors
        self.singular_values_ = np.ldexp(np.sqrt(found.squares[:k]), found.exponent).astype(Z.dtype)
        self.mean_, self.var_ = mean, variance
        self.explained_variance_ = explained
        self.explained_variance_ratio_ = ratio
        self.noise_variance_ = 0.0
        if k not in (n, d):
            left = found.squares[k:].sum() if len(found.squares) > k else None
            left = max(found.total - found.squares.sum(), 0) if left is None else left
            left = np.ldexp(left, 2 * found.exponent)
            self.noise_variance_ = left / (total - 1) / (min(Z.shape) - k)
