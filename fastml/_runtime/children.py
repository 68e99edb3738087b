"""Accelerating whole processes: `python -m fastml`, and the Python processes that they start.

A process is accelerated from its start when environment variables say so. The folder `hook` at
the head of PYTHONPATH holds a sitecustomize module, which Python imports at start-up in any child
that inherits the environment: workers of joblib, of multiprocessing however they are started, and
subprocesses. Nothing is installed outside the package, and a process whose environment does not
mention fastml is not touched. Python's -E, -I and -S switch it off.

    FASTML_PYTHON   the interpreter for which all of this is meant
    FASTML_PATCH    "*", or the names to replace
    FASTML_PROFILE  a folder in which each process records its calls
    FASTML_VERBOSE  1: the record goes to stderr
    FASTML_STRICT   1: strict mode (see config.py)
    FASTML_MAIN     what the first process does at its end, as JSON; not passed on
"""

from __future__ import annotations

import os
import sys

from fastml._runtime import patching

HOOK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "hook")

_saved: dict[str, str | None] = {}  # what `export` changed, as it was


def environment(names: frozenset[str] | None) -> dict[str, str]:
    """The variables that accelerate child processes."""
    path = os.environ.get("PYTHONPATH")
    rest = [entry for entry in path.split(os.pathsep) if entry != HOOK] if path else []
    return {
        "PYTHONPATH": os.pathsep.join([HOOK, *rest]),
        "FASTML_PYTHON": f"{sys.implementation.cache_tag}:{sys.prefix}",
        "FASTML_PATCH": "*" if names is None else ",".join(sorted(names)),
    }


def export(names: frozenset[str] | None) -> None:
    """Accelerate the child processes that this one starts from now on."""
    for variable, value in environment(names).items():
        _saved.setdefault(variable, os.environ.get(variable))
        os.environ[variable] = value


def withdraw() -> None:
    """Undo `export`."""
    while _saved:
        variable, value = _saved.popitem()
        if value is None:
            os.environ.pop(variable, None)
        else:
            os.environ[variable] = value


def begin() -> None:
    """Do what the environment says; runs at the start of an accelerated process."""
    names = os.environ["FASTML_PATCH"]
    patching.add(None if names == "*" else frozenset(names.split(",")))
    main = os.environ.pop("FASTML_MAIN", None)
    if os.environ.get("FASTML_VERBOSE") == "1":
        _log_to_stderr()
    if folder := os.environ.get("FASTML_PROFILE"):
        from fastml._runtime import profile

        profile.begin(folder, main)


def _log_to_stderr() -> None:
    import logging

    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("[fastml] %(message)s, %(seconds).3g s"))
    logger = logging.getLogger("fastml.dispatch")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False  # or a root logger of the script's would print it again
