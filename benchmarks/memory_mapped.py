"""K-means from a read-only memory map: `python benchmarks/memory_mapped.py [rows] [columns] [k]`.

Writes float32 rows to a temporary file, fits in a process of its own, and prints what that
process needed beside the data's pages, which the system may drop whenever it likes.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

FIT = """
import sys, time
import numpy as np
from fastml.cluster import KMeans

def status(field):
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) * 1024

path, k = sys.argv[1], int(sys.argv[2])
KMeans(2, n_init=1).fit(np.random.default_rng(0).normal(size=(100, 3)))
before = status("VmRSS:")
X = np.load(path, mmap_mode="r")
begin = time.perf_counter()
model = KMeans(k, init=np.array(X[:k]), n_init=1, max_iter=5, tol=0).fit(X)
seconds = time.perf_counter() - begin
peak = status("VmHWM:") - before  # not ru_maxrss, which remembers the process before this one
print(X.nbytes, peak, peak / X.nbytes, seconds, model.n_iter_)
"""


def write(path: Path, n: int, d: int) -> None:
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(40, d)).astype(np.float32)
    X = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n, d))
    for i in range(0, n, 100_000):
        part = X[i : i + 100_000]
        part[:] = rng.standard_normal(part.shape, dtype=np.float32)
        part += centers[rng.integers(40, size=len(part))]
    X.flush()


def measure(n: int, d: int, k: int) -> tuple[float, ...]:
    """Bytes of the data, bytes of the peak, their ratio, seconds and iterations."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "X.npy")
        write(path, n, d)
        command = [sys.executable, "-c", FIT, str(path), str(k)]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return tuple(map(float, output.split()))


if __name__ == "__main__":
    given = list(map(int, sys.argv[1:]))
    n, d, k = given + [10_000_000, 50, 20][len(given) :]
    size, peak, ratio, seconds, steps = measure(n, d, k)
    print(f"{n:,} x {d}, k = {k}: {steps:.0f} iterations in {seconds:.2f} s")
    print(f"data {size / 1e6:.0f} MB, peak {peak / 1e6:.0f} MB, {ratio:.2f} times the data")
