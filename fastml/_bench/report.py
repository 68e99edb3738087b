"""Results as text and as JSON."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from typing import Any

from .contest import Contest, Entry
from .environment import cpu_name


def duration(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def remarks(contest: Contest, entry: Entry) -> str:
    """What a reader has to know before comparing the times."""
    quality = "" if contest.equal(entry) else "not of equal quality"
    return "; ".join(filter(None, [quality, entry.note]))


def table(contest: Contest) -> str:
    """The contestants of one case, the fastest first."""
    rows = [("", "best", "speed", contest.case.measure, "")]
    reference = contest.entries[0]
    for entry in sorted(contest.finished, key=lambda entry: entry.best):
        speed = f"{contest.ratio(entry):.2f} x" if reference.seconds else ""
        quality = f"{entry.quality:.6g}"
        label = f"{entry.name} {entry.version}".rstrip()
        rows.append((label, duration(entry.best), speed, quality, remarks(contest, entry)))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [str(contest.case)]
    for label, *figures, remark in rows:
        cells = [f"{cell:>{width}}" for cell, width in zip(figures, widths[1:], strict=False)]
        lines.append("  ".join(["", f"{label:<{widths[0]}}", *cells, remark]).rstrip())
    lines += [f"  {entry.name}: {entry.failure}" for entry in contest.entries if entry.failure]
    return "\n".join(lines)


def machine() -> dict[str, Any]:
    """Where the figures come from."""
    import numpy
    import scipy

    return {
        "processor": cpu_name(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "scipy": scipy.__version__,
    }


def as_json(contests: Iterable[Contest]) -> dict[str, Any]:
    return {
        "machine": machine(),
        "cases": [
            {
                "name": contest.case.name,
                "params": dict(contest.case.params),
                "measure": contest.case.measure,
                "threads": contest.threads,
                "contestants": [
                    {
                        "name": entry.name,
                        "version": entry.version,
                        "seconds": entry.seconds,
                        "quality": entry.quality,
                        "equal_quality": contest.equal(entry),
                        "note": entry.note,
                    }
                    for entry in contest.finished
                ],
                "absent": {entry.name: entry.failure for entry in contest.entries if entry.failure},
            }
            for contest in contests
        ],
    }
