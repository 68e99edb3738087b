"""`fastml.<module>`: ours where fastml has the name, scikit-learn's for everything else.

A module that fastml lacks is found by `FallThrough`, in front of `sys.meta_path`:

- `fastml.svm`, outside the topics that fastml has, *is* the module `sklearn.svm`, so there is one
  set of module globals to configure, reload or mock;
- `fastml.cluster._kmeans`, inside such a topic, is a view of scikit-learn's module in which the
  names that fastml replaces are ours.

A module of ours that has a namesake in scikit-learn ends with `fall_through(__name__)`. That makes
the stock module answer for every other name, and enters the names of its `__all__` that
scikit-learn has too in the register that `fastml.replacements` and patching work from.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec, spec_from_loader
from pkgutil import iter_modules
from types import ModuleType
from typing import Any, NamedTuple


class Replacement(NamedTuple):
    """A public name of scikit-learn's, what scikit-learn has there, and what fastml puts there."""

    module: str
    name: str
    stock: Any
    ours: Any


register: dict[tuple[str, str], Replacement] = {}

# Called whenever a module of ours has joined the register.
on_register: list[Callable[[], None]] = []


def stock_name(name: str) -> str:
    return "sklearn" + name.removeprefix("fastml")


def load(name: str) -> ModuleType:
    """Import a module as the import statement does.

    Unlike importlib.import_module, it does not fail when two threads import modules that import
    each other: one of them goes on with what there is.
    """
    __import__(name)
    return sys.modules[name]


def _is_ours(module: ModuleType) -> bool:
    return module.__name__.split(".")[0] == "fastml"


def own_spec(name: str) -> ModuleSpec | None:
    """The spec of `name` if fastml itself has a file for it."""
    parent = sys.modules.get(name.rpartition(".")[0])
    # Below `fastml.svm`, which is `sklearn.svm`, the files found are scikit-learn's.
    if parent is None or not _is_ours(parent) or not hasattr(parent, "__path__"):
        return None
    spec = PathFinder.find_spec(name, parent.__path__)
    # A folder without __init__ (left over from another version, say) is not a module of ours.
    return spec if spec is not None and spec.origin is not None else None


def fall_through(name: str) -> None:
    """Let scikit-learn's namesake of the module `name` answer for what the module lacks."""
    try:
        stock = load(stock_name(name))
    except ModuleNotFoundError as error:
        if not stock_name(name).startswith(str(error.name)):
            raise
        return
    module = sys.modules[name]
    ours = list(module.__all__)
    if "._" not in name:
        for attr in ours:
            theirs = getattr(stock, attr, None)
            _enter(Replacement(stock.__name__, attr, theirs, vars(module)[attr]))
    _delegate(module, stock, ours)
    _delegate_private(name)
    for notify in on_register:
        notify()


def _enter(new: Replacement) -> None:
    # While patched, scikit-learn's own name for it may lead to ours already.
    known = {id(entry.ours): entry.stock for entry in register.values()}
    new = new._replace(stock=known.get(id(new.stock), new.stock))
    if new.stock is not None and new.stock is not new.ours:
        register[new.module, new.name] = new


def _delegate(module: ModuleType, stock: ModuleType, ours: list[str]) -> None:
    def __getattr__(name: str) -> Any:
        try:
            return getattr(stock, name)
        except AttributeError:
            message = f"module {module.__name__!r} has no attribute {name!r}"
            raise AttributeError(message, name=name, obj=module) from None

    def __dir__() -> list[str]:
        return sorted({*vars(module), *dir(stock)})

    theirs = getattr(stock, "__all__", None) or [n for n in dir(stock) if not n.startswith("_")]
    names = [*theirs, *(name for name in ours if name not in theirs)]
    vars(module).update(__all__=names, __getattr__=__getattr__, __dir__=__dir__)


def _delegate_private(topic: str) -> None:
    """Let private modules of the topic fall through where one of scikit-learn's has its name."""
    for name, module in list(sys.modules.items()):
        namesake = sys.modules.get(stock_name(name))
        if name.startswith(topic + "._") and namesake and not hasattr(module, "__getattr__"):
            _delegate(module, namesake, [])


