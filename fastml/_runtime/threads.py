"""How many threads a kernel may use: never more than anything around us allows."""

import os
from functools import cache

import joblib
import threadpoolctl

from fastml._native import runtime
from fastml._runtime import config


def n_threads(n_jobs: int | None = None) -> int:
    """The number of threads for one call.

    The least of the CPUs of our affinity mask, the cgroup's quota, ``OMP_NUM_THREADS``, a limit
    set through threadpoolctl and the option `threads`; then `n_jobs` in scikit-learn's sense.
    """
    available = min(_affinity(), _quota())
    for limit in (runtime.thread_limit(), config.get("threads")):
        if limit:
            available = min(available, limit)
    if n_jobs is None:
        return available
    if n_jobs == 0:
        raise ValueError("n_jobs == 0 has no meaning: use -1 for all threads, 1 for one")
    return min(available, n_jobs) if n_jobs > 0 else max(1, available + 1 + n_jobs)


def _affinity() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))  # asked each time: it may change under us
    return os.cpu_count() or 1


@cache
def _quota() -> int:
    return joblib.cpu_count()  # reads cgroup files: too slow for every call


def _omp_num_threads() -> int:
    first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return int(first) if first.isdecimal() else 0


class _Controller(threadpoolctl.LibController):
    """Shows the pool to threadpoolctl, under the API that programs limit compute threads by."""

    user_api = "openmp"
    internal_api = "fastml"
    filename_prefixes = ("runtime.",)
    check_symbols = ("fastml_get_thread_limit", "fastml_set_thread_limit")

    def get_num_threads(self) -> int:
        return n_threads()

    def set_num_threads(self, num_threads: int) -> None:
        self.dynlib.fastml_set_thread_limit(num_threads)

    def get_version(self) -> None:
        return None

    def set_additional_attributes(self) -> None:
        self.isa = runtime.isa()


runtime.set_thread_limit(_omp_num_threads())
threadpoolctl.register(_Controller)
