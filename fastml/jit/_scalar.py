"""`@kernel`: a scalar Python function of two vectors as a kernel of whole matrices."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import issparse

from fastml._runtime.dispatch import Unsupported, accelerated
from fastml._runtime.sparse import dense_blocks
from fastml.jit import _pairs
from fastml.jit._function import Decorated, Function, NotCompilable, unwrap, warn_of


class ScalarKernel(Decorated):
    """A kernel given as a function f(x, y) of two vectors; made by `fastml.jit.kernel`.

    Called with two vectors it is the function. Called with matrices it returns the Gram matrix
    of their rows, dense or sparse, for which the function is compiled. So it works both where a
    callable is given pairs of rows and where it is given whole matrices.

    Copies and clones are the object itself.

    Parameters
    ----------
    f : callable
        The function.

    symmetric : bool, default=True
        Whether f(x, y) = f(y, x): Gram matrices of one set of rows then take half the time.

    reassociate : bool, default=True
        Whether sums may be added in another order than the loop has, so that they vectorise.

    Attributes
    ----------
    __wrapped__ : callable
        The function in Python.
    """

    _options = ("symmetric", "reassociate")

    def __init__(
        self, f: Callable[..., Any], *, symmetric: bool = True, reassociate: bool = True
    ) -> None:
        inner = unwrap(f)
        f = f.__wrapped__ if isinstance(f, ScalarKernel) else f
        reassociate = reassociate and inner.reassociate
        super().__init__(f, Function(inner.python, inner.fixed, reassociate))
        self.symmetric, self.reassociate = symmetric, reassociate

    def __call__(self, X: Any, Y: Any = None, **params: Any) -> Any:
        Y = X if Y is None else Y
        if issparse(X) or issparse(Y):
            return _of_stored(self, X, Y, params)
        if np.ndim(X) == 1 and np.ndim(Y) == 1:
            return self.function.python(X, Y, **(dict(self.function.fixed) | params))
        return scalar_kernel(self, X, Y, params)

    def __repr__(self) -> str:
        return f"<kernel {self.function.name}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ScalarKernel) and (self.function, self.symmetric) == (
            other.function,
            other.symmetric,
        )

    def __hash__(self) -> int:
        return hash((self.function.python, self.symmetric))


def kernel(
    f: Callable[..., Any] | None = None, *, symmetric: bool = True, reassociate: bool = True
) -> Any:
    """Say that a function is a kernel of two vectors, to be compiled and run on all pairs.

    scikit-learn's estimators hand whole matrices to a callable kernel. A function that has this
    decorator is written for two rows and works there too, at compiled speed: it is compiled when
    it is first needed, which takes about half a second.

    What can be compiled is what Numba can: loops, arithmetic, most of NumPy, other functions. A
    function that cannot be is called pair by pair in Python; a warning says why, and
    `fastml.jit.compile_pair` raises it.

    Globals that the function reads are constants for the compiler: assign them anew and the
    function is compiled anew, but an array that is changed in place is not noticed. Better pass
    such things as parameters.

    Parameters
    ----------
    f : callable
        ``f(x, y, **params)``, of two vectors, to a real number. They cannot be written to.

    symmetric : bool, default=True
        Whether f(x, y) = f(y, x): Gram matrices of one set of rows then take half the time.

    reassociate : bool, default=True
        Whether sums may be added in another order than the loop has. They then vectorise, and
        differ from Python's in the last digits; NaN and infinity stay what they are. Turn it off
        for a function that depends on the order, such as one that carries rounding errors along.

    Returns
    -------
    ScalarKernel
        Or a decorator that makes one, if only options are given.

    Examples
    --------
    >>> import numpy as np
    >>> from fastml.jit import kernel
    >>> from sklearn.svm import SVC
    >>> @kernel
    ... def cauchy(x, y, gamma=1.0):
    ...     total = 0.0
    ...     for k in range(len(x)):
    ...         total += (x[k] - y[k]) ** 2
    ...     return 1 / (1 + gamma * total)
    >>> X = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 0.0]])
    >>> cauchy(X[0], X[1])
    np.float64(0.3333333333333333)
    >>> cauchy(X, gamma=2.0).round(3)
    array([[1.   , 0.2  , 0.111],
           [0.2  , 1.   , 0.2  ],
           [0.111, 0.2  , 1.   ]])
    >>> SVC(kernel=cauchy).fit(X, [0, 1, 1]).predict(X)
    array([0, 1, 1])
    """
    if f is None:
        return functools.partial(kernel, symmetric=symmetric, reassociate=reassociate)
    return ScalarKernel(f, symmetric=symmetric, reassociate=reassociate)


def _refusal(f: ScalarKernel, X: Any, Y: Any, params: dict[str, Any]) -> Unsupported | None:
    try:
        _pairs.compile_pair(f, _pairs.rows(X, Y)[0].dtype, **params)
    except NotCompilable as error:
        warn_of(error)
        instead = "rewrite it in what Numba compiles"
        return Unsupported(error.function, str(error), instead)
    return None


def _by_pairs(f: ScalarKernel, X: Any, Y: Any, params: dict[str, Any]) -> np.ndarray:
    """As scikit-learn does it, in Python."""
    X, Y, same = _pairs.rows(X, Y)
    K = np.empty((len(X), len(Y)), np.float32 if X.dtype == np.float32 else np.float64)
    for i, x in enumerate(X):
        for j in range(i if same and f.symmetric else 0, len(Y)):
            K[i, j] = f(x, Y[j], **params)
    if same and f.symmetric:
        lower = np.tril_indices(len(K), -1)
        K[lower] = K.T[lower]
    return K


def _of_stored(f: ScalarKernel, X: Any, Y: Any, params: dict[str, Any]) -> np.ndarray:
    """Of sparse rows: the function is for vectors, which some of them are made at a time."""
    half = X is Y and f.symmetric
    X, Y = (Z.tocsr() if issparse(Z) else np.asarray(Z) for Z in (X, Y))
    dtypes = {np.dtype(Z.dtype) for Z in (X, Y)}
    single = dtypes == {np.dtype(np.float32)}
    K = np.empty((X.shape[0], Y.shape[0]), np.float32 if single else np.float64)
    for rows, x in dense_blocks(X):
        for columns, y in dense_blocks(Y):
            if half and columns == rows:
                K[rows, rows] = scalar_kernel(f, x, x, params)
                break
            K[rows, columns] = scalar_kernel(f, x, y, params)
            if half:
                K[columns, rows] = K[rows, columns].T
    return K


@accelerated(unless=_refusal, stock=_by_pairs)
def scalar_kernel(f: ScalarKernel, X: Any, Y: Any, params: dict[str, Any]) -> np.ndarray:
    """The Gram matrix of a scalar kernel."""
    return _pairs.gram(f, X, Y, **params)