class FallThrough:
    """Finds the modules that fastml has not, and takes them from scikit-learn."""

    @classmethod
    def find_spec(cls, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if not name.startswith("fastml."):
            return None
        if (spec := own_spec(name)) is not None:
            return spec
        if name.startswith("fastml._native."):
            here = sys.modules["fastml"].__path__[0]
            raise ImportError(
                f"{name} is not compiled in {here}: where this is the source tree, leave it, or "
                "compile there with `pip install -e .`",
                name=name,
            )
        # Python holds the lock of all imports here: waiting for a module could last for ever.
        parent = sys.modules.get(stock_name(name).rpartition(".")[0])
        places = getattr(parent, "__path__", ())
        if parent is not None and PathFinder.find_spec(stock_name(name), places) is None:
            return None
        loader: Any = cls
        # A package for the time being: other threads may ask for what is in it before it is loaded.
        return spec_from_loader(name, loader, is_package=True)

    @staticmethod
    def create_module(spec: ModuleSpec) -> None:
        return None

    @classmethod
    def exec_module(cls, module: ModuleType) -> None:
        name = module.__name__
        try:
            stock = load(stock_name(name))
        except ModuleNotFoundError as error:
            if error.name != stock_name(name):
                raise
            raise ModuleNotFoundError(f"No module named {name!r}", name=name) from None
        topic = sys.modules[".".join(name.split(".")[:2])]
        if getattr(topic.__spec__, "loader", None) is cls or not _is_ours(topic):
            # The import system takes what it finds in sys.modules once the loader has run.
            sys.modules[name] = stock
            return
        ours = {id(r.stock): r.ours for r in list(register.values())}
        replaced = {k: ours[id(v)] for k, v in vars(stock).items() if id(v) in ours}
        vars(module).update(replaced, __doc__=stock.__doc__, __file__=stock.__file__)
        if not hasattr(stock, "__path__"):
            del module.__path__
        _delegate(module, stock, list(replaced))


def attribute(name: str) -> Any:
    """What `fastml.<name>` is, for names that fastml/__init__.py does not define."""
    if not name.startswith("__"):
        if own_spec(f"fastml.{name}") is not None:
            return load(f"fastml.{name}")
        value = getattr(load("sklearn"), name, None)
        if isinstance(value, ModuleType) and value.__name__ == f"sklearn.{name}":
            return load(f"fastml.{name}")
        if value is not None:
            return value
    raise AttributeError(f"module 'fastml' has no attribute {name!r}", name=name)


def own_modules(package: str = "fastml") -> Iterator[str]:
    """Public modules of ours, at any depth, that have a namesake in scikit-learn."""
    for info in iter_modules(sys.modules[package].__path__, package + "."):
        if "._" in info.name or find_spec(stock_name(info.name)) is None:
            continue
        yield info.name
        if info.ispkg:
            load(info.name)
            yield from own_modules(info.name)


def replacements() -> dict[tuple[str, str], Any]:
    """Everything that fastml puts in scikit-learn's place.

    Returns
    -------
    dict
        `{("sklearn.cluster", "KMeans"): fastml.cluster.KMeans, ...}`
    """
    for name in own_modules():
        load(name)
    return {key: entry.ours for key, entry in sorted(register.items())}


def replacement_of(stock: Any) -> Any:
    """What fastml puts in the place of a class or function of scikit-learn's, or None.

    Imports no more than the topic in which the object is defined.
    """
    parts = str(getattr(stock, "__module__", "")).split(".")
    if parts[0] != "sklearn" or len(parts) < 2:
        return None
    if own_spec(f"fastml.{parts[1]}") is not None:
        load(f"fastml.{parts[1]}")
    return next((r.ours for r in list(register.values()) if r.stock is stock), None)


def install() -> None:
    if FallThrough not in sys.meta_path:
        sys.meta_path.insert(0, FallThrough)
