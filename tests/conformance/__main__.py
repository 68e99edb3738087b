"""The command: stock run, run with fastml, difference, table, summary line."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).parent
KINDS = ("native", "mixed", "fallback", "untouched")

Outcomes = dict[str, tuple[str, str]]  # test -> (outcome, kind)


def main(arguments: list[str] | None = None) -> int:
    options = _parse(sys.argv[1:] if arguments is None else arguments)
    _find_fastml()
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        stock_file = Path(options.stock or Path(folder, "stock.json")).resolve()
        ours_file = Path(options.json or Path(folder, "ours.json")).resolve()
        if not stock_file.exists():
            _title("scikit-learn alone")
            _run(options, stock_file)
        _title("with fastml in its place")
        xfail = Path(options.xfail).resolve()
        patch = ["--patch", f"--stock-outcomes={stock_file}", f"--xfail-list={xfail}"]
        failed = _run(options, ours_file, *patch)
        stock, ours = _read(stock_file), _read(ours_file)
    differences = _differences(stock, ours)
    _report(ours, differences, time.monotonic() - start)
    return int(failed or bool(differences))


def _parse(arguments: list[str]) -> argparse.Namespace:
    cut = arguments.index("--") if "--" in arguments else len(arguments)
    parser = argparse.ArgumentParser(
        "python -m tests.conformance", description=__doc__, epilog="-- ...: arguments for pytest"
    )
    parser.add_argument("modules", nargs="*", help="test modules; default: of all we replace")
    parser.add_argument("--all", action="store_true", help="scikit-learn's whole test suite")
    parser.add_argument("--stock", help="file to keep the stock outcomes in, or to take them from")
    parser.add_argument("--json", help="file for the outcomes with fastml")
    parser.add_argument("--xfail", default=HERE / "xfail.toml", help="list of expected failures")
    options = parser.parse_args(arguments[:cut])
    options.pytest = arguments[cut + 1 :]
    return options


def _find_fastml() -> None:
    """Prefer an installed fastml to the source tree that the command is started in."""
    tree = str(HERE.parents[1])
    before = sys.path[:]
    sys.path[:] = [path for path in before if path not in ("", tree)]
    if find_spec("fastml") is None:
        sys.path[:] = before
    sys.path.insert(0, str(HERE.parent))


def _targets(options: argparse.Namespace) -> list[str]:
    if options.all:
        return ["sklearn"]
    if options.modules:
        return options.modules
    import fastml
    from conformance import select

    names = {name for _, name in fastml.replacements()}
    return ["--replaced-only", *select.modules_of(names)]


def _run(options: argparse.Namespace, outcomes: Path, *arguments: str) -> bool:
    """Run the tests in a process of their own; return whether any failed."""
    import sklearn

    command = [sys.executable, "-P", "-m", "pytest", "-p", "conformance.plugin", "-q", "--pyargs"]
    command += ["-c", str(HERE / "conformance.ini"), f"--outcomes={outcomes}"]
    # Test ids relative to here, and not to wherever the command is run.
    command += [f"--rootdir={Path(sklearn.__file__).parents[1]}"]
    command += [*arguments, *_targets(options), *options.pytest]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    with tempfile.TemporaryDirectory() as folder:
        code = subprocess.run(command, cwd=folder, env=environment, check=False).returncode
    if code > 1:
        raise SystemExit(code)
    return code == 1


def _read(path: Path) -> Outcomes:
    return {test: tuple(outcome) for test, outcome in json.loads(path.read_text()).items()}


def _differences(stock: Outcomes, ours: Outcomes) -> list[str]:
    """Describe the tests that are worse off with fastml than with scikit-learn alone."""
    absent = ("not run", "")
    found = []
    for test in sorted(stock.keys() | ours.keys()):
        before, after = stock.get(test, absent)[0], ours.get(test, absent)[0]
        lost = before == "passed" and after == "skipped"
        if lost or after in ("failed", "error", "not run"):
            found.append(f"{test}: {before} -> {after}")
    return found


def _report(ours: Outcomes, differences: list[str], seconds: float) -> None:
    _title("passed, by what ran")
    tables: dict[str, Counter] = {}
    for test, (outcome, kind) in ours.items():
        module = tables.setdefault(test.partition("::")[0], Counter())
        module[kind if outcome == "passed" else "other"] += 1
    total = sum(tables.values(), Counter())
    print(f"{'':60}{''.join(f'{kind:>10}' for kind in KINDS)}{'not passed':>12}")
    touched = {m: c for m, c in sorted(tables.items()) if any(c[kind] for kind in KINDS[:3])}
    for module, counts in [*touched.items(), ("all", total)]:
        cells = "".join(f"{counts[kind]:10}" for kind in KINDS)
        print(f"{module:60}{cells}{counts['other']:12}")
    _title("difference from scikit-learn alone")
    print("\n".join(differences) or "none")
    reached = sum(total[kind] for kind in KINDS[:3])
    print(f"\npassed and native: {total['native']} of the {reached} passed that reach fastml")
    outcomes = Counter(outcome for outcome, _ in ours.values())
    order = ("failed", "passed", "skipped", "xfailed", "xpassed", "error")
    counts = ", ".join(f"{outcomes[kind]} {kind}" for kind in order if outcomes[kind])
    _title(f"{counts or 'no tests ran'} in {seconds:.2f}s")


def _title(text: str) -> None:
    print(f"{f' {text} ':=^100}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
