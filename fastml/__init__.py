"""scikit-learn's API, compiled.

`fastml.cluster.KMeans` and whatever else fastml replaces are its own; every other name under
`fastml` is scikit-learn's. Importing fastml loads neither kernels nor scikit-learn.
"""

# ruff: noqa: F401  (imports that only type checkers see)

from importlib import import_module as _import_module
from typing import TYPE_CHECKING
from typing import Any as _Any

from fastml._runtime import modules as _modules
from fastml._version import __version__

if TYPE_CHECKING:
    from fastml._runtime.config import config_context, get_config, set_config
    from fastml._runtime.convert import from_sklearn, to_sklearn
    from fastml._runtime.dispatch import NotAcceleratedError
    from fastml._runtime.ipython import load_ipython_extension, unload_ipython_extension
    from fastml._runtime.modules import replacements
    from fastml._runtime.patching import patch_sklearn, patched, unpatch_sklearn
    from fastml._runtime.versions import show_versions

# Ours, by the module of _runtime that has it. All other names are scikit-learn's.
_OURS = {
    "config": ("config_context", "get_config", "set_config"),
    "convert": ("from_sklearn", "to_sklearn"),
    "dispatch": ("NotAcceleratedError",),
    "ipython": ("load_ipython_extension", "unload_ipython_extension"),
    "modules": ("replacements",),
    "patching": ("patch_sklearn", "patched", "unpatch_sklearn"),
    "versions": ("show_versions",),
}

_modules.install()


def __getattr__(name: str) -> _Any:
    if name == "__all__":
        ours = [name for names in _OURS.values() for name in names]
        return sorted({*_import_module("sklearn").__all__, *ours})
    for module, names in _OURS.items():
        if name in names:
            value = getattr(_import_module(f"fastml._runtime.{module}"), name)
            globals()[name] = value
            return value
    return _modules.attribute(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__getattr__("__all__")})
