"""What is made of fitted models when it is first needed, and kept beside them.

It is no attribute: no pickle, copy or `clone` of a model has it, and predicting changes nothing in
it. It follows the parts of the model that it was made of, by identity: others in their place make
it anew. Writing into an array that is such a part is not noticed; `forget(model)` tells.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from operator import is_
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")


class _Entry(NamedTuple):
    model: weakref.ref[Any]
    parts: list[Any]
    stamp: Any
    made: Any


# By id and not by the model, which may define == and no hash. Two threads that find nothing both
# make it, and the later one's stays: nobody waits, and a fork finds no lock taken.
_entries: dict[int, _Entry] = {}


def beside(model: Any, parts: Sequence[Any], make: Callable[[], T], stamp: Any = None) -> T:
    """What `make` makes of the parts that `model` has now.

    Parameters
    ----------
    model : object
        Who keeps it alive.

    parts : sequence of objects
        What it is made of.

    make : callable
        Called when there is nothing yet, or something made of other parts.

    stamp : object, default=None
        What else it depends on; another one, by `==`, has it made anew.
    """
    key = id(model)
    entry = _entries.get(key)
    if (
        entry is not None
        and entry.model() is model
        and len(entry.parts) == len(parts)
        and all(map(is_, entry.parts, parts))
        and entry.stamp == stamp
    ):
        return entry.made
    made = make()

    def drop(dead: weakref.ref[Any]) -> None:
        entry = _entries.get(key)
        if entry is not None and entry.model is dead:
            del _entries[key]

    _entries[key] = _Entry(weakref.ref(model, drop), list(parts), stamp, made)
    return made


def is_beside(model: Any) -> bool:
    """Whether there is something, though perhaps not of the parts that the model has now."""
    entry = _entries.get(id(model))
    return entry is not None and entry.model() is model


def forget(model: Any) -> None:
    """Make it anew when it is next needed."""
    _entries.pop(id(model), None)
