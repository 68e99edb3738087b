"""Metrics and kernels that are functions of the user's: `fastml.jit` compiles them."""

from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.metrics.pairwise import check_pairwise_arrays

from fastml._runtime import config
from fastml._runtime.dispatch import Unsupported

# Compiling takes about as long as Python does for so many pairs.
WORTH_COMPILING = 200_000


def stored(X: Any, Y: Any) -> bool:
    """Whether there are sparse rows."""
    return issparse(X) or issparse(Y)


def function_refusal(f: Any, X: Any, Y: Any, kwds: dict[str, Any]) -> Unsupported | None:
    """Why Python has to call a function of two rows pair by pair."""
    try:
        from fastml import jit
        from fastml.jit import _function
    except ImportError:
        return Unsupported("metric", "functions are not compiled here", "use a metric by name")
    if stored(X, Y) and not isinstance(f, jit.ScalarKernel):
        # It is given sparse rows, and calls their methods.
        reason = "functions of sparse rows are not compiled"
        return Unsupported("X", reason, "write it for vectors, with fastml.jit.kernel")
    matrices = [Z if issparse(Z) else np.asarray(Z) for Z in (X, Y) if Z is not None]
    if any(Z.ndim != 2 or Z.dtype.kind not in "biuf" for Z in matrices):
        return Unsupported("X", "functions are compiled for rows of numbers", "pass a matrix")
    dtype = np.result_type(*(Z.dtype for Z in matrices))
    try:
        n_pairs = matrices[0].shape[0] * matrices[-1].shape[0]
        few = n_pairs < WORTH_COMPILING and not config.get("strict")
        if few and not isinstance(f, jit.ScalarKernel) and not jit.is_compiled(f, dtype, **kwds):
            reason = "there are too few pairs to make up for compiling the function"
            return Unsupported("metric", reason, "compile it with fastml.jit.kernel")
        jit.compile_pair(f, dtype, **kwds)
    except jit.NotCompilable as error:
        _function.warn_of(error)
        return Unsupported("metric", str(error), "rewrite it in what Numba compiles")
    return None


def by_function(
    stock: Any, f: Any, X: Any, Y: Any, n_jobs: int | None, kwds: dict[str, Any]
) -> np.ndarray:
    """f of all pairs of rows; as in scikit-learn, f(x, y) = f(y, x) is taken for granted."""
    from fastml import jit
    from fastml.jit import _function

    checked = check_pairwise_arrays(X, Y, dtype=None, accept_sparse=stored(X, Y) and "csr")
    same = checked[0] is checked[1]
    if stored(*checked):
        return f(checked[0], None if same else checked[1], **kwds)
    try:
        return jit.distances(f, checked[0], None if same else checked[1], **kwds)
    except jit.NotCompilable as error:  # it raises, compiled, where Python does not
        _function.warn_of(error)
        return stock(X, Y, f, n_jobs=n_jobs, **kwds)
