"""The tests that fastml fails on purpose; the list cannot go stale in silence."""

import tomllib
from collections.abc import Collection
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

KEYS = {"reason", "condition", "tests"}


def load(path: Path) -> dict[str, str]:
    """Return the reason for each test that is expected to fail with the versions installed."""
    entries = tomllib.loads(path.read_text(encoding="utf-8")).get("xfail", [])
    for entry in entries:
        if set(entry) != KEYS or not all(entry.values()):
            raise pytest.UsageError(f"{path.name}: {entry} needs {sorted(KEYS)}")
    return {
        test: entry["reason"]
        for entry in entries
        if _holds(entry["condition"])
        for test in entry["tests"]
    }


def stale(expected: Collection[str], collected: Collection[str]) -> list[str]:
    """Return the entries whose module was collected, in full, without them in it."""
    modules = {test.partition("::")[0] for test in collected}
    return sorted(
        test for test in set(expected) - set(collected) if test.partition("::")[0] in modules
    )


def _holds(condition: str) -> bool:
    requirement: Any = Requirement(condition)
    return requirement.specifier.contains(version(requirement.name), prereleases=True)
