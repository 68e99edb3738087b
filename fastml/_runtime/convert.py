"""Fitted models to stock scikit-learn ones and back, whatever they are nested in.

A model is copied by pickling it within the process, with classes and functions exchanged on the
way: that goes through pipelines, meta-estimators, containers and object arrays alike, shares what
was shared, and leaves the original alone.

What an estimator of ours must do for it: work from the attributes that the stock class has, and
name those that are ours alone `_fastml_...`; they are dropped. If more has to change it defines
`__to_sklearn_state__(self, state)`, which returns the state that the stock class would have.
"""

from __future__ import annotations

import functools
import io
import pickle
import types
from collections.abc import Callable, Iterator
from typing import Any

from fastml._runtime import modules

# Copied by reference: what pickle would look up by name, or could not copy.
_ATOMS = (
    type,
    types.ModuleType,
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
)
_ATOM_SPECIES = frozenset({"ufunc", "cython_function_or_method", "fused_cython_function"})


def to_sklearn(model: Any) -> Any:
    """Copy a model, with scikit-learn's own classes in the place of fastml's.

    The copy can be pickled and then loaded where fastml is not installed.

    Parameters
    ----------
    model : object
        An estimator, fitted or not, or anything that contains some: a pipeline, a search, a list,
        a dict, an array of objects.

    Returns
    -------
    object
        The same, without anything of fastml's.

    Raises
    ------
    TypeError
        If something in it has no counterpart in scikit-learn. The message says where it is.
    """
    return _convert(model, _stock_of)


def from_sklearn(model: Any) -> Any:
    """Copy a model, with fastml's classes in the place of scikit-learn's.

    Predictions of the copy are the model's, faster; what fastml does not replace stays as it is.

    Parameters
    ----------
    model : object
        An estimator, fitted or not, or anything that contains some.
    """
    return _convert(model, lambda atom: modules.replacement_of(atom) or atom)


class _NoCounterpart(Exception):
    pass


def _stock_of(atom: Any) -> Any:
    """Scikit-learn's counterpart of a class or function; itself, if it has nothing of ours."""
    if isinstance(atom, type):
        if not any(_is_ours(cls) for cls in atom.__mro__):
            return atom
        if _is_ours(atom):
            for cls in atom.__mro__:
                if cls.__module__.startswith("sklearn.") and cls.__name__ == atom.__name__:
                    return cls
        raise _NoCounterpart(atom)
    if not _is_ours(atom):
        return atom
    for entry in list(modules.register.values()):
        if entry.ours is atom:
            return entry.stock
    raise _NoCounterpart(atom)


def _is_ours(atom: Any) -> bool:
    is_module = isinstance(atom, types.ModuleType)
    name = atom.__name__ if is_module else getattr(atom, "__module__", None)
    return isinstance(name, str) and name.split(".")[0] == "fastml"


def _convert(model: Any, exchange: Callable[[Any], Any]) -> Any:
    stream = io.BytesIO()
    atoms: list[Any] = []
    buffers: list[pickle.PickleBuffer] = []
    try:
        _Pickler(stream, functools.cache(exchange), atoms, buffers).dump(model)
    except _NoCounterpart as error:
        raise TypeError(_explain(model, error.args[0])) from None
    stream.seek(0)
    # Arrays travel beside the stream, and are copied here and nowhere else.
    copies = [bytearray(buffer.raw()) for buffer in buffers]
    return _Unpickler(stream, atoms, copies).load()


class _Pickler(pickle.Pickler):
    def __init__(
        self,
        stream: io.BytesIO,
        exchange: Callable[[Any], Any],
        atoms: list[Any],
        buffers: list[Any],
    ) -> None:
        super().__init__(stream, protocol=5, buffer_callback=buffers.append)
        self._exchange = exchange
        self._atoms = atoms

    def persistent_id(self, obj: Any) -> int | None:
        if not isinstance(obj, _ATOMS) and type(obj).__name__ not in _ATOM_SPECIES:
            return None
        self._atoms.append(self._exchange(obj))
        return len(self._atoms) - 1

    def reducer_override(self, obj: Any) -> Any:
        cls = type(obj)
        counterpart = self._exchange(cls)
        if counterpart is cls:
            return NotImplemented
        make, args, state, *rest = obj.__reduce_ex__(4)
        return make, args, _exchange_state(obj, state, counterpart), *rest


def _exchange_state(obj: Any, state: Any, counterpart: type) -> Any:
    if not isinstance(state, dict):
        return state
    from sklearn import __version__

    if hasattr(obj, "__to_sklearn_state__") and not _is_ours(counterpart):
        state = obj.__to_sklearn_state__(state)
    state = {key: value for key, value in state.items() if not key.startswith("_fastml_")}
    # Only scikit-learn's own classes put their version into the state, and check it there.
    state.pop("_sklearn_version", None)
    if not _is_ours(counterpart) and hasattr(counterpart, "get_params"):
        state["_sklearn_version"] = __version__
    return state


class _Unpickler(pickle.Unpickler):
    def __init__(self, stream: io.BytesIO, atoms: list[Any], buffers: list[bytearray]) -> None:
        super().__init__(stream, buffers=buffers)
        self._atoms = atoms

    def persistent_load(self, pid: int) -> Any:
        return self._atoms[pid]


def _explain(model: Any, atom: Any) -> str:
    what = f"{atom.__module__}.{atom.__qualname__}"
    place = next((path for path, item in _walk(model) if item is atom or type(item) is atom), "?")
    where = "" if place == "model" else f", at {place},"
    if isinstance(atom, type) and not _is_ours(atom):
        base = next(cls for cls in atom.__mro__ if _is_ours(cls))
        return (
            f"{what}{where} derives from {base.__module__}.{base.__qualname__}, so it cannot be "
            "loaded without fastml. Derive it from scikit-learn's class."
        )
    return f"{what}{where} has no counterpart in scikit-learn."


def _walk(model: Any) -> Iterator[tuple[str, Any]]:
    """Everything inside a model, with the expression that leads to it."""
    todo, seen = [("model", model)], {id(model)}
    while todo:
        path, item = todo.pop(0)
        yield path, item
        if isinstance(item, dict):
            inside = [(f"{path}[{key!r}]", value) for key, value in item.items()]
        elif isinstance(item, list | tuple) or getattr(item, "dtype", None) == "object":
            inside = [(f"{path}[{i}]", value) for i, value in enumerate(item)]
        elif isinstance(item, _ATOMS):
            inside = []
        else:
            inside = [(f"{path}.{k}", v) for k, v in getattr(item, "__dict__", {}).items()]
        for entry in inside:
            if id(entry[1]) not in seen:
                seen.add(id(entry[1]))
                todo.append(entry)
