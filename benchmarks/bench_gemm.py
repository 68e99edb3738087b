"""The tile GEMM beside the OpenBLAS of NumPy: A·Bᵀ from two columns to 2,048.

`python benchmarks/bench_gemm.py` prints GFLOP/s alone, for one thread and for all.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from fastml._bench.contest import Case, Contestant, run

HERE = str(Path(__file__).parent)
DEPTHS = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)


class Data(NamedTuple):
    A: np.ndarray
    B: np.ndarray


def operands(m, n, d, dtype):
    rng = np.random.default_rng(0)
    return Data(rng.normal(size=(m, d)).astype(dtype), rng.normal(size=(n, d)).astype(dtype))


def tiles(data, threads):
    from fastml._native.gemm import gemm

    out = np.empty((len(data.A), len(data.B)), data.A.dtype)

    def call():
        gemm(data.A, data.B, out, threads)
        return out

    return call


def openblas(data, threads):
    out = np.empty((len(data.A), len(data.B)), data.A.dtype)
    return lambda: np.matmul(data.A, data.B.T, out=out)


def error(data, out):
    """Largest error of a few entries, relative to the norms of their rows."""
    A, B = data.A[::97].astype(np.float64), data.B[::89].astype(np.float64)
    size = np.linalg.norm(A, axis=1)[:, None] * np.linalg.norm(B, axis=1)
    return np.abs((out[::97, ::89] - A @ B.T) / size).max()


def gemm_case(d, dtype, m=1000, n=1000):
    contestants = (Contestant("OpenBLAS", openblas, "numpy"), Contestant("fastml", tiles, "fastml"))
    params = {"m": m, "n": n, "d": d, "dtype": dtype}
    atol = 1e-5 if dtype == "float32" else 1e-13
    return Case("gemm", params, operands, contestants, error, "relative error", atol=atol)


@pytest.mark.contest([gemm_case(d, dtype) for dtype in ("float32", "float64") for d in DEPTHS])
def bench_gemm(entry, contest):
    assert contest.equal(entry)


def main():
    print(f"{'GFLOP/s':>8} {'dtype':>8} {'threads':>7} {'fastml':>8} {'OpenBLAS':>8}")
    for dtype in ("float32", "float64"):
        for threads in (1, None):
            for d in DEPTHS:
                case = gemm_case(d, dtype)
                contest = run(case, threads=threads, rounds=5, budget=2, path=[HERE])
                rate = {e.name: 2e-9 * 1e6 * d / e.best for e in contest.entries}
                print(
                    f"{f'd={d}':>8} {dtype:>8} {contest.threads:>7} "
                    f"{rate['fastml']:8.1f} {rate['OpenBLAS']:8.1f}"
                )


if __name__ == "__main__":
    import bench_gemm  # by this name the workers find the functions

    bench_gemm.main()
