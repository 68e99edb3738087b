"""The machine, and what of its environment a measurement must not inherit."""

from __future__ import annotations

import os
import platform
from pathlib import Path

# A pinned OpenBLAS (older kernels, another block size) makes every library that is built on it
# look slow, which would flatter the ones that are not.
PINS = ("OPENBLAS_", "MKL_", "BLIS_", "GOTO_")


def pinned() -> list[str]:
    """The variables that `clean_environment` leaves out."""
    return sorted(name for name in os.environ if name.startswith(PINS))


def clean_environment(threads: int) -> dict[str, str]:
    """The environment of a worker: nothing pinned, and everybody has the same threads."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(PINS)}
    counts = dict.fromkeys(("OMP_NUM_THREADS", "NUMBA_NUM_THREADS"), str(threads))
    return clean | counts


def cpu_flags() -> set[str]:
    """What the processor can do, where the system says it in a file; elsewhere nothing."""
    for line in _cpuinfo():
        if line.startswith("flags"):
            return set(line.partition(":")[2].split())
    return set()


def cpu_name() -> str:
    for line in _cpuinfo():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _cpuinfo() -> list[str]:
    cpuinfo = Path("/proc/cpuinfo")
    return cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
