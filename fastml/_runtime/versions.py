"""What a report of a problem should say about the machine and the installation."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import PackageNotFoundError, version

DEPENDENCIES = ("scikit-learn", "numpy", "scipy", "joblib", "threadpoolctl", "numba")


def show_versions() -> None:
    """Print the versions, instruction set, threads and BLAS that fastml runs with."""
    import scipy.linalg  # noqa: F401  (loads the BLAS that fastml calls)
    from threadpoolctl import threadpool_info

    import fastml._native.runtime as runtime
    from fastml._runtime.threads import n_threads
    from fastml._version import __version__

    _section(
        "fastml",
        {
            "version": __version__,
            "instruction set": runtime.isa(),
            "threads": n_threads(),
        },
    )
    _section(
        "System",
        {
            "python": sys.version.replace("\n", " "),
            "executable": sys.executable,
            "platform": platform.platform(),
        },
    )
    _section("Dependencies", {name: _version(name) for name in DEPENDENCIES})
    for pool in threadpool_info():
        _section("Thread pool", {key: value for key, value in pool.items() if value is not None})


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _section(title: str, entries: dict[str, object]) -> None:
    width = max(map(len, entries))
    print(f"\n{title}:")
    for key, value in entries.items():
        print(f"  {key:>{width}}: {value}")
