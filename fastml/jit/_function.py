"""What is known of a user's function without compiling it, and without Numba."""

from __future__ import annotations

import functools
import inspect
import sys
import warnings
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import lru_cache, partial
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np


class NotCompilable(TypeError):
    """Why a function cannot be compiled, in one line.

    Attributes
    ----------
    function, reason : str
        The name of the function, and what stands in the way.

    where : str
        The file, the line and the text of it, or an empty string if that is not known.
    """

    def __init__(self, function: str, reason: str, where: str = "") -> None:
        super().__init__(function, reason, where)
        self.function, self.reason, self.where = self.args

    def __str__(self) -> str:
        where = f" ({self.where})" if self.where else ""
        return f"{self.function} cannot be compiled: {self.reason}{where}"


class NotCompiledWarning(UserWarning):
    """A function is called pair by pair in Python, since it cannot be compiled."""


def warn_of(error: NotCompilable) -> None:
    warnings.warn(f"{error}. Python calls it pair by pair.", NotCompiledWarning, stacklevel=2)


@dataclass(frozen=True)
class Function:
    """A function of two vectors, and what it is compiled with.

    python: what is called from Python, the original.
    fixed: parameters that are bound already.
    reassociate: whether sums may be added in another order than the one written down.
    """

    python: Callable[..., Any]
    fixed: tuple[tuple[str, Any], ...] = ()
    reassociate: bool = True

    @property
    def name(self) -> str:
        return getattr(self.python, "__name__", type(self.python).__name__)

    @property
    def plain(self) -> FunctionType:
        """The function in Python: that of the user, or the one under a Numba dispatcher."""
        plain: Any = self.python
        return getattr(plain, "py_func", plain)

    def bind(self, params: dict[str, Any]) -> dict[str, Any]:
        """All parameters after the two vectors in order, defaults included."""
        given = dict(self.fixed) | params
        defaults = _parameters(self.plain)
        if defaults is None:
            raise NotCompilable(self.name, "Numba has no **: name the parameters")
        values = defaults | given
        if len(values) > len(defaults) or any(v is _MISSING for v in values.values()):
            inspect.signature(self.plain).bind(None, None, **given)  # raises what a call would
        return values


_MISSING = inspect.Parameter.empty


@lru_cache(maxsize=256)
def _parameters(function: FunctionType) -> dict[str, Any] | None:
    """The parameters after the two vectors, with their defaults; None if there are any others."""
    parameters = list(inspect.signature(function).parameters.values())
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters):
        return None
    named = [p for p in parameters if p.kind is not inspect.Parameter.VAR_POSITIONAL]
    return {p.name: p.default for p in named[2:]}


def is_function(f: Any) -> bool:
    """Whether `f` is of the kinds that can be compiled at all."""
    return isinstance(getattr(f, "py_func", f), FunctionType)


def unwrap(f: Any) -> Function:
    """The function in a ScalarKernel, a partial, a Numba dispatcher, or a function."""
    if isinstance(f, Function):
        return f
    if isinstance(f, partial) and not f.args:
        inner = unwrap(f.func)
        fixed = dict(inner.fixed) | f.keywords
        return Function(inner.python, tuple(fixed.items()), inner.reassociate)
    function = getattr(f, "function", None)
    if isinstance(function, Function):
        return function
    if not is_function(f):
        name = getattr(f, "__name__", type(f).__name__)
        raise NotCompilable(name, f"a {type(f).__name__} is not a function written in Python")
    return Function(f)


class Decorated:
    """What a decorator makes of a function that is to be compiled.

    Copies and clones are the object itself. The constructor takes the function and what
    `_options` names.
    """

    __wrapped__: Callable[..., Any]
    _options: tuple[str, ...] = ()

    def __init__(self, f: Callable[..., Any], function: Function) -> None:
        self.function = function
        functools.update_wrapper(self, f, updated=())

    def __call__(self, *args: Any, **params: Any) -> Any:
        return self.function.python(*args, **params)

    def __repr__(self) -> str:
        return f"<{type(self).__name__.lower()} {self.function.name}>"

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def __sklearn_clone__(self) -> Any:
        return self

    def __reduce__(self) -> Any:
        """By reference if pickle can, by value if cloudpickle must.

        A decorated function is no longer found under its own name, which is this object's. It is
        found one step further on.
        """
        python = self.__wrapped__
        name = getattr(python, "__qualname__", "")
        found: Any = sys.modules.get(getattr(python, "__module__", None) or "")
        for part in name.split("."):
            found = getattr(found, part, None)
        if isinstance(found, type(self)) and found.__wrapped__ is python:
            python.__qualname__ = f"{name}.__wrapped__"
        options = {option: getattr(self, option) for option in self._options}
        return _restore, (type(self), python, options)


