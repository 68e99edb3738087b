"""fastml's options beside scikit-learn's.

Both kinds are set and read by the same functions, so that a script written for scikit-learn's
works. Like scikit-learn's, the options belong to the thread, and scikit-learn's `Parallel` hands
them to its workers.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def _flag(variable: str) -> bool:
    value = os.environ.get(variable, "").strip().lower()
    if value in ("", "0", "false", "no", "off"):
        return False
    if value in ("1", "true", "yes", "on"):
        return True
    raise ValueError(f"{variable} must be 0 or 1, not {value!r}")


_defaults: dict[str, Any] = {"strict": _flag("FASTML_STRICT"), "threads": None}


class _Local(threading.local):
    def __init__(self) -> None:
        self.options = _defaults.copy()


_local = _Local()


def get(name: str) -> Any:
    """One option of fastml's, without importing scikit-learn."""
    return _local.options[name]


def set_config(**options: Any) -> None:
    """Set options of fastml's and of scikit-learn's for this thread.

    Parameters
    ----------
    strict : bool, default=False
        Whether a call that has no compiled path raises NotAcceleratedError instead of going to
        scikit-learn. The environment variable FASTML_STRICT=1 makes it the default.

    threads : int or None, default=None
        How many threads fastml may use; None means all that the process is allowed.

    **options
        Options of `sklearn.set_config`. None leaves one of those unchanged.
    """
    ours = {name: options.pop(name) for name in _defaults if name in options}
    _check(ours)
    if options:
        from sklearn import set_config as set_stock_config

        set_stock_config(**options)
    _local.options.update(ours)
    if _local.options != _defaults:
        _propagate()


def get_config() -> dict[str, Any]:
    """The options of scikit-learn's and of fastml's in this thread, as a new dict."""
    from sklearn import get_config as get_stock_config

    return _Config(get_stock_config() | _local.options)


@contextmanager
def config_context(**options: Any) -> Iterator[None]:
    """Set options within a `with` block; takes what `set_config` takes."""
    before = get_config()
    set_config(**options)
    try:
        yield
    finally:
        set_config(**before)


def _check(options: dict[str, Any]) -> None:
    strict, threads = options.get("strict", False), options.get("threads")
    if not isinstance(strict, bool):
        raise TypeError(f"strict must be True or False, not {strict!r}")
    if threads is not None:
        if isinstance(threads, bool) or not hasattr(threads, "__index__"):
            raise TypeError(f"threads must be an integer or None, not {threads!r}")
        if threads < 1:
            raise ValueError(f"threads must be at least 1, not {threads}")


class _Config(dict[str, Any]):
    """A configuration on its way to a worker, which may not have seen fastml yet."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _arrive, (dict(self),)


def _arrive(options: dict[str, Any]) -> dict[str, Any]:
    _propagate()
    return _Config(options)


def _propagate() -> None:
    """Have scikit-learn's Parallel carry fastml's options along with its own.

    It reads the options of the thread that starts the jobs and sets them in the workers through
    two names in one module, which lead here from the first time that an option of ours is set.
    """
    import sklearn.utils.parallel

    vars(sklearn.utils.parallel).update(get_config=get_config, config_context=config_context)
