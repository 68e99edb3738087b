"""Implicit feedback by alternating least squares."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.utils._param_validation import Interval

from fastml._native import als as native
from fastml._native.gemm import gemm
from fastml._runtime.threads import n_threads
from fastml.metrics._ranking import ndcg_at_k
from fastml.recommendation._alternating import Alternating, Side
from fastml.recommendation._base import padded, padded_copy
from fastml.recommendation._ratings import csr_of, entries_of, pairs_of, values_of


class ImplicitALS(Alternating):
    """Factors for what users did: how often they listened, bought or looked.

    Minimises the sum over all pairs of users and items, observed or not, of c (p - u·v)², plus
    `alpha` times the squares of all factors: p is 1 where there is a value r above 0 and else 0,
    and the confidence in it is c = 1 + `confidence`·r, as Hu, Koren and Volinsky (2008) have it.
    That something was not observed tells a little; that it was, more.

    Parameters
    ----------
    n_components : int, default=50
        The number of factors.

    alpha : float, default=0.01
        The penalty.

    confidence : float, default=1.0
        How much more an observed value of 1 counts than none.

    solver : {"auto", "cholesky", "cg", "blocks"}, default="auto"
        How rows are solved. "cholesky": exactly. "cg": `cg_steps` steps of conjugate gradients
        from the last solution, which is faster for many factors. "blocks": 64 factors at a time,
        exactly. "auto": the faster of the first two. Rows with few values are always solved
        exactly.

    cg_steps : int, default=2
        The number of steps for "cg".

    duplicates : {"raise", "mean", "last"}, default="raise"
        What to do with several values of the same pair.

    max_iter : int, default=15
        The most iterations, each of which solves for all users and all items.

    tol : float, default=1e-4
        Iterations end when one lowers the loss by no more than this share of it.

    random_state : int, RandomState instance or None, default=None
        Decides the first factors. An int makes fits repeatable.

    Attributes
    ----------
    user_ids_, item_ids_ : ndarray of shape (n_users,) and (n_items,)
        Who and what the rows of the factors are of. Of a matrix, the numbers of rows and columns.

    user_factors_, item_factors_ : ndarray of shape (n_users, n_components) and \
            (n_items, n_components)
        The factors.

    user_bias_, item_bias_ : None
        There are none.

    global_bias_ : float
        0.

    loss_curve_ : list of float
        The objective after each iteration.

    n_iter_ : int
        The number of iterations.

    See Also
    --------
    ALS : For ratings.

    Notes
    -----
    Rows are solved in a basis in which what was not observed is a penalty of 1: with
    VᵀV + alpha·I = RᵀR, of V·R⁻¹ for R·u. There conjugate gradients converge in a few steps, and
    rows with few values are systems of as few unknowns. Values in double precision are computed in
    double precision, all others in single. The result does not depend on the number of threads.

    Examples
    --------
    >>> from fastml.recommendation import ImplicitALS
    >>> heard = [["ann", "jazz"], ["ann", "soul"], ["bob", "jazz"], ["bob", "soul"],
    ...          ["bob", "funk"], ["eve", "rock"], ["eve", "punk"]]
    >>> model = ImplicitALS(n_components=2, random_state=0).fit(heard)
    >>> items, scores = model.recommend(["ann"], k=1)
    >>> items
    array([['funk']], dtype=object)
    """

    _parameter_constraints: ClassVar[dict] = {
        **Alternating._parameter_constraints,
        "alpha": [Interval(Real, 0, None, closed="left")],
        "confidence": [Interval(Real, 0, None, closed="neither")],
    }
    _ones = True

    def __init__(
        self,
        n_components=50,
        *,
        alpha=0.01,
        confidence=1.0,
        solver="auto",
        cg_steps=2,
        duplicates="raise",
        max_iter=15,
        tol=1e-4,
        random_state=None,
    ):
        self.n_components = n_components
        self.alpha = alpha
        self.confidence = confidence
        self.solver = solver
        self.cg_steps = cg_steps
        self.duplicates = duplicates
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def score(self, X, y=None):
        """Return the mean NDCG of ten recommendations to users, by what they did besides.

        Parameters
        ----------
        X : array-like or frame of shape (n, 2), or sparse matrix of shape (n_users, n_items)
            What users did that was not in the fit.

        y : array-like of shape (n,), default=None
            Values of pairs; those above 0 count.

        Returns
        -------
        score : float
            The mean of `fastml.metrics.ndcg_at_k` over the users of X. Users and items that the
            fit did not know are left out; 0 if none are left.
        """
        self._check_fitted()
        users, items = pairs_of(X, self._table.users, self._table.items)
        known = (users >= 0) & (items >= 0)
        if y is not None or sparse.issparse(X):
            known &= values_of(entries_of(X)[2] if y is None else y, len(users)) > 0
        places, row = np.unique(users[known], return_inverse=True)
        if len(places) == 0:
            return 0.0
        ones = np.ones(len(row), np.float32)
        liked = csr_of(row.ravel(), items[known], ones, (len(places), len(self.item_ids_)))
        return ndcg_at_k(liked, self._rank(places, 10, filter_seen=True)[0])

    def _center(self, matrix):
        return 0.0

    def _side(self, matrix: Any) -> Side:
        if (matrix.data < 0).any():
            raise ValueError("Values of implicit feedback must not be negative.")
        weight = matrix.data * matrix.dtype.type(self.confidence)
        scale = np.sqrt(weight)
        target = np.divide(1 + weight, scale, out=np.zeros_like(scale), where=scale > 0)
        return Side.of(matrix, target, scale)

    def _initial(self, matrix, random_state):
        f, n = self.n_components, matrix.shape[1]
        V = padded(n, f, matrix.dtype)
        V[:, :f] = 0.01 * random_state.standard_normal((n, f))
        return V

    def _half(
        self,
        rows: Side,
        fixed: np.ndarray,
        x: np.ndarray,
        method: str,
        f: int,
        measure: bool = False,
    ) -> tuple[float, float]:
        """Solve for x in place; the loss less that of the fixed side, and the squares of that."""
        ld, dtype, threads = fixed.shape[1], fixed.dtype, n_threads()
        gram, root, inverse = np.empty((f, f)), np.empty((ld, ld)), np.empty((ld, ld))
        native.gram(fixed, gram, threads)
        native.whitening(gram, self.alpha, root, inverse)
        white, white_x = padded(len(fixed), f, dtype), padded(len(x), f, dtype)
        gemm(fixed, np.ascontiguousarray(inverse.T, dtype), white, threads)
        if method != "cholesky":
            gemm(x, root.astype(dtype), white_x, threads)
        steps = self.cg_steps if method == "cg" else 1
        error, penalty = native.solve_rows(
            white, f, *rows, None, white_x, None, 1.0, False, method, steps, False, measure, threads
        )
        gemm(white_x, inverse.astype(dtype), x, threads)
        return error + penalty, float(gram.trace())

    def _sweep(self, state):
        users, items, U, V, _ = state
        method, f = self._method(), self.n_components
        self._half(users, V, U, method, f)
        loss, squares = self._half(items, U, V, method, f, measure=True)
        return loss + self.alpha * squares + self._constant(users)

    def _constant(self, rows: Side) -> float:
        """What the loss is with factors of zero: the sum of c over what was observed."""
        observed = rows.scale[rows.scale > 0]
        return float(len(observed) + np.square(observed).sum(dtype=np.float64))

    def _solve_rows(self, rows, of_items):
        fixed = self.user_factors_ if of_items else self.item_factors_
        f = fixed.shape[1]  # which n_components need not be any more
        x = padded(rows.shape[0], f, fixed.dtype)
        if len(x):
            self._half(self._side(rows), padded_copy(fixed), x, "cholesky", f)
        return x[:, :f].copy(), None
