"""Compare two revisions of fastml: `python benchmarks/compare.py BASE HEAD [NAMES ...]`.

Each revision is checked out into a temporary worktree and installed into a virtual environment
of its own; then both work by turns on the cases of this checkout (those of `fastml bench`; NAMES
selects as there). Prints a table and ends with status 1 if HEAD is slower than BASE by more than
`--tolerance` anywhere, or of lower quality.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from fastml._bench.cases import select
from fastml._bench.contest import BUDGET, ROUNDS, Case, Contest, run
from fastml._bench.report import table

ROOT = Path(__file__).parents[1]


def install(revision: str, home: Path) -> str:
    """Build `revision` in `home` and return the interpreter which has it."""
    source, venv = home / "source", home / "venv"
    subprocess.run(["git", "worktree", "add", "--detach", source, revision], cwd=ROOT, check=True)
    try:
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        python = venv / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
        subprocess.run([python, "-m", "pip", "install", "--quiet", source], check=True)
    finally:
        subprocess.run(["git", "worktree", "remove", "--force", source], cwd=ROOT, check=True)
    return str(python)


def duel(case: Case, base: str, head: str) -> Case:
    """The case with fastml of both revisions as its only contestants."""
    fastml = next(contestant for contestant in case.contestants if contestant.name == "fastml")
    return replace(
        case,
        contestants=(
            replace(fastml, name="base", python=base),
            replace(fastml, name="head", python=head),
        ),
    )


def acceptable(contest: Contest, tolerance: float) -> bool:
    if any(entry.failure for entry in contest.entries):
        return False
    head = contest.entry("head")
    return contest.equal(head) and contest.ratio(head) >= 1 / (1 + tolerance)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("base", help="revision to compare with")
    parser.add_argument("head", help="revision to judge")
    parser.add_argument("names", nargs="*", help="families or cases; all by default")
    parser.add_argument("--tolerance", type=float, default=0.1, help="slowdown that is noise")
    parser.add_argument("--rounds", type=int, default=2 * ROUNDS)
    parser.add_argument("--budget", type=float, default=BUDGET, help="seconds of a case")
    parser.add_argument("--threads", type=int)
    options = parser.parse_args()
    slower = []
    with tempfile.TemporaryDirectory() as directory:
        base = install(options.base, Path(directory, "base"))
        head = install(options.head, Path(directory, "head"))
        for case in select(options.names):
            contest = run(
                duel(case, base, head),
                rounds=options.rounds,
                budget=options.budget,
                threads=options.threads,
            )
            print(table(contest), end="\n\n", flush=True)
            if not acceptable(contest, options.tolerance):
                slower.append(str(case))
    if slower:
        print("slower, worse or failing:", *slower, sep="\n  ")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
