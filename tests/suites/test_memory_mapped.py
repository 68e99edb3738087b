"""Fits of a read-only memory map: the data's pages and little else."""

import importlib.util
import os
import signal
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from fastml.cluster import KMeans
from suites.harness import Since

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "memory_mapped.py"


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.skipif(not SCRIPT.exists(), reason="not in a source tree")
def test_k_means_copies_nothing():
    spec = importlib.util.spec_from_file_location("memory_mapped", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    size, _, ratio, _, steps = module.measure(1_000_000, 50, 20)
    assert steps == 5
    assert ratio < 1.2, f"{ratio:.2f} times {size / 1e6:.0f} MB"


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT to a thread on Windows")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_interrupt(tmp_path, dtype):
    """Ctrl-C while pages still come from the file, or in the iterations after that."""
    n, d, k = 400_000, 20, 300
    shape = {"mode": "w+", "dtype": dtype, "shape": (n, d)}
    written = np.lib.format.open_memmap(tmp_path / "X.npy", **shape)
    written[:] = np.random.default_rng(0).standard_normal((n, d), dtype)
    written.flush()
    X = np.load(tmp_path / "X.npy", mmap_mode="r")
    endless = KMeans(k, n_init=1, init="random", max_iter=10_000, tol=0, random_state=0)
    for after in (0.01, 0.6):
        timer = threading.Timer(after, os.kill, (os.getpid(), signal.SIGINT))
        begin = Since()
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            endless.fit(X)
        begin.assert_within(after + 0.5)
        timer.join()
    np.testing.assert_array_equal(X[:1000], written[:1000])
    assert KMeans(3, n_init=1, max_iter=2, tol=0).fit(X).n_iter_ == 2
