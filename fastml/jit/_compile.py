"""Where Numba is at work: from a user's function to the address of a C function.

All kinds are a few lines of generated Python around the user's function, which is compiled first
and inlined into them. They have C's calling convention, hold no lock and start no thread.
"""

from __future__ import annotations

import inspect
import linecache
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, FunctionType
from typing import Any

import numba
import numpy as np
from numba import types
from numba.core.errors import NumbaWarning
from numba.extending import intrinsic

from fastml.jit._function import Function, NotCompilable, Slot, global_names
from fastml.jit._masked import MaskingCompiler

# Division by zero as NumPy's numbers do it, which is what the elements of x and y are in Python.
_OPTIONS: dict[str, Any] = {"boundscheck": True, "error_model": "numpy", "forceinline": True}
# Not "fast": NaN and infinity stay what they are. Not "nsz": LLVM would make of a sum of terms that
# may be zero one with additions under a condition, which it does not vectorise; _masked.py does the
# reverse. Not "contract": one product of a difference would be rounded and the other not, and
# f(x, x) not be zero.
_REASSOCIATE: dict[str, Any] = {"fastmath": {"reassoc"}, "pipeline_class": MaskingCompiler}

_ROW = """
def row(x_, Y_, count, d, out_, slots_):
    x = carray(x_, (d,))
    Y = carray(Y_, (count, d))
    out = carray(out_, (count,))
    slots = carray(slots_, (n_slots,))
{load}
    k = 0
    try:
        for k in range(count):
            out[k] = f(x, Y[k]{arguments})
    except Exception:
        return k
    return count
"""

_PAIR = """
def pair(x_, y_, d):
    x = carray(x_, (d,))
    y = carray(y_, (d,))
    slots = carray(pointer_at(slots_address, word), (n_slots,))
{load}
    try:
        return scalar(f(x, y{arguments}))
    except Exception:
        return scalar(nan)
"""


_BLOCK = """
def block(ratings_, scores_, n, value_, first_, second_):
    ratings = carray(ratings_, (n,))
    scores = carray(scores_, (n,))
    value = carray(value_, (n,))
    first = carray(first_, (n,))
    second = carray(second_, (n,))
    for k in range(n):
        try:
            value[k], first[k], second[k] = f(ratings[k], scores[k])
        except Exception:
            value[k] = first[k] = second[k] = nan
"""


@intrinsic
def pointer_at(typingctx, address, dtype):  # type: ignore[no-untyped-def]
    pointer = types.CPointer(dtype.dtype)

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.inttoptr(args[0], context.get_value_type(pointer))

    return pointer(types.intp, dtype), codegen


def compile_row(
    function: Function, dtype: np.dtype, out_dtype: np.dtype, slots: tuple[Slot, ...]
) -> Any:
    """Compile a `RowFunction` (csrc/jit/jit.h); the result has its `address`."""
    pointer, vector = types.CPointer, numba.from_dtype
    signature = types.intp(
        pointer(vector(dtype)),
        pointer(vector(dtype)),
        types.intp,
        types.intp,
        pointer(vector(out_dtype)),
        pointer(types.intp),
    )
    return _compile(function, dtype, slots, _ROW, signature, {})


def compile_pair(
    function: Function, dtype: np.dtype, slots: tuple[Slot, ...], slots_address: int
) -> Any:
    """Compile `T f(const T* x, const T* y, ptrdiff_t d)` with its parameters' address built in."""
    scalar = numba.from_dtype(dtype)
    pointer = types.CPointer(scalar)
    signature = scalar(pointer, pointer, types.intp)
    constants = {
        "slots_address": slots_address,
        "scalar": dtype.type,
        "word": np.intp,
        "nan": float("nan"),
    }
    return _compile(function, dtype, slots, _PAIR, signature, constants)


