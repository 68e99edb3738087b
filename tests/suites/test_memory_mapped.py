"""Fits of a read-only memory map: the data's pages and little else."""

import importlib.util
import sys
from pathlib import Path

import pytest

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
