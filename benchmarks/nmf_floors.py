"""How far coordinate descent is from what it has to do: `python benchmarks/nmf_floors.py`.

Prints the times of docs/nmf.md: twenty iterations of `NMF`, of both libraries by turns on two
threads, with a pause in which the other's threads fall asleep, and the same loss to nine digits.
Beside them is the time that the processors take for the operations alone, one after the other:
- the random numbers that the first W and H are of, from NumPy's generator, as they have to be;
- in an iteration 4ndk operations of the products of X with the factors, 2(n + d)k² of the sweeps
  and (n + d)k² of the halves of the factors' own products, at the rate of NumPy's product of
  matrices 1,500 wide, the best that it has; or to read X once by all threads, if that is longer;
- for the loss at the end 2ndk operations.
Shapes as arguments, as 500x500x20, take the place of its own; so does float32 of float64.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import sklearn
from sklearn import decomposition as stock
from sklearn.exceptions import ConvergenceWarning

import fastml
from fastml import decomposition
from fastml.decomposition._nndsvd import survey

ITERATIONS = 20
PAUSE = 0.1  # seconds, longer than threads of a BLAS look for work
SHAPES = [
    *((n, n, k) for n in (200, 500, 1000) for k in (5, 10, 20, 50, 100)),
    *((2000, 1000, k) for k in (10, 20, 50)),
    *((*shape, k) for shape in ((10_000, 100), (100, 10_000), (50_000, 50)) for k in (5, 20, 50)),
    (5000, 2000, 10),
    (3000, 3000, 50),
]


def best(*calls: Callable[[], Any], seconds: float = 1.0, pause: float = 0.0) -> list[float]:
    """The shortest time of each, by turns: of three in a row, the first of which may find caches
    that another has filled."""
    shortest = [np.inf] * len(calls)
    end = time.perf_counter() + seconds
    while True:
        for i, call in enumerate(calls):
            time.sleep(pause)
            for _ in range(3):
                start = time.perf_counter()
                call()
                shortest[i] = min(shortest[i], time.perf_counter() - start)
        if time.perf_counter() > end:
            return shortest


def draw(n: int, d: int, k: int) -> None:
    rng = np.random.RandomState(0)
    rng.standard_normal(size=(k, d)), rng.standard_normal(size=(n, k))


def floor(X: np.ndarray, k: int, rate: float) -> float:
    """Seconds for what is to do, at `rate` operations a second."""
    n, d = X.shape
    drawn, reading = best(partial(draw, n, d, k), partial(survey, X), seconds=0.2)
    turns = (4 * n * d * k + 3 * (n + d) * k**2) / rate
    return drawn + ITERATIONS * max(turns, reading) + 2 * n * d * k / rate


def main() -> None:
    warnings.simplefilter("ignore", ConvergenceWarning)
    dtype = np.float32 if "float32" in sys.argv else np.float64
    given = [tuple(map(int, a.split("x"))) for a in sys.argv[1:] if not a.startswith("float")]
    rng = np.random.default_rng(0)
    A = rng.random((1500, 1500)).astype(dtype)
    B = A.copy()  # of a matrix by itself half would be made
    rate = 2 * 1500**3 / best(lambda: A @ B)[0]
    print(f"fastml {fastml.__version__}, scikit-learn {sklearn.__version__}, {np.dtype(dtype)},"
          f" {rate / 1e9:.0f} GFLOP/s")  # fmt: skip
    print(f"{'n x d':>14} {'k':>3} {'fastml':>9} {'sklearn':>10} {'times':>5} {'floor':>9} above")
    for n, d, k in given or SHAPES:
        X = rng.random((n, k)) ** 3 @ rng.random((k, d)) ** 3 + 0.1 * rng.random((n, d))
        X = X.astype(dtype)
        params = {"init": "random", "tol": 0, "max_iter": ITERATIONS, "random_state": 0}
        models = [library.NMF(k, **params) for library in (decomposition, stock)]
        mine, theirs = best(*(partial(m.fit, X) for m in models), pause=PAUSE)
        losses = [m.reconstruction_err_ for m in models]
        np.testing.assert_allclose(*losses, rtol=1e-9 if dtype == np.float64 else 1e-4)
        least = floor(X, k, rate)
        row = f"{n:>7} x {d:<5} {k:3} {mine * 1e3:6.2f} ms {theirs * 1e3:7.2f} ms"
        row += f" {theirs / mine:5.1f} {least * 1e3:6.2f} ms {mine / least:5.2f}"
        print(row, flush=True)


if __name__ == "__main__":
    main()
