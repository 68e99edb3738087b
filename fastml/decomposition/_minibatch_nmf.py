"""Non-negative matrix factorisation from mini-batches."""

import warnings
from itertools import cycle
from math import ceil
from typing import Any

import numpy as np
from sklearn import config_context
from sklearn import decomposition as stock
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted, check_non_negative

from fastml._runtime.callbacks import CallbackSupportMixin, Task, fit_context, fit_task
from fastml._runtime.dispatch import accelerated
from fastml._runtime.docs import documented_by
from fastml._runtime.forks import unforked
from fastml._runtime.versioned import Versioned
from fastml.decomposition._descent import Penalties
from fastml.decomposition._factors import (
    Data,
    Factor,
    divergence,
    fitted,
    norm,
    reconstruction_error,
)
from fastml.decomposition._multiplication import Memory, Multiplication, summary
from fastml.decomposition._nmf import refuse_zeros, validated
from fastml.decomposition._nndsvd import Start

StockMiniBatchNMF = stock.MiniBatchNMF


@documented_by(StockMiniBatchNMF)
class MiniBatchNMF(Versioned, CallbackSupportMixin, Start, StockMiniBatchNMF):
    """Non-negative matrix factorisation from mini-batches, compiled.

    The same batches and updates as scikit-learn's, hence the same factors up to rounding. They
    do not depend on the number of threads.

    Examples
    --------
    >>> import numpy as np
    >>> from fastml.decomposition import MiniBatchNMF
    >>> X = np.array([[1, 1], [2, 1], [3, 1.2], [4, 1], [5, 0.8], [6, 1]])
    >>> model = MiniBatchNMF(n_components=2, init="random", random_state=0)
    >>> W = model.fit_transform(X)
    >>> W.shape, model.components_.shape
    ((6, 2), (2, 2))
    """

    @documented_by(StockMiniBatchNMF.fit)
    @accelerated
    def fit(self, X, y=None, **params):
        """Learn the factorisation of `X`."""
        self.fit_transform(X, **params)
        return self

    @documented_by(StockMiniBatchNMF.fit_transform)
    @accelerated
    @fit_context(prefer_skip_nested_validation=True)
    def fit_transform(self, X, y=None, W=None, H=None):
        """Learn the factorisation of `X` and return W."""
        X = validated(self, X)
        with config_context(assume_finite=True):
            check_non_negative(X, "MiniBatchNMF (input X)")
            self._check_params(X)
            refuse_zeros(X, self._beta_loss)
            W, H = self._check_w_h(Data(X).X, W, H, update_H=True)
            W, B = Factor(W), Factor(H.T)
            n_batches = ceil(X.shape[0] / self._batch_size)
            with fit_task(self, self.max_iter * n_batches, X=X, y=y) as task:
                self.n_steps_ = self._run(X, W, B, task)
                if self.fresh_restarts:
                    W = self._solve(Data(X), B, self._transform_max_iter)
                self.reconstruction_err_ = reconstruction_error(Data(X), W, B, self._beta_loss)
                self._set(H, B)
                task.attributes = {}
        self.n_iter_ = ceil(self.n_steps_ / n_batches)
        if self.n_iter_ == self.max_iter and self.tol > 0:
            warnings.warn(
                f"Maximum number of iterations {self.max_iter} reached. Increase it to improve "
                "convergence.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return W.values

    @documented_by(StockMiniBatchNMF.transform)
    @accelerated
    def transform(self, X):
        """Return W for the rows of `X`, with the H that was learnt."""
        check_is_fitted(self)
        X = validated(self, X, reset=False)
        return self._solve(Data(X), Factor(self.components_.T), self._transform_max_iter).values

    @documented_by(StockMiniBatchNMF.partial_fit)
    @accelerated
    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X, y=None, W=None, H=None):
        """Update the factorisation with one mini-batch."""
        begun = hasattr(self, "components_")
        X = validated(self, X, reset=not begun)
        if begun:
            H = self.components_
        else:
            self._check_params(X)
            _, H = self._check_w_h(Data(X).X, W=W, H=H, update_H=True)
            self.n_steps_ = 0
        B = Factor(H.T)
        if not begun:
            self._forget(B)
        memory = self._memory()
        self._step(Data(X), None, B, memory)
        self._remember(memory)
        self._set(H, B)
        self.n_steps_ += 1
        return self

    def _run(self, X: Any, W: Factor, B: Factor, task: Task) -> int:
        """Go through the batches until the factors do; return the number of steps."""
        n = X.shape[0]
        rows = list(gen_batches(n, self._batch_size))
        batches = [(Data(X[of]), W.at[of]) for of in rows]
        n_steps = self.max_iter * len(batches)
        self._forget(B)
        memory, before = self._memory(), B.at.copy()
        self._ewa_cost = self._ewa_cost_min = None
        self._no_improvement = 0
        for i, (batch, W_batch) in zip(range(n_steps), cycle(batches)):
            with task.subtask("batch") as step:
                cost = self._step(batch, W_batch, B, memory)
                step.attributes = lambda: fitted(B)
            with unforked():
                done = self._minibatch_convergence(batch.X, cost, B.at, before, n, i, n_steps)
            if done or step.stop:
                break
            before[:] = B.at
        self._remember(memory)
        return i + 1

    def _set(self, H: np.ndarray, B: Factor) -> None:
        # As in scikit-learn the components stay where those that they come from were, even if these
        # are the caller's.
        self.components_ = H if H.flags.writeable else np.empty_like(H)
        self.components_[:] = B.values.T
        self.n_components_ = B.k

    def _forget(self, B: Factor) -> None:
        self._components_numerator = B.values.T
        self._components_denominator = np.ones_like(self._components_numerator)

    def _memory(self) -> Memory:
        kept = self._components_numerator, self._components_denominator
        numerator, denominator = (Factor(values.T).at for values in kept)
        return Memory(numerator, denominator, self._rho)

    def _remember(self, memory: Memory) -> None:
        k = len(self._components_numerator)
        self._components_numerator = memory.numerator[:, :k].T.copy()
        self._components_denominator = memory.denominator[:, :k].T.copy()

    def _step(self, X: Data, W: np.ndarray | None, B: Factor, memory: Memory) -> float:
        """Update W, and H by what it makes of the batch; return the cost of a row in between."""
        penalties = self._penalties(X)
        solver = Multiplication(self._beta_loss, penalties)
        of_B = summary(B, self._beta_loss)
        fresh = self.fresh_restarts or W is None
        if fresh:
            solved = self._solve(X, B, self.fresh_restarts_max_iter).at
            if self._beta_loss < 1:
                solved[solved < np.finfo(np.float64).eps] = 0.0
            W = solved if W is None else W
            W[:] = solved
        made = solver.update_W(X, W, B, of_B, update=not fresh, back=not X.sparse)
        cost = divergence(X, Factor.of(W, B.k), B, self._beta_loss)
        for factor, l1, l2 in (
            (W, penalties.l1_W, penalties.l2_W),
            (B.at, penalties.l1_H, penalties.l2_H),
        ):
            if l1 or l2:
                cost += l1 * factor.sum() + l2 * (factor**2).sum()
        solver.update_H(X, W, B, made, memory)
        return cost / X.shape[0]

    def _penalties(self, X: Data) -> Penalties:
        return Penalties(*self._compute_regularization(X))

    def _solve(self, X: Data, B: Factor, max_iter: int) -> Factor:
        """Multiply W until it does not change, with H as it is."""
        start = np.sqrt(X.X.mean() / self._n_components)
        W = Factor(np.full((X.shape[0], B.k), start, dtype=X.dtype))
        before = W.at.copy()
        solver = Multiplication(self._beta_loss, self._penalties(X))
        of_B = summary(B, self._beta_loss)
        for _ in range(max_iter):
            solver.update_W(X, W.at, B, of_B, back=False)
            change = norm(W.at - before) / norm(W.at)
            if self.tol > 0 and change <= self.tol:
                break
            before[:] = W.at
        return W
