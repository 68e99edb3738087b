"""The `fastml` command: run Python with scikit-learn accelerated."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile

from fastml._version import __version__

USAGE = """\
fastml [options] script.py [arguments]
       fastml [options] -m module [arguments]
       fastml [options] -c code [arguments]
       fastml bench [names]
       fastml info"""


def main(argv: list[str] | None = None) -> int:
    argv = sys.argv[1:] if argv is None else argv
    if argv[:1] == ["bench"]:
        from fastml._bench import main as bench

        return int(bench(argv[1:]))
    if argv[:1] == ["info"]:
        from fastml import show_versions

        show_versions()
        return 0
    options, command = _split(argv)
    parser = _parser()
    args = parser.parse_args(options)
    if not command:
        parser.error("nothing to run")
    if sys.flags.ignore_environment or sys.flags.no_site:
        parser.error("Python's -E, -I and -S keep fastml from starting with the script")
    try:
        environment = os.environ | _environment(args, command)
    except ValueError as error:
        parser.error(str(error))
    return _become([sys.executable, *_python_flags(), *command], environment)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="fastml",
        usage=USAGE,
        description="Run Python with everything that fastml replaces in scikit-learn accelerated, "
        "in child processes as well. `python -m fastml` is the same.",
    )
    add = parser.add_argument
    add("--strict", action="store_true", help="fail where scikit-learn would have to run a call")
    add(
        "--profile",
        nargs="?",
        const="",
        metavar="FILE.json",
        help="print what ran, for how long, and what was not native; save it, with =FILE.json",
    )
    add("--only", metavar="NAMES", help="replace these alone: KMeans,neighbors,...")
    add("--verbose", action="store_true", help="print one line a call")
    add("--version", action="version", version=f"fastml {__version__}")
    return parser


def _split(argv: list[str]) -> tuple[list[str], list[str]]:
    """Our options, and the rest of the command line, which is Python's."""
    i = 0
    while i < len(argv) and argv[i].startswith("-") and argv[i][:2] not in ("-m", "-c", "-"):
        i += 2 if argv[i] == "--only" else 1
    return argv[:i], argv[i:]


def _environment(args: argparse.Namespace, command: list[str]) -> dict[str, str]:
    from fastml._runtime import children, patching

    names = patching.check(args.only.split(",")) if args.only else None
    environment = children.environment(names)
    if args.strict:
        environment["FASTML_STRICT"] = "1"
    if args.verbose:
        environment["FASTML_VERBOSE"] = "1"
    if args.profile is not None:
        file = os.path.abspath(args.profile) if args.profile else None
        environment["FASTML_PROFILE"] = tempfile.mkdtemp(prefix="fastml-profile-")
        environment["FASTML_MAIN"] = json.dumps({"command": command, "file": file})
    return environment


def _python_flags() -> list[str]:
    """The options that Python itself was given, before `-m fastml` or our console script."""
    flags = sys.orig_argv[1 : len(sys.orig_argv) - len(sys.argv)]
    return flags[:-1] if flags[-1:] == ["-m"] else flags


def _become(command: list[str], environment: dict[str, str]) -> int:
    """Run the command in the place of this process.

    What runs is plain Python from its first line: `__main__`, sys.path, tracebacks, exit codes and
    signals are what they are without fastml, because nothing of fastml's runs around the script.
    """
    if os.name != "nt":
        sys.stdout.flush()
        os.execve(command[0], command, environment)
    # Windows has no exec: its namesake starts a second process and ends this one at once.
    process = subprocess.Popen(command, env=environment)
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:  # sent to the script as well, which decides
            continue


if __name__ == "__main__":
    sys.exit(main())