def compile_likelihood(function: Function, dtype: np.dtype) -> Any:
    """Compile a `Likelihood` (csrc/likelihood/likelihood.h); the result has its `address`."""
    scalar = numba.from_dtype(dtype)
    pointer = types.CPointer(scalar)
    signature = types.void(pointer, pointer, types.intp, pointer, pointer, pointer)
    with _explained(function.name):
        dispatcher: Any = function.python
        if isinstance(dispatcher, FunctionType):
            dispatcher = _dispatcher(dispatcher, _OPTIONS, {})
        dispatcher.compile((scalar, scalar))
        returned = dispatcher.overloads[scalar, scalar].signature.return_type
        kinds = getattr(returned, "types", ())  # of a tuple
        if len(kinds) != 3 or not all(_is_real(kind) for kind in kinds):
            reason = "it has to return the log-likelihood and its first and second derivative"
            raise NotCompilable(function.name, f"{reason}, not {_plain(str(returned))}")
        namespace = {"carray": numba.carray, "f": dispatcher, "nan": float("nan")}
        exec(_BLOCK, namespace)
        return numba.cfunc(signature)(namespace["block"])


def _is_real(kind: Any) -> bool:
    return isinstance(kind, (types.Float, types.Integer, types.Boolean))


@contextmanager
def _explained(name: str) -> Iterator[None]:
    """Numba's warnings left out, and its errors in a line."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NumbaWarning)
            yield
    except NotCompilable:
        raise
    # Whatever goes wrong in there, from an unknown function to a limit of LLVM's.
    except Exception as error:
        reason, where = explain(error)
        raise NotCompilable(name, reason, where) from error


def _compile(
    function: Function,
    dtype: np.dtype,
    slots: tuple[Slot, ...],
    template: str,
    signature: Any,
    constants: dict[str, Any],
) -> Any:
    with _explained(function.name):
        namespace = constants | {"carray": numba.carray, "pointer_at": pointer_at}
        options = _OPTIONS | (_REASSOCIATE if function.reassociate else {})
        namespace |= {f"p{i}": _constant(slot, options) for i, slot in enumerate(slots)}
        namespace["f"] = _typed(function, dtype, slots, namespace, options)
        source = template.format(load=_load(slots, namespace), arguments=_arguments(slots))
        exec(source, namespace)
        name = "row" if "row" in namespace else "pair"
        return numba.cfunc(signature)(namespace[name])


def _typed(
    function: Function,
    dtype: np.dtype,
    slots: tuple[Slot, ...],
    constants: dict[str, Any],
    options: dict[str, Any],
) -> Any:
    """The dispatcher of the function, compiled for these types so that its own errors show."""
    vector = types.Array(numba.from_dtype(dtype), 1, "C", readonly=True)
    params = (_type_of(slot, constants[f"p{i}"]) for i, slot in enumerate(slots))
    signature = (vector, vector, *params)
    if isinstance(function.python, FunctionType):
        dispatcher = _dispatcher(function.python, options, {})
    else:
        dispatcher = function.python
    dispatcher.compile(signature)
    if dispatcher is not function.python:
        dispatcher.disable_compile()  # these types, whose arrays cannot be written to
    returned = dispatcher.overloads[signature].signature.return_type
    value = returned.type if isinstance(returned, types.Optional) else returned
    if not _is_real(value):
        raise NotCompilable(function.name, f"it returns {_plain(str(returned))}, not a real number")
    return dispatcher


def _dispatcher(function: FunctionType, options: dict[str, Any], known: dict[Any, Any]) -> Any:
    """A dispatcher, and others for the plain functions that it calls by the names of globals."""
    code, defaults = _by_position(function)
    copy = FunctionType(
        code, dict(function.__globals__), function.__name__, defaults, function.__closure__
    )
    copy.__module__, copy.__qualname__ = function.__module__, function.__qualname__
    known[function] = dispatcher = numba.njit(**options)(copy)
    for name in global_names(function.__code__) & function.__globals__.keys():
        value = function.__globals__[name]
        value = getattr(getattr(value, "function", value), "python", value)
        if _is_users(value):
            copy.__globals__[name] = known.get(value) or _dispatcher(value, options, known)
    return dispatcher


def _by_position(function: FunctionType) -> tuple[CodeType, tuple[Any, ...] | None]:
    """The code and defaults with keyword-only parameters, which Numba has not, as ordinary ones."""
    code, keywords = function.__code__, function.__kwdefaults__ or {}
    first, n = code.co_argcount, code.co_kwonlyargcount
    if not n or code.co_flags & inspect.CO_VARARGS:
        return code, function.__defaults__
    names = code.co_varnames[first : first + n]  # they come next in memory too
    complete = all(name in keywords for name in names)
    defaults = (*(function.__defaults__ or ()), *(keywords[name] for name in names if complete))
    code = code.replace(co_argcount=first + n, co_kwonlyargcount=0)
    return code, defaults if complete else None


def _is_users(value: Any) -> bool:
    """Whether it is a function in Python that is none of those which Numba knows."""
    known = {"numpy", "numba", "math", "cmath", "random", "operator", "builtins"}
    return isinstance(value, FunctionType) and value.__module__.split(".")[0] not in known


def _constant(slot: Slot, options: dict[str, Any]) -> Any:
    """The value of a parameter that is compiled in."""
    value = getattr(slot.constant, "value", None)
    return _dispatcher(value, options, {}) if isinstance(value, FunctionType) else value


def _type_of(slot: Slot, constant: Any) -> Any:
    if slot.ndim is None:
        return numba.typeof(constant)
    scalar = numba.from_dtype(np.dtype(slot.dtype))
    return types.Array(scalar, slot.ndim, "C") if slot.ndim else scalar


def _arguments(slots: tuple[Slot, ...]) -> str:
    return "".join(f", p{i}" for i in range(len(slots)))


def _load(slots: tuple[Slot, ...], namespace: dict[str, Any]) -> str:
    """The lines that read the parameters, in the order of `addresses`."""
    lines, at = [], 1
    for i, slot in enumerate(slots):
        if slot.ndim is None:
            continue
        del namespace[f"p{i}"]
        namespace[f"t{i}"] = np.dtype(slot.dtype).type
        shape = ", ".join(f"slots[{at + 1 + axis}]" for axis in range(slot.ndim)) or "1"
        first = "" if slot.ndim else "[0]"
        lines.append(f"    p{i} = carray(pointer_at(slots[{at}], t{i}), ({shape},)){first}")
        at += 1 + slot.ndim
    namespace["n_slots"] = at
    return "\n".join(lines)


def explain(error: Exception) -> tuple[str, str]:
    """What Numba says in a page, in a line; and the line of the user's that it is about."""
    message = str(error)
    if "Cannot modify readonly array" in message:
        reason = "it changes an array that it is given"
    elif "IMPORT_NAME" in message:
        reason = "it imports a module: do so outside"
    elif "LOAD_BUILD_CLASS" in message:
        reason = "it defines a class: do so outside"
    elif call := re.search(r"No implementation of function.*?>>> (.*?)$", message, re.S | re.M):
        reason = f"Numba has no {_plain(call[1])}"
    elif name := re.search(r"Untyped global name '?(\w+)'?.*?of (.*?)$", message, re.M):
        reason = f"Numba cannot use the global {name[1]}, {_plain(name[2])}"
    else:
        lines = [line.strip() for line in message.splitlines()]
        lines = [line for line in lines if line and not line.startswith("Failed in nopython")]
        reason = re.sub(r"\.* *Raised from.*", "", lines[0]) if lines else type(error).__name__
    return reason, _where(error, message)


def _plain(text: str) -> str:
    return re.sub(r"readonly |, aligned=\w+", "", text)


def _where(error: Exception, message: str) -> str:
    loc = getattr(error, "loc", None)
    file, line = getattr(loc, "filename", None), getattr(loc, "line", None)
    if file is None or line is None:
        found = re.search(r"Raised from (.*) \((\d+)\)", message)
        if found is None:
            return ""
        file, line = found[1], int(found[2])
    text = linecache.getline(file, line).strip()
    name = re.split(r"[/\\]", file)[-1]
    return f"{name}, line {line}: {text}" if text else f"{name}, line {line}"
