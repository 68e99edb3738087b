"""The process of one contestant: `python -P worker.py [directory ...]`, driven by `contest.py`.

It answers pickled commands on its standard input with pickled `(ok, answer)` pairs on what was
its standard output; what libraries print goes to standard error.
"""

from __future__ import annotations

import gc
import importlib.util
import logging
import os
import pickle
import sys
import time
import traceback
import warnings
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any


class Session:
    """The contestant of this process."""

    def start(self, case: Any, contestant: Any, threads: int) -> tuple[str, float, str, float]:
        """Make ready; return the version, the quality, a note, and roughly what a call takes."""
        data = case.data(**case.params)
        self.call = contestant.prepare(data, threads)
        with Fallbacks() as fallbacks:
            start = time.perf_counter()
            result = self.call()
            seconds = time.perf_counter() - start
        if seconds < 1:  # the first call also pays for imports, page faults and waking threads
            start = time.perf_counter()
            self.call()
            seconds = time.perf_counter() - start
        quality = float(case.quality(data, result))
        return _version(contestant.distribution), quality, fallbacks.note, seconds

    def turn(self, number: int) -> float:
        """Seconds of the fastest of so many calls."""
        call, clock = self.call, time.perf_counter
        best = float("inf")
        gc.collect()
        gc.disable()
        for _ in range(number):
            start = clock()
            call()
            best = min(best, clock() - start)
        gc.enable()
        return best


class Fallbacks(logging.Handler):
    """Notes the calls that fastml handed to scikit-learn: such a time is not fastml's."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.note = ""

    def emit(self, record: logging.LogRecord) -> None:
        if not getattr(record, "native", True):
            self.note = record.getMessage()

    def __enter__(self) -> Fallbacks:
        logger = logging.getLogger("fastml.dispatch")
        self.level_before = logger.level
        logger.setLevel(logging.INFO)
        logger.addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        logger = logging.getLogger("fastml.dispatch")
        logger.removeHandler(self)
        logger.setLevel(self.level_before)


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:  # a source tree on the path
        return getattr(sys.modules.get(distribution), "__version__", "")


def _load_bench() -> Any:
    """Make `fastml._bench` the package this file is in, whatever fastml is installed here."""
    directory = Path(__file__).parent
    spec = importlib.util.spec_from_file_location(
        "fastml._bench", directory / "__init__.py", submodule_search_locations=[str(directory)]
    )
    assert spec is not None
    assert spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules["fastml._bench"] = package
    spec.loader.exec_module(package)


def main(path: list[str]) -> None:
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    sys.path[:0] = path
    warnings.simplefilter("ignore")
    _load_bench()
    session = Session()
    while True:
        try:
            command, arguments = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            answer = (True, getattr(session, command)(*arguments))
        except Exception as error:
            if os.environ.get("FASTML_BENCH_TRACEBACK"):
                traceback.print_exc()
            answer = (False, f"{type(error).__name__}: {error}")
        pickle.dump(answer, replies)
        replies.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
