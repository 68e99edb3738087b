"""Putting fastml's classes and functions in scikit-learn's place, and taking them out again.

Patching rebinds names; it never edits a class. Rebound, by identity with the stock object and so
under whatever name:

- every global, and every entry of a global dict, in the loaded modules of scikit-learn;
- in modules that scikit-learn loads later, through a hook that runs when each has been executed;
- globals in `__main__` and in the user's other modules: those that lie outside the standard
  library and the installed packages. Third-party packages are left alone: they may hold on to a
  stock class on purpose, as fastml itself does.

Undoing puts back all of scikit-learn's names and those of the user's that were rebound here, as
long as they have not been assigned anew. A name that the user imported from scikit-learn while it
was patched stays: it cannot be told from one imported from fastml.

A topic of fastml's is imported when scikit-learn's namesake is, not before.
"""

from __future__ import annotations

import copyreg
import functools
import pkgutil
import sys
import sysconfig
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, NamedTuple

from fastml._runtime import modules
from fastml._runtime.modules import Replacement

Names = frozenset[str] | None  # None: everything

# Held while names are rebound, never while anything is imported: import locks are taken first.
_lock = threading.RLock()
_requests: dict[object, Names] = {}
_PERMANENT = object()
_STDLIB = sysconfig.get_path("stdlib")


# What to rebind, by the id of what is there: in one direction and in the other.
_ours: dict[int, Any] = {}
_stock: dict[int, Any] = {}


class _Rebinding(NamedTuple):
    namespace: dict[str, Any]
    key: str
    ours: Any


_journal: list[_Rebinding] = []  # what was rebound in the user's modules


def patch_sklearn(names: str | Iterable[str] | None = None, *, children: bool = False) -> None:
    """Put fastml's estimators and functions in scikit-learn's place, in the whole process.

    Parameters
    ----------
    names : str or iterable of str, default=None
        What to replace: `"KMeans"`, `"cluster.KMeans"`, or a whole module, `"cluster"`; everything
        by default. Names add up over calls.

    children : bool, default=False
        Whether Python processes that this one starts from now on are patched as well. It takes
        environment variables (`FASTML_*`, `PYTHONPATH`), which `unpatch_sklearn` takes back.
        Without it, workers still run fastml's code for the estimators that they are sent.
    """
    total = add(check(names))
    if children:
        from fastml._runtime.children import export

        export(total)


def add(chosen: Names) -> Names:
    """Patch names known to be right; return all that `patch_sklearn` was asked for so far."""
    with _lock:
        before = _requests.get(_PERMANENT, frozenset())
        total = None if chosen is None or before is None else before | chosen
        _requests[_PERMANENT] = total
    _settle()
    return total


def unpatch_sklearn() -> None:
    """Undo `patch_sklearn`. What a `patched()` block asked for lasts until the block ends."""
    from fastml._runtime.children import withdraw

    withdraw()
    with _lock:
        _requests.pop(_PERMANENT, None)
    _settle()


@contextmanager
def patched(names: str | Iterable[str] | None = None) -> Iterator[None]:
    """Patch within a `with` block. Blocks may nest, and overlap between threads.

    The names are scikit-learn's globals: other threads see them replaced too meanwhile.
    """
    token = object()
    chosen = check(names)
    with _lock:
        _requests[token] = chosen
    try:
        _settle()
        yield
    finally:
        with _lock:
            del _requests[token]
        _settle()


def check(names: str | Iterable[str] | None) -> Names:
    """The names as a set, each of them known to scikit-learn and replaced by fastml."""
    if names is None:
        return None
    chosen = frozenset([names] if isinstance(names, str) else names)
    chosen = frozenset(name.removeprefix("sklearn.") for name in chosen)
    known = {form for key in modules.replacements() for form in _forms(*key)}
    for name in sorted(chosen - known):
        from difflib import get_close_matches

        near = get_close_matches(name, known, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"fastml replaces nothing called {name!r} in scikit-learn.{hint}")
    return chosen


def _forms(module: str, name: str) -> tuple[str, str, str]:
    """The ways to name a replacement, or the module that it is in."""
    module = module.removeprefix("sklearn.")
    return name, module, f"{module}.{name}"


def _wanted(entry: Replacement) -> bool:
    forms = _forms(entry.module, entry.name)
    return any(names is None or not names.isdisjoint(forms) for names in list(_requests.values()))


def _settle() -> None:
    """Make the process what `_requests` says."""
    with _lock:
        # In a new list: another thread may be on its way through the old one, and would miss a
        # finder if they moved up.
        finders: list[Any] = [finder for finder in sys.meta_path if finder is not _hook]
        sys.meta_path = [_hook, *finders] if _requests else finders
    if _requests:
        # After the hook is in place: what other threads load from here on passes _loaded.
        for name in list(sys.modules):
            if name.startswith("sklearn."):
                _import_ours(name)
    with _lock:
        _rebind_sklearn()
        _rebind_users()


