"""The thread pool, through a kernel that uses it."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest
import threadpoolctl
from fastml._native.gemm import gemm

import fastml
from fastml._native import runtime
from fastml._runtime.threads import n_threads


@pytest.fixture
def no_limit():
    before = runtime.thread_limit()
    runtime.set_thread_limit(0)
    yield
    runtime.set_thread_limit(before)


def product(threads=2, seed=0):
    A = np.random.default_rng(seed).normal(size=(500, 40))
    out = np.full((500, 500), np.nan)
    gemm(A, A, out, threads)
    return out


@pytest.mark.parametrize("threads", [2, 3, 5, 16])
def test_every_task_is_done(threads):
    """Though workers wake late and threads are more than processors."""
    expected = product(1)
    for _ in range(200):
        np.testing.assert_array_equal(product(threads), expected)


def test_many_callers_at_once():
    """One has the pool, the others work alone: all are right and none waits for ever."""
    expected = [product(1, seed) for seed in range(4)]
    wrong = []

    def work(seed):
        right = [np.array_equal(product(2, seed), expected[seed]) for _ in range(50)]
        if not all(right):
            wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert not any(thread.is_alive() for thread in threads)
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
def test_child_of_a_fork_hires_its_own():
    expected = product()
    pid = os.fork()
    if pid == 0:
        os._exit(0 if np.array_equal(product(), expected) else 1)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    np.testing.assert_array_equal(product(), expected)


def test_threadpoolctl_sees_and_limits_it(no_limit):
    entry = [lib for lib in threadpoolctl.threadpool_info() if lib["internal_api"] == "fastml"]
    assert len(entry) == 1
    assert entry[0]["num_threads"] == n_threads()
    assert entry[0]["isa"] == runtime.isa()
    with threadpoolctl.threadpool_limits(limits=1, user_api="openmp"):
        assert n_threads() == 1
    assert n_threads() == entry[0]["num_threads"]


def test_option_and_n_jobs(no_limit):
    available = n_threads()
    with fastml.config_context(threads=1):
        assert n_threads() == 1
    assert n_threads(1) == 1
    assert n_threads(-1) == available
    assert n_threads(10_000) == available
    with pytest.raises(ValueError, match="n_jobs == 0"):
        n_threads(0)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity on this platform")
def test_affinity(no_limit):
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert n_threads() == 1
    finally:
        os.sched_setaffinity(0, before)


@pytest.mark.parametrize(("variable", "expected"), [("1", 1), ("1,4", 1), ("", None)])
def test_omp_num_threads(variable, expected):
    code = "from fastml._runtime.threads import n_threads; print(n_threads())"
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "OMP_NUM_THREADS": variable},
        capture_output=True,
        text=True,
        check=True,
    )
    if expected is None:
        expected = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    if expected is not None:
        assert int(run.stdout) <= expected


def test_unknown_instruction_set_is_refused():
    run = subprocess.run(
        [sys.executable, "-c", "import fastml._native.runtime"],
        env={**os.environ, "FASTML_ISA": "sse9"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode != 0
    assert "FASTML_ISA='sse9'" in run.stderr
