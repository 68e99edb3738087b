"""The benchmark command, on cases that are over at once."""

import json
import os
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fastml import _bench
from fastml._bench import cases
from fastml._bench.contest import Case, Contest, Contestant, Entry, run
from fastml._bench.environment import clean_environment
from fastml._bench.html import page
from fastml._bench.report import as_json, table

HERE = str(Path(__file__).parent)


def numbers(n, dtype):
    return np.arange(n, dtype=dtype)


def add(data, threads):
    return data.sum


def add_badly(data, threads):
    return lambda: data.sum() + 1


def add_with_noise(data, threads):
    print("libraries print")
    os.write(1, b"in any way they like\n")
    return lambda: float(os.environ["FASTML_TEST_OFFSET"]) + data.sum()


def fail(data, threads):
    raise ValueError("no such thing")


def die(data, threads):
    return lambda: os._exit(3)


def error(data, result):
    return abs(result - data.sum())


def offset():
    return {"FASTML_TEST_OFFSET": "0"}


CASE = Case(
    "sum",
    {"n": 1000, "dtype": "float64"},
    numbers,
    (
        Contestant("numpy", add, "numpy"),
        Contestant("noise", add_with_noise, "numpy", offset),
        Contestant("wrong", add_badly, "numpy"),
        Contestant("absent", add, "no-such-distribution"),
        Contestant("failing", fail, "numpy"),
        Contestant("dying", die, "numpy"),
    ),
    error,
    "error",
)


@pytest.fixture(scope="module")
def contest():
    return run(CASE, rounds=3, budget=0.1, threads=1, path=[HERE])


def test_contestants_are_measured_in_their_own_processes(contest):
    for name in ("numpy", "noise", "wrong"):
        entry = contest.entry(name)
        assert len(entry.seconds) == 3
        assert 0 < entry.best < 1
        assert entry.version == np.__version__


def test_quality_is_compared(contest):
    assert contest.equal(contest.entry("numpy"))
    assert contest.equal(contest.entry("noise"))
    assert not contest.equal(contest.entry("wrong"))


def test_another_method_is_no_measure():
    names = {"numpy": 2.0, "worse": 3.0, "other": 1.0}
    contestants = tuple(Contestant(n, add, "numpy", beside=n == "other") for n in names)
    entries = [Entry(n, seconds=[1.0], quality=q) for n, q in names.items()]
    contest = Contest(replace(CASE, contestants=contestants), 1, entries)
    assert [contest.equal(entry) for entry in entries] == [True, False, True]


def test_what_fails_is_an_entry_with_a_reason(contest):
    assert contest.entry("absent").failure == "no-such-distribution is not installed"
    assert contest.entry("failing").failure == "ValueError: no such thing"
    assert contest.entry("dying").failure == "the process ended with code 3"
    assert {entry.name for entry in contest.finished} == {"numpy", "noise", "wrong"}


def test_nothing_pinned_reaches_a_worker(monkeypatch):
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    environment = clean_environment(3)
    assert "OPENBLAS_CORETYPE" not in environment
    assert environment["OMP_NUM_THREADS"] == "3"


def test_table(contest):
    text = table(contest)
    assert text.startswith("sum n=1000 float64\n")
    assert "not of equal quality" in next(line for line in text.splitlines() if "wrong" in line)
    assert "  absent: no-such-distribution is not installed" in text


def test_json(contest):
    (case,) = json.loads(json.dumps(as_json([contest])))["cases"]
    assert [c["name"] for c in case["contestants"]] == ["numpy", "noise", "wrong"]
    assert case["absent"]["dying"] == "the process ended with code 3"


def test_html_is_one_file_and_escaped(contest):
    odd = replace(CASE, name="<sum>")
    text = page([replace(contest, case=odd)])
    assert "&lt;sum&gt;" in text
    assert "<sum>" not in text
    assert text.count("<rect") == 3
    assert not re.search(r"(?:src|href)=|url\(|@import|<script", text)


def test_the_command(monkeypatch, tmp_path, capsys):
    case = replace(CASE, contestants=(Contestant("fastml", add, "numpy"),))
    monkeypatch.setattr(cases, "select", lambda names: [case])
    monkeypatch.setattr(_bench, "run", lambda case, **options: run(case, path=[HERE], **options))
    monkeypatch.chdir(tmp_path)
    assert _bench.main(["--rounds", "1", "--budget", "0", "--json", "-"]) == 0
    out = capsys.readouterr()
    assert json.loads(out.out)["cases"][0]["name"] == "sum"
    assert "fastml-bench.html" in out.err
    assert (
        (tmp_path / "fastml-bench.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    )


def test_unknown_names(capsys):
    assert _bench.main(["no-such-case"]) == 2
    assert "no benchmark is called 'no-such-case'" in capsys.readouterr().err


def test_families_are_found_and_their_cases_named_apart(capsys):
    assert _bench.main(["--list"]) == 0
    assert "kmeans-fit n=100000 d=50 k=100 float32" in capsys.readouterr().out
    everything = [str(case) for family in cases.families().values() for case in family]
    assert len(everything) == len(set(everything))
    assert cases.select(["kmeans"]) == list(cases.families()["kmeans"])


def test_a_case_of_kmeans_runs():
    from fastml._bench.cases.kmeans import fit_case

    contest = run(fit_case(200, 3, 4, "float64", max_iter=2), rounds=1, budget=0.1, threads=1)
    ours = contest.entry("fastml")
    assert not ours.failure
    assert not ours.note, "a fallback"
    assert contest.equal(ours)
    assert sys.executable == contest.case.contestants[0].python
