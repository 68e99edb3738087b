"""What the suites share: comparing outcomes, and running things in a child process."""

import multiprocessing
import os
import pickle
import select
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import blas

import fastml

# How much longer everything may take, for builds that sanitizers slow down.
PATIENCE = float(os.environ.get("FASTML_TEST_PATIENCE", "1"))


class Since:
    """A moment, and how promptly something follows it."""

    def __init__(self) -> None:
        self.clock, self.cpu = time.monotonic(), time.process_time()

    def assert_within(self, seconds: float) -> None:
        """Count the processor's time, a thread: others may be at work on the machine."""
        assert time.process_time() - self.cpu < seconds * PATIENCE * (os.cpu_count() or 1)
        assert time.monotonic() - self.clock < 10 * seconds * PATIENCE


# Relative to the largest value of an array; float32 where the data was float32.
TOLERANCE = {np.dtype(np.float32): 2e-4, np.dtype(np.float64): 1e-7}


def assert_same(got: dict, expected: dict, X: Any) -> None:
    """Compare outcomes: integers exactly, floating point to rounding, dtypes and shapes."""
    assert got.keys() == expected.keys()
    # Sums of squares of X that cancel leave this much, such as an inertia of zero.
    values = np.asarray(X.data if sparse.issparse(X) else X).astype(np.float64)
    cancelled = np.finfo(np.float64).eps * np.square(values[np.isfinite(values)]).sum()
    for name, value in expected.items():
        found = got[name]
        assert (found.dtype, found.shape) == (value.dtype, value.shape), name
        if value.dtype.kind != "f":
            np.testing.assert_array_equal(found, value, err_msg=name)
            continue
        # Scalars are Python floats whatever the precision they were computed in.
        single = any(v.dtype == np.float32 for v in expected.values())
        rtol = TOLERANCE[np.dtype(np.float32 if single else np.float64)]
        scale = np.max(np.abs(value[np.isfinite(value)]), initial=0)
        atol = max(rtol * scale, cancelled)
        np.testing.assert_allclose(found, value, rtol=rtol, atol=atol, err_msg=name)


def assert_equal(got: dict, expected: dict) -> None:
    """Compare outcomes bit for bit."""
    assert got.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(got[name], value, err_msg=name, strict=True)


def compare_with_stock(subject: Any, X: Any, weight: Any = None, kind: str = "") -> None:
    """Run fastml's and scikit-learn's: the same outcome or error, and X as it was."""
    before = buffers(X)
    got = _attempt(subject, X, weight, stock=False)
    for now, then in zip(buffers(X), before, strict=True):
        np.testing.assert_array_equal(now, then, err_msg="the input was changed")
    # Where nothing is compared scikit-learn does not run either: liblinear might not end.
    expected = None if kind in subject.unspecified else _attempt(subject, X, weight, stock=True)
    if expected is None or (subject.lenient and isinstance(expected, Exception)):
        assert not isinstance(got, Exception) or isinstance(got, ValueError), repr(got)
    elif isinstance(expected, Exception) or isinstance(got, Exception):
        assert type(got) is type(expected), f"got {got!r}, scikit-learn gives {expected!r}"
    else:
        assert_same(subject.comparable(got), subject.comparable(expected), X)


def check_addition(subject: Any, X: Any, weight: Any = None, kind: str = "") -> None:
    """Run what scikit-learn has not: its relative's error or finite results, and X as it was."""
    before = buffers(X)
    got = _attempt(subject, X, weight, stock=False)
    for now, then in zip(buffers(X), before, strict=True):
        np.testing.assert_array_equal(now, then, err_msg="the input was changed")
    if kind in subject.unspecified:
        assert not isinstance(got, Exception) or isinstance(got, ValueError | TypeError), repr(got)
    elif isinstance(got, Exception):
        expected = _attempt(subject, X, weight, stock=True)
        assert type(got) is type(expected), f"got {got!r}, {subject.like} gives {expected!r}"
    else:
        for name, value in got.items():
            assert np.isfinite(value).all(), name


def _attempt(subject: Any, X: Any, weight: Any, stock: bool) -> dict | Exception:
    with np.errstate(all="ignore"):
        try:
            return subject.run(X, weight, stock=stock)
        except Exception as error:
            return error


def buffers(X: Any) -> list[np.ndarray]:
    """Return copies of all that a matrix is made of."""
    if not sparse.issparse(X):
        return [X.copy()]
    names = ("data", "indices", "indptr", "row", "col")
    return [getattr(X, name).copy() for name in names if hasattr(X, name)]


def in_child(function: Callable[[], Any], timeout: float = 30.0) -> Any:
    """Run a function in a forked child; a hang or a crash there is an error here."""
    reader, writer = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        try:
            answer = (True, function())
        except BaseException:
            answer = (False, traceback.format_exc())
        with os.fdopen(writer, "wb") as pipe:
            pickle.dump(answer, pipe)
        os._exit(0)
    os.close(writer)
    message = b""
    deadline = time.monotonic() + timeout * PATIENCE
    with os.fdopen(reader, "rb", buffering=0) as pipe:
        while True:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([pipe], [], [], left)[0]:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                raise AssertionError(f"the child was still running after {timeout} s")
            chunk = pipe.read(1 << 20)
            if not chunk:
                break
            message += chunk
    _, status = os.waitpid(pid, 0)
    assert not os.WIFSIGNALED(status), f"the child died of {signal.Signals(os.WTERMSIG(status))!r}"
    done, result = pickle.loads(message)
    assert done, result
    return result


def run_python(code: str, *args: str, timeout: float = 120.0, **environment: str) -> str:
    """Run code in a fresh interpreter that sees fastml and the suites; return its output."""
    paths = [Path(fastml.__file__).parents[1], Path(__file__).parents[1]]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([*map(str, paths), os.environ.get("PYTHONPATH", "")]),
        **environment,
    }
    done = subprocess.run(
        [sys.executable, "-c", code, *args],
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout * PATIENCE,
        check=False,
    )
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def live_threads() -> int:
    return len(os.listdir("/proc/self/task"))


def threads_started_by(function: Callable[[], Any]) -> int:
    """Count the threads that a function adds to this process and leaves behind."""
    # The pools of the two OpenBLAS (NumPy's and SciPy's) are none of our business: have
    # them started, which they are in full after a fork, whatever their limits.
    square = np.ones((300, 300))
    square @ square
    blas.dgemm(1.0, square, square)
    before = live_threads()
    function()
    return live_threads() - before


def fit_in_worker(name: str) -> dict:
    """Run a subject by name: a target that every start method can pickle."""
    from suites.registry import SUBJECTS, data

    return next(s for s in SUBJECTS if s.name == name).run(data())


def map_in_pool(method: str, name: str, timeout: float = 120.0) -> list[dict]:
    with multiprocessing.get_context(method).Pool(2) as pool:
        return pool.map_async(fit_in_worker, [name] * 3).get(timeout * PATIENCE)