def _import_ours(stock_module: str) -> None:
    name = "fastml" + stock_module.removeprefix("sklearn")
    if "._" not in name and name not in sys.modules and modules.own_spec(name) is not None:
        modules.load(name)


def _rebind_sklearn() -> None:
    global _ours, _stock
    entries = list(modules.register.values())
    _ours = {id(e.stock): e.ours for e in entries if _wanted(e)}
    _stock = {id(e.ours): e.stock for e in entries if id(e.stock) not in _ours}
    for entry in entries:
        if id(entry.stock) not in _ours:
            copyreg.dispatch_table.pop(entry.stock, None)
        elif isinstance(entry.stock, type):
            copyreg.dispatch_table[entry.stock] = _reduce_stock
    for module in list(sys.modules.values()):
        if _is_sklearn(module):
            _rebind_module(module)


def _rebind_module(module: ModuleType) -> None:
    new = _ours | _stock
    for namespace in _namespaces(module):
        _swap(namespace, new)


def _rebind_users() -> None:
    for namespace, key, ours in _journal:
        if namespace.get(key) is ours and id(ours) in _stock:
            namespace[key] = _stock[id(ours)]
    _journal[:] = [done for done in _journal if id(done.ours) not in _stock]
    if _ours:
        for module in filter(_is_users, list(sys.modules.values())):
            for key, stock in _swap(vars(module), _ours):
                _journal.append(_Rebinding(vars(module), key, _ours[id(stock)]))


def _swap(namespace: dict[str, Any], new: dict[int, Any]) -> list[tuple[str, Any]]:
    """Replace the values that `new` has by id; return the pairs that were there."""
    swapped = [(key, value) for key, value in list(namespace.items()) if id(value) in new]
    for key, value in swapped:
        namespace[key] = new[id(value)]
    return swapped


def _is_sklearn(module: Any) -> bool:
    # Some packages put objects into sys.modules that answer to any attribute.
    name = module.__name__ if isinstance(module, ModuleType) else None
    return isinstance(name, str) and (name == "sklearn" or name.startswith("sklearn."))


def _is_users(module: Any) -> bool:
    if not isinstance(module, ModuleType) or _is_sklearn(module):
        return False
    name, file = vars(module).get("__name__"), vars(module).get("__file__")
    if name in ("__main__", "__mp_main__"):
        return True
    if not isinstance(name, str) or name.split(".")[0] == "fastml" or not isinstance(file, str):
        return False
    installed = "site-packages" in file or "dist-packages" in file
    return not installed and not file.startswith(_STDLIB)


def _namespaces(module: ModuleType) -> Iterator[dict[str, Any]]:
    """The globals of a module, and its tables such as PAIRWISE_KERNEL_FUNCTIONS."""
    yield vars(module)
    for key, value in list(vars(module).items()):
        if type(value) is dict and not key.startswith("__"):
            yield value


class _Hook:
    """Runs `_loaded` after each module of scikit-learn's has been executed."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if not name.startswith("sklearn."):
            return None
        for finder in sys.meta_path:
            if finder is not self and (spec := finder.find_spec(name, path, target)) is not None:
                if spec.loader is not None:
                    loader: Any = _Loader(spec.loader)
                    spec.loader = loader
                return spec
        return None


class _Loader:
    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def exec_module(self, module: ModuleType) -> None:
        # The module keeps no trace of the hook: resources and sources are found as usual.
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        _loaded(module)


_hook = _Hook()


def _loaded(module: ModuleType) -> None:
    _import_ours(module.__name__)
    with _lock:
        _rebind_module(module)


def _registered() -> None:
    # All of scikit-learn again: a topic comes after its stock package, which by then has loaded
    # private modules that import from one another.
    with _lock:
        if _requests:
            _rebind_sklearn()


modules.on_register.append(_registered)


class _StockClass:
    """Stands in a pickle for a stock class whose name leads to ours while patched."""

    def __init__(self, stock: type) -> None:
        self.stock = stock

    def __reduce__(self) -> tuple[Any, ...]:
        return pkgutil.resolve_name, (f"{self.stock.__module__}:{self.stock.__qualname__}",)


class _NewStock(_StockClass):
    """Makes an instance of the stock class: at once in `copy`, when loaded in `pickle`."""

    def __call__(self) -> Any:
        return object.__new__(self.stock)

    def __reduce__(self) -> tuple[Any, ...]:
        return functools.partial, (object.__new__, _StockClass(self.stock))


def _reduce_stock(instance: Any) -> tuple[Any, ...]:
    """Let instances of a stock class be pickled and copied while its name is taken.

    pickle looks a class up by name and insists on finding the same object. The result loads with
    or without fastml, and names nothing but the standard library and scikit-learn.
    """
    _, _, *rest = instance.__reduce_ex__(4)
    return _NewStock(type(instance)), (), *rest
