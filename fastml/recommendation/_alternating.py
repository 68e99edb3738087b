"""Solving for users and for items in turn."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from fastml.recommendation._base import Factorization, padded
from fastml.recommendation._ratings import Table


class Side(NamedTuple):
    """The rows of one side, users or items, as the kernels take them."""

    indptr: np.ndarray
    indices: np.ndarray
    target: np.ndarray
    scale: np.ndarray | None

    @classmethod
    def of(cls, matrix: Any, target: np.ndarray, scale: np.ndarray | None = None) -> Side:
        short = matrix.indices.astype(np.int32, copy=False)
        return cls(matrix.indptr.astype(np.intp), short, target, scale)


class Turns(NamedTuple):
    """What the two sides solve: by the ratings of each, for its factors and biases."""

    users: Side
    items: Side
    U: np.ndarray
    V: np.ndarray
    bias: tuple[np.ndarray | None, np.ndarray | None]


class Alternating(Factorization):
    """Regressions of users on the factors of items, and the other way round.

    What differs is in the methods that are not implemented here.
    """

    _parameter_constraints: ClassVar[dict] = {
        **Factorization._parameter_constraints,
        "solver": [StrOptions({"auto", "cholesky", "cg", "blocks"})],
        "cg_steps": [Interval(Integral, 1, None, closed="left")],
    }
    _largest_exact = 32  # so many factors are solved for exactly by default

    def _begin(self, table: Table, random_state: np.random.RandomState) -> Turns:
        matrix = table.matrix
        return Turns(
            self._side(matrix),
            self._side(matrix.tocsc()),
            padded(len(table.users), self.n_components, matrix.dtype),
            self._initial(matrix, random_state),
            self._empty_biases(table),
        )

    def _fitted(self, state: Turns, losses: list[float]) -> dict[str, Any]:
        f = self.n_components
        return {
            "user_factors_": state.U[:, :f].copy(),
            "item_factors_": state.V[:, :f].copy(),
            "user_bias_": state.bias[0],
            "item_bias_": state.bias[1],
            "loss_curve_": list(losses),
            "n_iter_": len(losses),
        }

    def _empty_biases(self, table: Table) -> tuple[np.ndarray | None, np.ndarray | None]:
        if not getattr(self, "biases", False):
            return None, None
        dtype = table.matrix.dtype
        return np.zeros(len(table.users), dtype), np.zeros(len(table.items), dtype)

    def _method(self) -> str:
        """How rows with many entries are solved."""
        if self.solver != "auto":
            return self.solver
        return "cholesky" if self.n_components <= self._largest_exact else "cg"

    def _initial(self, matrix: Any, random_state: np.random.RandomState) -> np.ndarray:
        """The factors of the items to begin with."""
        raise NotImplementedError

    def _side(self, matrix: Any) -> Side:
        """Rows (of a CSR matrix) or columns (of a CSC matrix) and what is wanted of them."""
        raise NotImplementedError
