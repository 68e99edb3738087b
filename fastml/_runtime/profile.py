"""The table at the end of `python -m fastml --profile`.

The first process sums up its own calls. Its children may be killed at any time, as pools do, so
they write each call to a file of their own in a folder that the first one reads at its end.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import shutil
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from fastml._runtime import dispatch
from fastml._runtime.dispatch import Call
from fastml._version import __version__


@dataclass
class Row:
    """All calls of one method."""

    calls: int = 0
    seconds: float = 0.0
    native_calls: int = 0
    native_seconds: float = 0.0
    reasons: Counter[str] = field(default_factory=Counter)

    def add(self, native: bool, reason: str | None, seconds: float) -> None:
        self.calls += 1
        self.seconds += seconds
        if native:
            self.native_calls += 1
            self.native_seconds += seconds
        else:
            self.reasons[str(reason)] += 1


class Profile:
    """Sums up the calls of this process, and those that its children left in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.rows: dict[tuple[str | None, str], Row] = {}
        self.processes = 1
        self._folder = folder
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._start = time.perf_counter()

    def __call__(self, call: Call) -> None:
        if os.getpid() != self._pid:  # a fork of the process that is being profiled
            leave(self._folder, call)
            return
        with self._lock:
            self._add(call.estimator, call.method, call.native, call.reason, call.seconds)

    def _add(self, estimator: str | None, method: str, *outcome: Any) -> None:
        self.rows.setdefault((estimator, method), Row()).add(*outcome)

    def gather(self) -> None:
        for file in self._folder.glob("*.jsonl"):
            self.processes += 1
            for line in file.read_text().splitlines():
                with suppress(ValueError):  # cut short: its process was killed while writing
                    self._add(*json.loads(line))

    def end(self, command: list[str], file: str | None) -> None:
        if os.getpid() != self._pid:
            return
        self.gather()
        shutil.rmtree(self._folder, ignore_errors=True)
        summary = self.summary(command)
        print_table(summary, sys.stderr)
        if file is not None:
            Path(file).write_text(json.dumps(summary, indent=1) + "\n")

    def summary(self, command: list[str]) -> dict[str, Any]:
        by_time = sorted(self.rows.items(), key=lambda item: -item[1].seconds)
        return {
            "fastml": __version__,
            "command": command,
            "seconds": time.perf_counter() - self._start,
            "processes": self.processes,
            "methods": [
                {"estimator": estimator, "method": method} | vars(row)
                for (estimator, method), row in by_time
            ],
        }


def print_table(summary: dict[str, Any], out: TextIO) -> None:
    methods = summary["methods"]
    calls = sum(row["calls"] for row in methods)
    processes = f" in {summary['processes']} processes" if summary["processes"] > 1 else ""
    print(f"\nfastml: {summary['seconds']:.2f} s, {calls} calls{processes}", file=out)
    if not methods:
        print("No call reached anything that fastml replaces.", file=out)
        return
    labels = [".".join(filter(None, (row["estimator"], row["method"]))) for row in methods]
    width = max(map(len, labels))
    print(f"\n{'':{width}}    calls    seconds   native   not native because", file=out)
    for label, row in zip(labels, methods, strict=True):
        share = 100 * row["native_calls"] / row["calls"]
        # Never round up to 100: one call in a thousand is still a call that was not native.
        share = f"{int(share)} %"
        reasons = [f"{reason} (×{n})" for reason, n in Counter(row["reasons"]).most_common()]
        line = f"{label:{width}} {row['calls']:8d} {row['seconds']:10.3f} {share:>8}"
        gap = f"\n{'':{len(line)}}   "
        print(f"{line}   {gap.join(reasons)}".rstrip(), file=out)


def leave(folder: Path, call: Call) -> None:
    """Record a call of a child process."""
    record = [call.estimator, call.method, call.native, call.reason, call.seconds]
    with (
        suppress(OSError),  # the first process has ended and taken the folder away
        open(folder / f"{os.getpid()}.jsonl", "a") as file,
    ):
        file.write(json.dumps(record) + "\n")


def begin(folder: str, main: str | None) -> None:
    """Record this process: the first one of a command if `main` says how it ends, or a child."""
    if main is None:
        dispatch.collect(functools.partial(leave, Path(folder)))
        return
    profile = Profile(Path(folder))
    dispatch.collect(profile)
    atexit.register(profile.end, **json.loads(main))
