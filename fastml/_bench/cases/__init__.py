"""What `fastml bench` can measure: every module here is a family and joins by being here.

A family module has `CASES`, the short selection that `fastml bench` runs, and functions that
build cases of other sizes for `benchmarks/`.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module

from ..contest import Case


def families() -> dict[str, tuple[Case, ...]]:
    """Family name -> its cases."""
    modules = (import_module(f"{__name__}.{info.name}") for info in pkgutil.iter_modules(__path__))
    return {module.__name__.rpartition(".")[2]: module.CASES for module in modules}


def select(names: list[str]) -> list[Case]:
    """The cases of the named families, or whose name starts so; all if no name is given."""
    chosen: list[Case] = []
    for name in names or list(families()):
        cases = [
            case
            for family, cases in families().items()
            for case in cases
            if name == family or case.name.startswith(name)
        ]
        if not cases:
            raise ValueError(f"no benchmark is called {name!r}; try `fastml bench --list`")
        chosen += [case for case in cases if case not in chosen]
    return chosen
