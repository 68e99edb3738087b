"""How cost grows: `python benchmarks/growth.py [names]`.

For each kernel, the time of a unit of work (a multiply-add for a pair of rows, say) at a base shape
and at shapes in which one of n, d and k is ten times as large, and the memory that the first call
takes beyond inputs and outputs. Both should be flat: a unit of work costs the same however much of
it there is, and scratch memory is a matter of tiles. Kernels that go through the rows again and
again begin at rows that no cache holds. All in float32, on all threads.
"""

from __future__ import annotations

import argparse
import math
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

Call = Callable[[], Any]


class Kernel(NamedTuple):
    """What is called; the base shape and which of its numbers grow, units of work, bytes kept."""

    prepare: Callable[..., Call]
    base: Mapping[str, int]
    units: Callable[..., float]
    output: Callable[..., int]
    grows: tuple[str, ...] = ("n", "d")


def rows(n: int, d: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, d), dtype=np.float32)


def gram(metric: str) -> Callable[..., Call]:
    def prepare(n: int, d: int) -> Call:
        from fastml.metrics.pairwise import pairwise_kernels

        X, Y = rows(n, d), rows(1_000, d, 1)
        return lambda: pairwise_kernels(X, Y, metric, gamma=1 / d)

    return prepare


def streamed(n: int, d: int) -> Call:
    from fastml.metrics.pairwise import gram_apply

    X, Y, V = rows(n, d), rows(1_000, d, 1), rows(1_000, 1, 2)
    return lambda: gram_apply(X, Y, V, metric="rbf", gamma=1 / d)


def compiled(n: int, d: int) -> Call:
    from fastml import jit

    def f(x, y):
        total = 0.0
        for k in range(len(x)):
            if x[k] > 0:
                total += abs(x[k] - y[k])
        return total

    X, Y = rows(n, d), rows(1_000, d, 1)
    jit.gram(f, X[:1], Y[:1])
    return lambda: jit.gram(f, X, Y)


def search(algorithm: str, queries: int) -> Callable[..., Call]:
    def prepare(n: int, d: int, k: int) -> Call:
        from fastml.neighbors import NearestNeighbors

        model = NearestNeighbors(n_neighbors=k, algorithm=algorithm).fit(rows(n, d))
        Q = rows(queries, d, 1)
        return lambda: model.kneighbors(Q)

    return prepare


def assignment(n: int, d: int, k: int) -> Call:
    from fastml.cluster import KMeans

    # Of so many rows that no two centers are one: between equals, no lower precision tells.
    model = KMeans(k, init=rows(k, d, 1), n_init=1, max_iter=1).fit(rows(50 * k, d, 2))
    X = rows(n, d)
    return lambda: model.predict(X)


def seeding(n: int, d: int, k: int) -> Call:
    from fastml.cluster import kmeans_plusplus

    X = rows(n, d)
    return lambda: kmeans_plusplus(X, k, random_state=0)


def scaling(n: int, d: int) -> Call:
    from fastml.preprocessing import StandardScaler

    X = rows(n, d)
    return lambda: StandardScaler().fit_transform(X)


# A pair costs some ten multiply-adds beside those of its coordinates: for the exponential, and for
# writing the result.
PAIRS: dict[str, Any] = {
    "base": {"n": 5_000, "d": 20},
    "units": lambda n, d: n * 1_000 * (d + 10),
    "output": lambda n, d: 4 * n * 1_000,
}
KERNELS = {
    "rbf Gram": Kernel(gram("rbf"), **PAIRS),
    "laplacian Gram": Kernel(
        gram("laplacian"), **PAIRS | {"output": lambda n, d: 8 * n * 1_000}
    ),  # in double
    "streamed rbf": Kernel(streamed, **PAIRS | {"output": lambda n, d: 12 * n}),
    "user's function": Kernel(compiled, **PAIRS),
    "brute kNN": Kernel(
        search("brute", 1_000),
        {"n": 20_000, "d": 20, "k": 5},
        lambda n, d, k: n * 1_000 * d,
        lambda n, d, k: 16 * 1_000 * k,
        ("n", "d", "k"),
    ),
    "k-d tree kNN": Kernel(
        search("kd_tree", 20_000),
        {"n": 50_000, "d": 3, "k": 5},
        lambda n, d, k: 20_000 * k * math.log2(n),
        lambda n, d, k: 16 * 20_000 * k,
        ("n", "k"),
    ),
    "k-means labels": Kernel(
        assignment,
        {"n": 50_000, "d": 16, "k": 64},
        lambda n, d, k: n * d * k,
        lambda n, d, k: 4 * n,
        ("n", "d", "k"),
    ),
    "k-means++": Kernel(
        seeding,
        {"n": 500_000, "d": 16, "k": 50},
        lambda n, d, k: n * d * k,
        lambda n, d, k: 4 * k * d,
        ("n", "d", "k"),
    ),
    "StandardScaler": Kernel(
        scaling, {"n": 1_000_000, "d": 20}, lambda n, d: n * d, lambda n, d: 4 * n * d
    ),
}


def forget_peak() -> None:
    """Where the system can, let the peak of memory be what is in use now."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def peak() -> int:
    """The most memory that this process has held, in bytes."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return 1024 * int(status.split("VmHWM:")[1].split()[0])
    except OSError:
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def measure(name: str, shape: Mapping[str, int]) -> None:
    """Print the best time of a call, and the memory of the first: for a process of its own."""
    call = KERNELS[name].prepare(**shape)
    forget_peak()
    before = peak()
    call()
    memory = peak() - before
    times: list[float] = []
    while len(times) < 3 or (sum(times) < 0.5 and len(times) < 50):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    print(min(times), memory)


# Results beyond some megabytes glibc returns to the system when they are freed, and asks for again:
# that can take longer than to compute them.
KEEP_MEMORY = {name: str(1 << 40) for name in ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_")}


def in_child(name: str, shape: Mapping[str, int]) -> tuple[float, float]:
    arguments = [name, *(f"{key}={value}" for key, value in shape.items())]
    command = [sys.executable, __file__, "--measure", *arguments]
    environment = os.environ | KEEP_MEMORY
    output = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, check=True, env=environment
    ).stdout
    seconds, memory = output.split()
    return float(seconds), float(memory)


def report(names: list[str]) -> None:
    print(f"{'':15}{'shape':>26}{'time':>12}{'a unit':>12}{'growth':>9}{'scratch':>12}")
    for name in names:
        kernel = KERNELS[name]
        reference = None
        for letter in ("", *kernel.grows):
            shape = {
                key: value * (10 if key == letter else 1) for key, value in kernel.base.items()
            }
            seconds, memory = in_child(name, shape)
            unit = seconds / kernel.units(**shape)
            reference = reference or unit
            text = " ".join(f"{key}={value}" for key, value in shape.items())
            scratch = max(memory - kernel.output(**shape), 0) / 2**20
            print(
                f"{name:15}{text:>26}{seconds * 1e3:9.2f} ms{unit * 1e12:9.2f} ps"
                f"{unit / reference:9.2f}{scratch:9.1f} MB",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description="How cost grows with n, d and k.")
    parser.add_argument("names", nargs="*", help=f"all by default: {', '.join(KERNELS)}")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        name, *pairs = options.names
        measure(name, {key: int(value) for key, value in (pair.split("=") for pair in pairs)})
    else:
        report(options.names or list(KERNELS))


if __name__ == "__main__":
    main()
