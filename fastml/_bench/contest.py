"""Time several libraries at the same work, side by side.

Every contestant lives in a process of its own, because libraries disagree about what a process
should hold (two OpenMP runtimes, three BLAS, patched modules), and some need an environment
variable before they load. The driver gives them turns: one works, the others sleep. Turns are
interleaved, so that a machine that slows down slows everybody down.

    case = Case(
        name="sum",
        params={"n": 1_000_000},
        data=make_data,                       # (**params) -> data, made in every worker
        contestants=(Contestant("numpy", prepare_numpy, "numpy"), ...),
        quality=difference_from_fsum,         # (data, result) -> float, smaller is better
        measure="error",
    )
    contest = run(case)

`prepare(data, threads)` does what is not to be timed and returns the call that is. All functions
must be importable by name: they are sent to the workers by reference.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import joblib

from .environment import clean_environment

ROUNDS = 7
BUDGET = 20.0  # seconds of one case, all contestants together
TURN = 0.05  # seconds; a shorter call is repeated within a turn, and its best time counts
PAUSE = 0.05  # OpenBLAS and OpenMP threads spin for a while before they sleep


@dataclass(frozen=True)
class Contestant:
    """One library's way to do the work; `distribution` is what pip calls it."""

    name: str
    prepare: Callable[[Any, int], Callable[[], Any]]
    distribution: str
    environment: Callable[[], Mapping[str, str]] = dict
    python: str = sys.executable  # another interpreter: another build of the same library
    beside: bool = False  # by another method: how good its result is, is no measure of the others'

    @property
    def missing(self) -> str:
        """Why the contestant cannot take part, or an empty string."""
        if self.python != sys.executable:
            return ""
        try:
            version(self.distribution)
        except PackageNotFoundError:
            # A source tree on PYTHONPATH has no metadata but is there.
            if self.distribution != "fastml":
                return f"{self.distribution} is not installed"
        return ""


@dataclass(frozen=True)
class Case:
    """A piece of work, and who can do it. The first contestant is the reference."""

    name: str
    params: Mapping[str, Any]
    data: Callable[..., Any]
    contestants: tuple[Contestant, ...]
    quality: Callable[[Any, Any], float]
    measure: str
    rtol: float = 1e-3  # qualities this close to the best are called equal
    atol: float = 0.0

    def __str__(self) -> str:
        shown = (v if isinstance(v, str) else f"{k}={v}" for k, v in self.params.items())
        return " ".join([self.name, *shown])


@dataclass
class Entry:
    """What one contestant did."""

    name: str
    version: str = ""
    seconds: list[float] = field(default_factory=list)
    quality: float = float("nan")
    note: str = ""  # a fallback, for instance
    failure: str = ""  # why there are no figures

    @property
    def best(self) -> float:
        return min(self.seconds, default=float("nan"))


@dataclass
class Contest:
    """The outcome of a case."""

    case: Case
    threads: int
    entries: list[Entry]

    @property
    def finished(self) -> list[Entry]:
        return [entry for entry in self.entries if entry.seconds]

    def entry(self, name: str) -> Entry:
        return next(entry for entry in self.entries if entry.name == name)

    def equal(self, entry: Entry) -> bool:
        """Whether this entry's quality is that of the best, up to the tolerance of the case."""
        beside = {contestant.name for contestant in self.case.contestants if contestant.beside}
        measures = (e for e in self.finished if e is entry or e.name not in beside)
        best = min(e.quality for e in measures)
        return entry.quality <= best + self.case.rtol * abs(best) + self.case.atol

    def ratio(self, entry: Entry, reference: str | None = None) -> float:
        """How many times faster the entry is than the reference contestant."""
        base = self.entry(reference or self.case.contestants[0].name)
        return base.best / entry.best


class WorkerFailure(RuntimeError):
    """A contestant raised, or its process died."""


class Worker:
    """A process that holds one contestant and works when told to."""

    def __init__(self, contestant: Contestant, threads: int, path: Sequence[str]) -> None:
        # By file and not by module name: `python` may be one where fastml has another version,
        # and both sides of the pipe must speak the protocol of this one.
        script = Path(__file__).with_name("worker.py")
        environment = clean_environment(threads) | dict(contestant.environment())
        if contestant.python == sys.executable:
            path = [*path, str(script.parents[2])]  # the fastml that is asking
        else:
            environment.pop("PYTHONPATH", None)  # not ours for another's
        self.process = subprocess.Popen(
            [contestant.python, "-P", str(script), *path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
        )

    def tell(self, command: str, *arguments: Any) -> None:
        with suppress(BrokenPipeError):  # `answer` says how the process ended
            pickle.dump((command, arguments), self.process.stdin)  # type: ignore[arg-type]
            self.process.stdin.flush()  # type: ignore[union-attr]

    def answer(self) -> Any:
        try:
            ok, answer = pickle.load(self.process.stdout)  # type: ignore[arg-type]
        except EOFError:
            raise WorkerFailure(f"the process ended with code {self.process.wait()}") from None
        if not ok:
            raise WorkerFailure(answer)
        return answer

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(BrokenPipeError):
            self.process.stdin.close()  # type: ignore[union-attr]
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()  # type: ignore[union-attr]


def run(
    case: Case,
    *,
    rounds: int = ROUNDS,
    budget: float = BUDGET,
    threads: int | None = None,
    path: Sequence[str] = (),
    progress: Callable[[str], None] = lambda message: None,
) -> Contest:
    """Let the contestants of `case` do it, by turns, and return what came out.

    `path` holds the directories from which the workers import the functions of the case, when
    they are not on `sys.path` already. A contestant that is missing or fails is an entry with a
    reason and without figures.
    """
    threads = threads or joblib.cpu_count()
    contest = Contest(case, threads, [Entry(contestant.name) for contestant in case.contestants])
    with ExitStack() as stack:
        workers: list[tuple[Entry, Worker]] = []
        for contestant, entry in zip(case.contestants, contest.entries, strict=True):
            entry.failure = contestant.missing
            if not entry.failure:
                worker = stack.enter_context(Worker(contestant, threads, path))
                # Not the other contestants, whose functions it may be unable to import.
                worker.tell("start", replace(case, contestants=()), contestant, threads)
                workers.append((entry, worker))
        turns: list[tuple[Entry, Worker, int]] = []
        total = 0.0
        for entry, worker in workers:
            progress(f"{case}: {entry.name} gets ready")
            try:
                entry.version, entry.quality, entry.note, seconds = worker.answer()
            except WorkerFailure as failure:
                entry.failure = str(failure)
                continue
            total += max(seconds, TURN) + PAUSE
            turns.append((entry, worker, max(1, round(TURN / seconds))))
        for i in range(max(3, min(rounds, int(budget / max(total, TURN))))):
            # Rotate, so that nobody always works on the caches and clocks the same one left.
            shift = i % max(1, len(turns))
            for entry, worker, number in turns[shift:] + turns[:shift]:
                progress(f"{case}: {entry.name}, round {i + 1}")
                time.sleep(PAUSE)
                worker.tell("turn", number)
                entry.seconds.append(worker.answer())
    return contest
