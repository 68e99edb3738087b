"""Compiled functions over all pairs of rows, and as addresses for compiled loops."""

from __future__ import annotations

import threading
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fastml._runtime.threads import n_threads as allowed_threads
from fastml.jit._function import Function, NotCompilable, addresses, identity, slots, unwrap

# Compiled code by what it depends on, or why there is none. Never emptied: addresses are out.
_compiled: dict[Hashable, Any] = {}
_lock = threading.RLock()

INPUT = ("float64", "float32", "int64", "int32", "int16", "int8", "uint8", "bool")


@dataclass(frozen=True)
class Pairs:
    """A compiled function with its parameters, ready to run over the pairs of rows.

    Attributes
    ----------
    dtype, out_dtype : dtype
        Of the rows, and of the results.
    """

    function: Function
    params: dict[str, Any]
    dtype: np.dtype
    out_dtype: np.dtype
    address: int
    _arrays: list[np.ndarray]
    _words: np.ndarray

    def run(
        self, X: np.ndarray, Y: np.ndarray, out: np.ndarray, symmetric: bool, n_threads: int
    ) -> None:
        """Write f(x_i, y_j) to `out` (n, m); all arrays in C order, X is Y if symmetric.

        Raises what the function raises.
        """
        from fastml._native.jit import pair_matrix

        if out.size == 0:
            return
        failed = pair_matrix(
            out, self.address, self._words, _bytes(X), _bytes(Y), X.shape[1], symmetric, n_threads
        )
        if failed >= 0:
            i, j = divmod(failed, out.shape[1])
            self.function.python(X[i], Y[j], **(dict(self.function.fixed) | self.params))
            raise NotCompilable(
                self.function.name,
                f"compiled, it raises for rows {i} and {j}; in Python it does not",
            )


def compile_pair(f: Any, dtype: Any = np.float64, out_dtype: Any = None, **params: Any) -> Pairs:
    """Compile a function of two vectors, or find it compiled.

    Parameters
    ----------
    f : callable
        ``f(x, y, **params)`` of two vectors, to a real number: a Python function, a function
        compiled by Numba, a `functools.partial` that binds keywords, or a `ScalarKernel`.

    dtype, out_dtype : dtype, default=float64
        Of the vectors, and of what is stored; that is float32 for float32 and else float64.

    **params : numbers, arrays, strings, None, tuples of these, or functions
        Parameters. Numbers and arrays can be others in the next call; the rest is compiled in.

    Returns
    -------
    Pairs
        Its method `run` computes all pairs.

    Raises
    ------
    NotCompilable
        Says why, in one line.
    """
    function = unwrap(f)
    dtype = np.dtype(dtype)
    if dtype.name not in INPUT:
        raise NotCompilable(function.name, f"there is no code for rows of dtype {dtype}")
    if out_dtype is None:
        out_dtype = np.float32 if dtype == np.float32 else np.float64
    out_dtype = np.dtype(out_dtype)
    found, arrays = slots(function, params)
    key = (_key(function), dtype, out_dtype, found)
    code = _once(
        function.name, key, lambda compiler: compiler.compile_row(function, dtype, out_dtype, found)
    )
    words = addresses(arrays, found)
    return Pairs(function, params, dtype, out_dtype, code.address, arrays, words)


def pair_address(f: Any, dtype: Any = np.float64, **params: Any) -> int:
    """The address of a C function for compiled loops, ``T f(const T* x, const T* y, ptrdiff_t d)``.

    `T` is `dtype`, float32 or float64, and the parameters are part of the function. It takes no
    lock, may be called from any thread, and is there until the process ends. Where `f` raises, it
    returns NaN.

    Raises
    ------
    NotCompilable
        Says why, in one line.
    """
    function = unwrap(f)
    dtype = np.dtype(dtype)
    if dtype not in (np.float32, np.float64):
        raise NotCompilable(function.name, f"there is no code for vectors of dtype {dtype}")
    found, arrays = slots(function, params)
    values = tuple((array.shape, array.tobytes()) for array in arrays)

    def build(compiler: Any) -> Any:
        own = [array.copy() for array in arrays]
        words = addresses(own, found)
        code = compiler.compile_pair(function, dtype, found, words.ctypes.data)
        return code, own, words  # the code reads them

    return _once(function.name, (_key(function), dtype, found, values), build)[0].address


def likelihood_address(f: Any, dtype: Any) -> int:
    """The address of a `Likelihood` (csrc/likelihood/likelihood.h) that calls `f`."""
    function, dtype = unwrap(f), np.dtype(dtype)
    key = (_key(function), "likelihood", dtype)
    code = _once(function.name, key, lambda compiler: compiler.compile_likelihood(function, dtype))
    return code.address


def is_compiled(f: Any, dtype: Any = np.float64, **params: Any) -> bool:
    """Whether `compile_pair` would find it compiled, so that even a few pairs are worth it."""
    function = unwrap(f)
    dtype = np.dtype(dtype)
    out_dtype = np.dtype(np.float32 if dtype == np.float32 else np.float64)
    found, _ = slots(function, params)
    code = _compiled.get((_key(function), dtype, out_dtype, found))
    return code is not None and not isinstance(code, NotCompilable)