def _restore(kind: type, f: Callable[..., Any], options: dict[str, Any]) -> Any:
    return kind(f, **options)


class _Same:
    """A key for what cannot be compared: equal to itself alone, and kept alive."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.value is self.value


def identity(function: Any, within: tuple[CodeType, ...] = ()) -> Hashable:
    """A key that two functions share if they compile to the same code.

    It covers the globals and the closure, since Numba takes their values for constants: a function
    that is made again, in a loop or by a pickle, is not compiled again, and one whose global has
    got another value is.
    """
    code = function.__code__
    if code in within:  # recursive
        return within.index(code)
    within = (*within, code)
    cells = tuple(cell for cell in function.__closure__ or ())
    frozen = [_frozen(cell.cell_contents if _full(cell) else cell, within) for cell in cells]
    frozen += [
        (name, _frozen(function.__globals__[name], within))
        for name in sorted(global_names(code))
        if name in function.__globals__
    ]
    return code, tuple(frozen)


def _full(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def global_names(code: CodeType) -> set[str]:
    """Names that the code, or code within it, may look up in its globals."""
    inner = [const for const in code.co_consts if isinstance(const, CodeType)]
    return set(code.co_names).union(*map(global_names, inner))


def _frozen(value: Any, within: tuple[CodeType, ...]) -> Hashable:
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes, np.number)):
        return type(value), value
    if isinstance(value, ModuleType):
        return value.__name__
    inner = getattr(value, "function", value)
    inner = inner.python if isinstance(inner, Function) else inner
    if isinstance(inner, FunctionType):
        return identity(inner, within)
    return _Same(value)


@dataclass(frozen=True)
class Slot:
    """How a parameter reaches compiled code: by address, or as a constant (`shape` None)."""

    name: str
    dtype: str
    ndim: int | None
    constant: Hashable = None


def slots(function: Function, params: dict[str, Any]) -> tuple[tuple[Slot, ...], list[np.ndarray]]:
    """The slots of the parameters, and arrays that hold the values of those passed by address.

    Code is compiled once for the slots, and runs with any values.
    """
    found, arrays = [], []
    for name, value in function.bind(params).items():
        if isinstance(value, (bool, int, float, np.bool_, np.number, np.ndarray)):
            array = np.asarray(value)
            if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8 or array.dtype == "f2":
                raise NotCompilable(function.name, f"{name} is of dtype {array.dtype}")
            ndim = array.ndim  # ascontiguousarray makes a vector of a number
            array = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))
            found.append(Slot(name, array.dtype.name, ndim))
            arrays.append(array)
        else:
            found.append(Slot(name, "", None, _constant(function, name, value)))
    return tuple(found), arrays


def _constant(function: Function, name: str, value: Any) -> Hashable:
    if isinstance(value, (FunctionType, str, type(None))) or hasattr(value, "py_func"):
        return _Constant(value)
    if isinstance(value, tuple) and all(isinstance(v, (bool, int, float, str)) for v in value):
        return _Constant(value)
    raise NotCompilable(function.name, f"{name} is a {type(value).__name__}: pass an array")


class _Constant:
    """A parameter that is compiled in: equal to another of the same types and values."""

    def __init__(self, value: Any) -> None:
        self.value = value
        items = value if isinstance(value, tuple) else (value,)
        self.key = type(value), tuple(_frozen(item, ()) for item in items)

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Constant) and other.key == self.key


def addresses(arrays: list[np.ndarray], found: tuple[Slot, ...]) -> np.ndarray:
    """What the compiled code reads: for each array its address, and its shape."""
    by_address = [slot for slot in found if slot.ndim is not None]
    words = [0]  # never empty
    for slot, array in zip(by_address, arrays, strict=True):
        words += [array.ctypes.data, *(array.shape if slot.ndim else ())]
    return np.array(words, dtype=np.intp)
