"""Functions of two numbers, compiled and called for all elements of two vectors."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from fastml._runtime.dispatch import Unsupported, accelerated
from fastml.jit._function import Function, NotCompilable, unwrap
from fastml.jit._pairs import compile_pair, gram

_OF_PAIRS = "def of_pairs(x, y):\n    return f(y[0], y[1])\n"


def _of_pairs(f: Callable[..., Any]) -> Function:
    """The function of one vector of two numbers, as the second of two vectors."""
    function = unwrap(f)
    namespace: dict[str, Any] = {"f": function.python, "__name__": function.plain.__module__}
    exec(_OF_PAIRS, namespace)
    of_pairs: FunctionType = namespace["of_pairs"]
    of_pairs.__name__ = function.name
    return Function(of_pairs, reassociate=False)


def _refusal(f: Callable[..., Any], a: np.ndarray, b: np.ndarray) -> Unsupported | None:
    try:
        compile_pair(_of_pairs(f))
    except NotCompilable as error:
        return Unsupported(error.function, str(error), "rewrite it in what Numba compiles")
    return None


def _one_by_one(f: Callable[..., Any], a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.array([f(x, y) for x, y in zip(a, b, strict=True)], dtype=np.float64)


@accelerated(unless=_refusal, stock=_one_by_one)
def elements(f: Callable[..., Any], a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """f(a_i, b_i) for two vectors in double."""
    return gram(_of_pairs(f), np.zeros((1, 2)), np.stack([a, b], axis=1), symmetric=False)[0]
