"""Functions of the user's, compiled by Numba and inlined into loops on all threads.

Numba is imported when the first function is compiled, not before.
"""

from fastml.jit._criterion import Criterion, criterion
from fastml.jit._function import NotCompilable, NotCompiledWarning
from fastml.jit._likelihood import Likelihood, likelihood
from fastml.jit._pairs import compile_pair, distances, gram, is_compiled, pair_address
from fastml.jit._scalar import ScalarKernel, kernel

__all__ = [
    "Criterion",
    "Likelihood",
    "NotCompilable",
    "NotCompiledWarning",
    "ScalarKernel",
    "compile_pair",
    "criterion",
    "distances",
    "gram",
    "is_compiled",
    "kernel",
    "likelihood",
    "pair_address",
]