def _key(function: Function) -> Hashable:
    same = function.plain is function.python
    return identity(function.plain) if same else id(function.python), function.reassociate


def _once(name: str, key: Hashable, build: Any) -> Any:
    code = _compiled.get(key)
    if code is None:
        with _lock:
            code = _compiled.get(key)
            if code is None:
                try:
                    from fastml.jit import _compile

                    code = build(_compile)
                except NotCompilable as error:
                    code = error
                except ImportError as error:  # a Python for which there is no Numba yet
                    code = NotCompilable(name, f"Numba cannot be imported: {error}")
                _compiled[key] = code
    if isinstance(code, NotCompilable):
        raise NotCompilable(*code.args)
    return code


def gram(
    f: Any,
    X: Any,
    Y: Any = None,
    *,
    symmetric: bool | None = None,
    n_threads: int | None = None,
    out: np.ndarray | None = None,
    **params: Any,
) -> np.ndarray:
    """The matrix of f(x_i, y_j) for a function of two vectors, compiled and on all threads.

    Parameters
    ----------
    f : callable
        As in `compile_pair`.

    X, Y : array-like of shape (n, d) and (m, d)
        Rows; Y is X by default. NaN and infinity are the function's business.

    symmetric : bool, default=None
        Whether f(x, y) = f(y, x), so that half of the matrix is computed and mirrored where Y is X.
        By default a `ScalarKernel` says, and other functions are not taken to be symmetric.

    n_threads : int, default=None
        All that the process may use, by default.

    out : ndarray of shape (n, m), default=None
        Where to put the result: float32 or float64, in C order.

    **params
        The function's parameters.

    Returns
    -------
    ndarray of shape (n, m)
        In float32 if all rows are, else in float64.

    Raises
    ------
    NotCompilable
        If the function cannot be compiled.

    Examples
    --------
    >>> import numpy as np
    >>> from fastml.jit import gram
    >>> def smallest(x, y, power=1):
    ...     total = 0.0
    ...     for a, b in zip(x, y):
    ...         total += min(a, b) ** power
    ...     return total
    >>> gram(smallest, np.array([[1.0, 2.0], [3.0, 0.0]]), power=2)
    array([[5., 1.],
           [1., 9.]])
    """
    X, Y, same = rows(X, Y)
    out_dtype = None if out is None else out.dtype
    compiled = compile_pair(f, X.dtype, out_dtype, **params)
    if symmetric is None:
        symmetric = getattr(f, "symmetric", False)
    if out is None:
        out = np.empty((len(X), len(Y)), compiled.out_dtype)
    elif out.shape != (len(X), len(Y)) or out.dtype.char not in "fd" or not out.flags.c_contiguous:
        raise ValueError(f"out must be float32 or float64 in C order, of shape {len(X), len(Y)}")
    compiled.run(X, Y, out, same and symmetric, n_threads or allowed_threads())
    return out


def distances(
    metric: Any,
    X: Any,
    Y: Any = None,
    *,
    symmetric: bool = True,
    n_threads: int | None = None,
    out: np.ndarray | None = None,
    **params: Any,
) -> np.ndarray:
    """The matrix of distances by a metric of the user's, compiled and on all threads.

    As `gram`, but like scikit-learn's functions it takes for granted that a metric is symmetric.
    The diagonal is computed: it may differ from zero.

    Examples
    --------
    >>> import numpy as np
    >>> from fastml.jit import distances
    >>> def canberra(x, y):
    ...     return np.sum(np.abs(x - y) / (np.abs(x) + np.abs(y)))
    >>> distances(canberra, np.array([[1.0, 2.0], [3.0, 2.0]]))
    array([[0. , 0.5],
           [0.5, 0. ]])
    """
    return gram(metric, X, Y, symmetric=symmetric, n_threads=n_threads, out=out, **params)


def rows(X: Any, Y: Any) -> tuple[np.ndarray, np.ndarray, bool]:
    """Both as C-ordered matrices of one dtype that there is code for, and whether Y is X."""
    same = Y is None or Y is X
    given = [np.asarray(X)] if same else [np.asarray(X), np.asarray(Y)]
    dtype = np.result_type(*given)
    if dtype.name not in INPUT:
        dtype = np.dtype(np.float32 if dtype == np.float16 else np.float64)
    matrices = [np.ascontiguousarray(a, dtype=dtype) for a in given]
    if any(a.ndim != 2 for a in given) or matrices[0].shape[1] != matrices[-1].shape[1]:
        shapes = " and ".join(str(a.shape) for a in given)
        raise ValueError(f"expected matrices with the same number of columns, got {shapes}")
    return matrices[0], matrices[-1], same


def _bytes(X: np.ndarray) -> np.ndarray:
    return X.view(np.uint8)
