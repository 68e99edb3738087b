"""`@criterion`: a Python function of a node's statistics as what trees split by."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

from fastml.jit._function import Decorated, Function, NotCompilable, unwrap
from fastml.jit._pairs import pair_address

_OF_TWO = "def of_two(x, y):\n    return f(x)\n"


class Criterion(Decorated):
    """An impurity given as a function of a node's statistics; made by `fastml.jit.criterion`.

    Called with the statistics it is the function. Copies and clones are the object itself.

    Attributes
    ----------
    __wrapped__ : callable
        The function in Python.
    """

    def __init__(self, f: Callable[..., Any]) -> None:
        f = f.__wrapped__ if isinstance(f, Criterion) else f
        super().__init__(f, Function(unwrap(f).python, reassociate=False))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Criterion) and self.function == other.function

    def __hash__(self) -> int:
        return hash(self.function.python)

    def address(self) -> int:
        """Of the compiled function of two vectors, the second of which is not used."""
        plain = self.function.plain
        if plain.__code__.co_argcount != 1:
            raise NotCompilable(self.function.name, "it has to take one vector, the statistics")
        namespace: dict[str, Any] = {"f": self.function.python, "__name__": plain.__module__}
        exec(_OF_TWO, namespace)
        of_two: FunctionType = namespace["of_two"]
        of_two.__name__ = self.function.name
        return pair_address(Function(of_two, reassociate=False))


def criterion(f: Callable[..., Any]) -> Criterion:
    """Say that a function is an impurity, for trees and forests of fastml's to split by.

    A split is the better the lower the sum of its two sides' impurities, each times the weight of
    its rows. The function is compiled when the first tree is grown, and called on all threads.

    Parameters
    ----------
    f : callable
        ``f(statistics)``, to a number that is zero for a node which needs no further split. The
        statistics are a vector: for a classifier the weight of each class, for a regressor the sums
        over the rows of the weights, of the weighted targets, and of the weighted squares of the
        targets. It cannot be written to. Splits for which the function is NaN, or raises, are not
        made; if it is or does for all rows, the fit raises.

    Returns
    -------
    Criterion
        To be given as `criterion` to the trees of `fastml.tree` and the forests of
        `fastml.ensemble`.

    Examples
    --------
    >>> from fastml.jit import criterion
    >>> from fastml.tree import DecisionTreeClassifier
    >>> @criterion
    ... def root_error(weights):
    ...     total, largest = 0.0, 0.0
    ...     for w in weights:
    ...         total += w
    ...         largest = max(largest, w)
    ...     return (1 - largest / total) ** 0.5
    >>> tree = DecisionTreeClassifier(criterion=root_error, random_state=0)
    >>> tree.fit([[0], [1], [2], [3]], [0, 0, 1, 1]).predict([[0.5], [2.5]])
    array([0, 1])
    """
    return Criterion(f)
