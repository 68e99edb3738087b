"""Ratings that say what people think, whatever way factors are found for them."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils._param_validation import Interval

from fastml._native import als as native
from fastml._runtime.threads import n_threads
from fastml.recommendation._alternating import Side
from fastml.recommendation._base import Factorization, padded, padded_copy
from fastml.recommendation._ratings import entries_of, values_of


class Explicit(RegressorMixin, Factorization):
    """Squared errors of ratings, and the squares of all factors and biases as the penalty."""

    _parameter_constraints: ClassVar[dict] = {
        **Factorization._parameter_constraints,
        "alpha": [Interval(Real, 0, None, closed="left"), tuple, list],
        "weighted_alpha": ["boolean"],
        "biases": ["boolean"],
    }
    nonnegative = False

    def score(self, X, y=None):
        """Return the coefficient of determination of the predictions.

        Parameters
        ----------
        X : array-like or frame of shape (n, 2), or sparse matrix of shape (n_users, n_items)
            Pairs, or a matrix whose stored entries are the ratings.

        y : array-like of shape (n,), default=None
            The ratings of the pairs.

        Returns
        -------
        score : float
            1 less the squared errors over the squared deviations of the ratings from their mean.
        """
        predicted = self.predict(X)
        ratings = entries_of(X)[2] if y is None else y
        return float(r2_score(values_of(ratings, len(predicted)), predicted))

    def _center(self, matrix):
        self._alphas()
        return float(matrix.data.mean(dtype=np.float64)) if self.biases else 0.0

    def _side(self, matrix: Any) -> Side:
        return Side.of(matrix, matrix.data - matrix.dtype.type(self.global_bias_))

    def _half(
        self,
        rows: Side,
        fixed: np.ndarray,
        offset: np.ndarray | None,
        x: np.ndarray,
        bias: np.ndarray | None,
        alpha: float,
        method: str,
        f: int,
        measure: bool = False,
    ) -> tuple[float, float]:
        """Solve for one side in place; return the squared errors, if measured, and the penalty."""
        steps = 30 if self.nonnegative else self.cg_steps if method == "cg" else 1
        return native.solve_rows(
            fixed,
            f,
            *rows,
            offset,
            x,
            bias,
            alpha,
            self.weighted_alpha,
            method,
            steps,
            self.nonnegative,
            measure,
            n_threads(),
        )

    def _solve_rows(self, rows, of_items):
        fixed, offset = self.item_factors_, self.item_bias_
        if of_items:
            fixed, offset = self.user_factors_, self.user_bias_
        f = fixed.shape[1]  # which n_components need not be any more
        x = padded(rows.shape[0], f, fixed.dtype)
        bias = np.zeros(len(x), x.dtype) if self.user_bias_ is not None else None
        alpha = self._alphas()[of_items]
        self._half(self._side(rows), padded_copy(fixed), offset, x, bias, alpha, "cholesky", f)
        return x[:, :f].copy(), bias
