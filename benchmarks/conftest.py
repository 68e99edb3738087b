"""The benchmark harness: pytest-benchmark on top of `fastml._bench`.

    python -m pytest benchmarks                     # everything, every peer
    python -m pytest benchmarks -k "fit and d256"    # some
    python -m pytest benchmarks --threads 1 --rounds 11 --budget 60

A benchmark file asks for cases and looks at what came out:

    from fastml._bench.cases.kmeans import fit_case

    CASES = [fit_case(100_000, 50, 100, dtype) for dtype in ("float32", "float64")]

    @pytest.mark.contest(CASES)
    def bench_fit(entry, contest):
        assert contest.equal(entry)              # quality: already checked, see below
        if entry.name == "fastml":
            assert contest.ratio(entry, "sklearnex") > 1.5

It becomes one test a case and contestant. A case is run when the first of its contestants is
asked for: all of them then work by turns, each in a process of its own, with the same number of
threads and without the OPENBLAS_* variables of the caller (see `fastml/_bench/contest.py`). The
recorded times are then told to pytest-benchmark, whose tables, JSON and comparisons work as
usual. A peer that is not installed is skipped with a message. Quality is asserted equal for every
contestant and printed beside the times at the end; fastml must not have fallen back.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fastml._bench.contest import BUDGET, ROUNDS, Case, Contest, Entry, run
from fastml._bench.environment import cpu_name, pinned
from fastml._bench.report import table

RESULTS = pytest.StashKey[dict[int, Contest]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("contest")
    group.addoption("--threads", type=int, help="threads of every contestant (all by default)")
    group.addoption("--rounds", type=int, default=ROUNDS, help="turns of a contestant")
    group.addoption("--budget", type=float, default=BUDGET, help="seconds of a case")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "contest(cases): run the benchmark on each of the cases")
    config.stash[RESULTS] = {}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    marker = metafunc.definition.get_closest_marker("contest")
    if marker is None:
        return
    pairs = [
        pytest.param((case, contestant.name), id=_id(case, contestant.name))
        for case in marker.args[0]
        for contestant in case.contestants
    ]
    metafunc.parametrize("_pair", pairs)


def _id(case: Case, contestant: str) -> str:
    """A name that `-k` can spell."""
    return f"{case} {contestant}".replace("=", "").replace(" ", "-")


class Replay:
    """A clock that moves on by what was measured in the worker whenever `turn` is called."""

    def __init__(self, seconds: list[float]) -> None:
        self.now = 0.0
        self.seconds: Iterator[float] = iter(seconds)

    def __call__(self) -> float:
        return self.now

    def turn(self) -> None:
        self.now += next(self.seconds)


@pytest.fixture
def contest(request: pytest.FixtureRequest, _pair: tuple[Case, str]) -> Contest:
    """The outcome of the case of this test."""
    config, results = request.config, request.config.stash[RESULTS]
    case = _pair[0]
    if id(case) not in results:
        results[id(case)] = run(
            case,
            rounds=config.getoption("--rounds"),
            budget=config.getoption("--budget"),
            threads=config.getoption("--threads"),
            path=[str(request.path.parent)],
        )
    return results[id(case)]


@pytest.fixture
def entry(request: pytest.FixtureRequest, _pair: tuple[Case, str], contest: Contest) -> Entry:
    """What the contestant of this test did, at equal quality; told to pytest-benchmark."""
    case, name = _pair
    entry = contest.entry(name)
    if entry.failure:
        pytest.skip(f"{name}: {entry.failure}")
    assert not entry.note, f"this is not a time of {name}: {entry.note}"
    replay = Replay(entry.seconds)
    request.node.add_marker(pytest.mark.benchmark(timer=replay, group=str(case), warmup=False))
    benchmark = request.getfixturevalue("benchmark")
    benchmark.extra_info |= {
        "quality": entry.quality,
        "measure": case.measure,
        "version": entry.version,
        "threads": contest.threads,
    }
    benchmark.pedantic(replay.turn, rounds=len(entry.seconds))
    quality = f"{name} has {case.measure} {entry.quality:.6g}"
    if name != "fastml" and not contest.equal(entry):
        pytest.skip(f"{quality}, which is not equal: its time does not count")
    assert contest.equal(entry), quality
    return entry


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    contests = list(terminalreporter.config.stash[RESULTS].values())
    if not contests:
        return
    terminalreporter.section("best times, and quality")
    terminalreporter.write_line(f"{cpu_name()}, {contests[0].threads} threads")
    if pinned():
        terminalreporter.write_line(f"set here, unset for the contestants: {', '.join(pinned())}")
    for contest in contests:
        terminalreporter.write_line(f"\n{table(contest)}")
