"""`%load_ext fastml` and `%unload_ext fastml`."""

from typing import Any

from fastml._runtime.patching import patch_sklearn, unpatch_sklearn


def load_ipython_extension(ipython: Any) -> None:
    """Accelerate the notebook, with what its cells have imported, and its workers."""
    patch_sklearn(children=True)


def unload_ipython_extension(ipython: Any) -> None:
    unpatch_sklearn()
