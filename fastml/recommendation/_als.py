"""Explicit ratings by alternating least squares."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from sklearn.utils._param_validation import StrOptions

from fastml.linalg._svd import Rows, randomized_svd
from fastml.recommendation._alternating import Alternating
from fastml.recommendation._base import padded
from fastml.recommendation._explicit import Explicit


class ALS(Explicit, Alternating):
    """Matrix completion: ratings as products of factors of users and items, plus biases.

    Minimises, over the ratings r of users u for items i that were observed, the sum of
    (r - mu - b_u - b_i - u·v)², plus `alpha` times the squares of all factors and biases. With the
    items fixed that is a ridge regression for each user, with the users fixed one for each item;
    these are solved in turn, and the loss never increases.

    Parameters
    ----------
    n_components : int, default=50
        The number of factors.

    alpha : float or (float, float), default=10.0
        The penalty; two of them are that of users and that of items.

    weighted_alpha : bool, default=False
        Whether to multiply the penalty of a user or an item by the number of its ratings. `alpha`
        is much smaller then, about 0.05.

    biases : bool, default=True
        Whether there are biases of users and items and the global one, the mean of the ratings.

    nonnegative : bool, default=False
        Whether to keep the factors, though not the biases, from becoming negative.

    solver : {"auto", "cholesky", "cg", "blocks"}, default="auto"
        How rows are solved. "cholesky": exactly. "cg": `cg_steps` steps of conjugate gradients
        from the last solution, which is faster for many factors. "blocks": 64 factors at a time,
        exactly. "auto": the faster of the first two. Rows with few ratings, or very many, are
        always solved exactly.

    cg_steps : int, default=3
        The number of steps for "cg".

    init : {"random", "svd"}, default="random"
        The first factors of the items: drawn, or from a singular value decomposition of the ratings
        less their mean, with zeros where there are none.

    duplicates : {"raise", "mean", "last"}, default="raise"
        What to do with several ratings of the same pair.

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

    user_bias_, item_bias_ : ndarray of shape (n_users,) and (n_items,), or None
        The biases.

    global_bias_ : float
        The mean of the ratings; 0 without biases.

    loss_curve_ : list of float
        The objective after each iteration.

    n_iter_ : int
        The number of iterations.

    See Also
    --------
    ImplicitALS : For what users did, where they say nothing of what they do not like.

    Notes
    -----
    Ratings in double precision are computed in double precision, all others in single. The result
    does not depend on the number of threads.

    Examples
    --------
    >>> from fastml.recommendation import ALS
    >>> pairs = [["ann", "tea"], ["ann", "milk"], ["bob", "tea"], ["bob", "cocoa"]]
    >>> model = ALS(n_components=1, alpha=0.1, random_state=0).fit(pairs, [5, 1, 4, 2])
    >>> model.global_bias_
    3.0
    >>> model.predict([["ann", "cocoa"], ["eve", "tea"]]).round(1)
    array([1.7, 3.9], dtype=float32)
    >>> items, scores = model.recommend("ann", k=1)
    >>> items
    array([['cocoa']], dtype=object)
    """

    _parameter_constraints: ClassVar[dict] = {
        **Alternating._parameter_constraints,
        **Explicit._parameter_constraints,
        "nonnegative": ["boolean"],
        "init": [StrOptions({"random", "svd"})],
    }

    def __init__(
        self,
        n_components=50,
        *,
        alpha=10.0,
        weighted_alpha=False,
        biases=True,
        nonnegative=False,
        solver="auto",
        cg_steps=3,
        init="random",
        duplicates="raise",
        max_iter=15,
        tol=1e-4,
        random_state=None,
    ):
        self.n_components = n_components
        self.alpha = alpha
        self.weighted_alpha = weighted_alpha
        self.biases = biases
        self.nonnegative = nonnegative
        self.solver = solver
        self.cg_steps = cg_steps
        self.init = init
        self.duplicates = duplicates
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def _initial(self, matrix, random_state):
        f, n = self.n_components, matrix.shape[1]
        centred = matrix.data - matrix.dtype.type(self.global_bias_)
        V = padded(n, f, matrix.dtype)
        # Products of such factors are about as large as what they are to explain.
        size = np.sqrt(np.std(centred, dtype=np.float64) / np.sqrt(f)) or 1.0
        V[:, :f] = size * random_state.standard_normal((n, f))
        if self.init == "svd":
            kept = type(matrix)((centred, matrix.indices, matrix.indptr), shape=matrix.shape)
            k = min(f, *matrix.shape)
            # scikit-learn's would depend on the threads that BLAS has.
            _, s, Vt = randomized_svd(Rows(kept), k, random_state=random_state)
            V[:, :k] = (np.sqrt(s)[:, np.newaxis] * Vt).T
        if self.nonnegative:
            np.abs(V, out=V)
        return V

    def _sweep(self, state):
        of_users, of_items = self._alphas()
        users, items, U, V, bias = state
        method, f = self._method(), self.n_components
        _, first = self._half(users, V, bias[1], U, bias[0], of_users, method, f)
        error, second = self._half(items, U, bias[0], V, bias[1], of_items, method, f, measure=True)
        return error + first + second
