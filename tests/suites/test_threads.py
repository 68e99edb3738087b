"""Threads: results under concurrency, and how many of them a fit may start."""

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import joblib
import pytest
from threadpoolctl import threadpool_limits

import fastml
from suites.harness import assert_equal, in_child, run_python, threads_started_by
from suites.registry import LARGE, SUBJECTS, data

linux = pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="counts in /proc")
each_subject = pytest.mark.parametrize("subject", SUBJECTS, ids=str)


@each_subject
def test_concurrent_fits(subject):
    inputs = [data(*LARGE, seed=seed) for seed in range(2)]
    expected = [subject.run_large(X) for X in inputs]
    with ThreadPoolExecutor(6) as pool:
        got = list(pool.map(lambda i: subject.run_large(inputs[i % 2]), range(12)))
    for i, result in enumerate(got):
        assert_equal(result, expected[i % 2])


def _started(subject):
    X = data(*LARGE)
    return lambda: threads_started_by(lambda: subject.run_large(X))


def _one_cpu(fit):
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    return fit()


def _limited(fit):
    with threadpool_limits(1):
        return fit()


def _configured(fit):
    with fastml.config_context(threads=1):
        return fit()


@linux
@each_subject
@pytest.mark.parametrize("limit", [_one_cpu, _limited, _configured])
def test_one_thread_starts_none(subject, limit):
    fit = _started(subject)
    assert in_child(lambda: limit(fit)) == 0


@linux
@each_subject
def test_no_more_threads_than_cpus(subject):
    assert in_child(_started(subject)) < max(2, len(os.sched_getaffinity(0)))


COUNT = """
import sys
from suites.registry import LARGE, SUBJECTS, data
from suites.harness import threads_started_by
print(threads_started_by(lambda: [s.run_large(data(*LARGE)) for s in SUBJECTS]))
"""


@linux
@pytest.mark.parametrize(
    ("environment", "most"),
    [
        ({"OMP_NUM_THREADS": "1"}, 0),
        ({"OMP_NUM_THREADS": "3"}, 2),
        # How joblib is told of limits that it cannot see, and what it makes of cgroups'.
        ({"LOKY_MAX_CPU_COUNT": "1"}, 0),
    ],
    ids=str,
)
def test_environment(environment, most):
    assert int(run_python(COUNT, **environment)) <= most


@linux
@pytest.mark.parametrize("subject", SUBJECTS[:1], ids=str)
def test_loky_workers_share_the_cpus(subject):
    cpus = joblib.cpu_count()
    X = data(*LARGE)
    expected = subject.run_large(X)
    run = joblib.delayed(run_and_count)
    got = joblib.Parallel(n_jobs=cpus, backend="loky")(run(subject.name, X) for _ in range(4))
    for started, result in got:
        assert started == 0
        assert_equal(result, expected)


def run_and_count(name, X):
    # By name: what a worker unpickles has to be importable there.
    subject = next(s for s in SUBJECTS if s.name == name)
    result = []
    started = threads_started_by(lambda: result.append(subject.run_large(X)))
    return started, result[0]


@linux
@pytest.mark.parametrize("subject", SUBJECTS[:1], ids=str)
def test_threading_backend_shares_one_pool(subject):
    X = data(*LARGE)
    expected = subject.run_large(X)

    def fits():
        parallel = joblib.Parallel(n_jobs=4, backend="threading")
        for result in parallel(joblib.delayed(subject.run_large)(X) for _ in range(8)):
            assert_equal(result, expected)
        while threading.active_count() > 1:  # joblib's, which are about to end
            time.sleep(0.01)
        time.sleep(0.5)  # and the system's threads under them, some time later

    # Ours are a pool for all, not one for each of its threads.
    assert in_child(lambda: threads_started_by(fits)) < joblib.cpu_count()


@linux
@pytest.mark.parametrize("subject", SUBJECTS[:1], ids=str)
def test_dask_workers_share_the_cpus(subject):
    distributed = pytest.importorskip("distributed")
    X = data(*LARGE)
    cpus = joblib.cpu_count()
    options = {"dashboard_address": None, "memory_limit": None}
    with (
        distributed.LocalCluster(n_workers=cpus, threads_per_worker=1, **options) as cluster,
        distributed.Client(cluster) as client,
    ):
        futures = [client.submit(run_and_count, subject.name, X, pure=False) for _ in range(4)]
        assert {started for started, _ in client.gather(futures)} == {0}
