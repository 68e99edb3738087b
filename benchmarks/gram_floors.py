"""How much faster Gram matrices are, and what bounds it: `python benchmarks/gram_floors.py`.

Prints the times of docs/growth.md: both libraries by turns on two threads, three calls of fastml
for one of scikit-learn's, and the best counts. Names of kernels as arguments take those alone. For
matrices of 2,000 rows and more it adds what the machine alone takes for them in the same turns.
That is what processors have to do one after the other: fill memory of NumPy's (beyond 32 MiB it is
new each time, and has to be given), take the products at the speed of large ones, and exponentials
and divisions at the speed at which they come from cache (half of each, as the matrix is symmetric).
A distance |x - y| counts as two products, since it takes so many instructions, and a term of chi2
as a division, beside which its other instructions find their place.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import sklearn
from numba import njit
from sklearn.metrics import pairwise as stock

import fastml
from fastml._native import pairwise as native
from fastml.metrics import pairwise

THREADS = 2
SHAPES = {
    "laplacian": [(n, d) for d in (2, 3, 5, 7, 10, 20) for n in (300, 500, 1000, 2000, 5000)],
    "chi2": [(n, d) for d in (2, 5, 20) for n in (100, 300, 1000, 3000, 5000)],
    "rbf": [(n, d) for d in (5, 20, 64) for n in (300, 1000, 2000, 5000)],
    "polynomial": [(n, d) for d in (5, 20, 64) for n in (300, 1000, 2000, 5000)],
}


def best(*calls: Callable[[], Any], rounds: int, times: tuple[int, ...] = (1,)) -> list[float]:
    """The shortest time of each, by turns."""
    shortest = [np.inf] * len(calls)
    for _ in range(rounds):
        for i, call in enumerate(calls):
            for _ in range(times[i]):
                start = time.perf_counter()
                result = call()
                shortest[i] = min(shortest[i], time.perf_counter() - start)
                del result  # before the next: memory is given back
    return shortest


@njit(fastmath=True, error_model="numpy")
def divide(x: np.ndarray, y: np.ndarray, times: int) -> float:
    total = x[0]  # of their dtype
    for _ in range(times):
        for i in range(x.size):
            total += x[i] / y[i]
    return total


class Machine(NamedTuple):
    """Seconds for a product, an exponential or a division, all threads together."""

    product: float
    exponential: float
    division: float

    @classmethod
    def measured(cls, dtype: Any) -> Machine:
        A = np.ones((3000, 1000), dtype)
        (product,) = best(lambda: A @ A.T, rounds=10)
        x, out = np.linspace(-3, 0, 1 << 14, dtype=dtype), np.empty(1 << 14, dtype)
        (values,) = best(lambda: native.elementary("exp", x, out, 1.0), rounds=2000)
        part, times = np.linspace(1, 2, 1 << 11, dtype=dtype), 100
        (ratios,) = best(lambda: divide(part, part, times), rounds=300)
        return cls(
            product / (3000 * 3000 * 1000),
            values / len(x) / THREADS,
            ratios / (times * len(part)) / THREADS,
        )

    def floor(self, kernel: str, n: int, d: int, memory: float) -> float:
        term = {"laplacian": 2 * self.product, "chi2": self.division}.get(kernel, self.product)
        last = 0 if kernel == "polynomial" else self.exponential
        return memory + n * n / 2 * (d * term + last)


threads = ThreadPoolExecutor(THREADS)


@njit(nogil=True)
def fill_part(part: np.ndarray) -> None:
    for i in range(part.size):
        part[i] = 1


def fill(out: np.ndarray) -> np.ndarray:
    list(threads.map(fill_part, np.array_split(out.ravel(), THREADS)))
    return out


def main() -> None:
    print(f"fastml {fastml.__version__}, scikit-learn {sklearn.__version__}, {THREADS} threads")
    print(f"{'kernel':11} {'dtype':8} {'n':>5} {'d':>3} {'fastml':>9} {'sklearn':>10} {'times':>6}"
          f" {'floor':>9} {'above':>6}")  # fmt: skip
    rng = np.random.default_rng(0)
    for dtype in (np.float64, np.float32):
        machine = Machine.measured(dtype)
        print(*(f"{v * 1e9:.4f} ns for {k}" for k, v in machine._asdict().items()), sep=", ")
        for kernel, shapes in SHAPES.items():
            if sys.argv[1:] and kernel not in sys.argv[1:]:
                continue
            if dtype == np.float32 and kernel == "laplacian":
                continue  # both libraries take it in double
            ours, theirs = (getattr(m, f"{kernel}_kernel") for m in (pairwise, stock))
            for n, d in shapes:
                X = rng.random((n, d)).astype(dtype)
                np.testing.assert_allclose(ours(X), theirs(X), rtol=1e-4)
                rounds = max(10, min(300, 10**8 // n**2))
                calls = [partial(ours, X), partial(theirs, X)]
                if n >= 2000:
                    calls.append(lambda n=n, dtype=dtype: fill(np.empty((n, n), dtype)))
                mine, stocks, *memory = best(*calls, rounds=rounds, times=(3, 1, 3))
                row = f"{kernel:11} {np.dtype(dtype).name:8} {n:5} {d:3} {mine * 1e3:6.2f} ms"
                row += f" {stocks * 1e3:7.2f} ms {stocks / mine:6.1f}"
                if memory:
                    floor = machine.floor(kernel, n, d, *memory)
                    row += f" {floor * 1e3:6.2f} ms {mine / floor:6.2f}"
                print(row, flush=True)


if __name__ == "__main__":
    main()
