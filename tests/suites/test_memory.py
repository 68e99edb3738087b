"""Out of memory: any one allocation of ours may fail, the process and the next fit may not."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from suites.harness import run_python
from suites.registry import SUBJECTS

INJECT = """
import ctypes, json, os, signal, sys
from collections import Counter
import numpy as np
from scipy import sparse
from suites.harness import assert_equal, in_child
from suites.registry import SUBJECTS, data

subject = next(s for s in SUBJECTS if s.name == sys.argv[1])
most = int(sys.argv[2])
kinds = {"dense": np.asarray, "float32": lambda X: X.astype("f4")}
if subject.for_sparse is not None:
    kinds["csr"] = sparse.csr_matrix
libc = ctypes.CDLL(None)
libc.fail_allocation.argtypes = [ctypes.c_long, ctypes.c_int]
libc.allocations_left.restype = ctypes.c_long

def same(result):
    try:
        assert_equal(result, expected)
        return "right"
    except AssertionError:
        return "WRONG"

def attempt(i, persistent):
    # Starting threads is part of what can fail; a forked child has none yet.
    libc.fail_allocation(i, persistent)
    try:
        result = subject.run_large(X)
    except MemoryError:
        libc.fail_allocation(-1, 0)
        return "MemoryError, next fit " + same(subject.run_large(X))
    except BaseException as error:
        libc.fail_allocation(-1, 0)
        return f"{type(error).__name__}: {error}"
    libc.fail_allocation(-1, 0)
    return "fit " + same(result)

def count():
    libc.fail_allocation(10**9, 0)
    subject.run_large(X)
    return 10**9 - libc.allocations_left()

report = []
for kind in kinds:
    X = kinds[kind](data(3000, 12))
    expected = subject.run_large(X)
    total = in_child(count)
    for persistent in map(int, sys.argv[3:]):
        found = Counter()
        for i in sorted(set(np.linspace(0, total - 1, min(total, most)).astype(int).tolist())):
            try:
                found[in_child(lambda: attempt(i, persistent), timeout=20)] += 1
            except AssertionError as died:
                found[str(died)] += 1
        report.append([kind, ("once", "from then on")[persistent], total, found])
print(json.dumps(report))
"""


@pytest.fixture(scope="module")
def preload(tmp_path_factory):
    compiler = shutil.which(os.environ.get("CXX", "c++"))
    if sys.platform != "linux" or compiler is None:
        pytest.skip("needs Linux and a C++ compiler to build the failing malloc")
    if "san.so" in os.environ.get("LD_PRELOAD", ""):
        pytest.skip("sanitizers have an allocator of their own")
    source = Path(__file__).with_name("failing_malloc.cpp")
    library = tmp_path_factory.mktemp("malloc") / "failing_malloc.so"
    command = [compiler, "-std=c++17", "-O1", "-fPIC", "-shared", source, "-o", library, "-ldl"]
    subprocess.run(command, check=True)
    return str(library)


def _inject(preload, subject, most, *persistent):
    arguments = (subject.name, str(most), *persistent)
    report = json.loads(run_python(INJECT, *arguments, timeout=3000.0, LD_PRELOAD=preload))
    kinds = 2 + (subject.for_sparse is not None)
    assert len(report) == kinds * len(persistent)
    for kind, failing, total, found in report:
        print(f"{subject} {kind} {failing}: {total} allocations, {found}")
        assert total > 0, "none of our allocations was seen"
        assert set(found) <= {"MemoryError, next fit right", "fit right"}
        # Doing without threads is fine; doing without scratch memory is not believable.
        assert found.get("MemoryError, next fit right", 0) > 0


@pytest.mark.parametrize("subject", SUBJECTS, ids=str)
def test_failed_allocation(preload, subject):
    _inject(preload, subject, 25, "0", "1")


@pytest.mark.slow
@pytest.mark.parametrize("subject", SUBJECTS, ids=str)
def test_every_failed_allocation(preload, subject):
    _inject(preload, subject, 10**6, "0")
