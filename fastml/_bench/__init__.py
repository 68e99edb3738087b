"""`fastml bench`: how fast is it on this machine, next to what else is installed."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from .contest import BUDGET, ROUNDS, Case, Contest, run


def main(argv: list[str] | None = None) -> int:
    options = _parser().parse_args(argv)
    from .cases import families, select

    if options.list:
        for family, members in families().items():
            print(family, *members, sep="\n  ")
        return 0
    try:
        cases = select(options.names)
    except ValueError as error:
        print(f"fastml bench: {error}", file=sys.stderr)
        return 2
    contests = _run(cases, options)
    _announce_absent(contests)
    _write(contests, options)
    return 0 if all(contest.entry("fastml").seconds for contest in contests) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="fastml bench",
        description="Time fastml beside scikit-learn and the other libraries that are installed. "
        "Each works in a process of its own, by turns, with the same number of threads and the "
        "same data; the best time counts, and the quality of the result is shown beside it.",
    )
    parser.add_argument("names", nargs="*", help="families or cases (see --list); all by default")
    parser.add_argument("--list", action="store_true", help="list the cases and stop")
    parser.add_argument("--threads", type=int, help="threads of each contestant; all by default")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="turns of each contestant")
    parser.add_argument("--budget", type=float, default=BUDGET, help="seconds of a case, roughly")
    parser.add_argument("--html", type=Path, default="fastml-bench.html", help="where to report")
    parser.add_argument("--json", type=Path, help="write the figures here as well ('-': print)")
    return parser


def _run(cases: list[Case], options: argparse.Namespace) -> list[Contest]:
    from .environment import pinned
    from .progress import Progress
    from .report import table

    # With '-' nothing but JSON goes to the standard output.
    out = sys.stderr if str(options.json) == "-" else sys.stdout
    if pinned():
        print(f"not passed on to the contestants: {', '.join(pinned())}", file=out)
    contests = []
    with Progress(len(cases)) as progress:
        for case in cases:
            contest = run(
                case,
                rounds=options.rounds,
                budget=options.budget,
                threads=options.threads,
                progress=progress.show,
            )
            contests.append(contest)
            progress.step()
            print(table(contest), end="\n\n", file=out, flush=True)
    return contests


def _announce_absent(contests: list[Contest]) -> None:
    absent = {
        contestant.distribution
        for contest in contests
        for contestant in contest.case.contestants
        if contestant.missing
    }
    if absent:
        names = ", ".join(sorted(absent))
        print(
            f"Not installed: {names}. To compare with all peers: pip install 'fastml[bench]'",
            file=sys.stderr,
        )


def _write(contests: list[Contest], options: argparse.Namespace) -> None:
    from .html import page
    from .report import as_json

    if options.json:
        text = json.dumps(as_json(contests), indent=2)
        if str(options.json) == "-":
            print(text)
        else:
            options.json.write_text(text + "\n")
    options.html.write_text(page(contests), encoding="utf-8")
    print(f"Report: {options.html.resolve()}", file=sys.stderr)
