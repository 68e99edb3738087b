"""A user's kernel or metric over all pairs: called from Python, compiled by fastml, in C++.

Every contestant runs the same loop. The one in C++ is written by hand, compiled for this processor
by the system's compiler, and shares its rows among threads.
"""

from __future__ import annotations

import ctypes
import math
import os
import subprocess
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..contest import Case, Contestant

GAMMA = 0.05


def gaussian(x: Any, y: Any, gamma: float) -> float:
    total = 0.0
    for k in range(len(x)):
        total += (x[k] - y[k]) ** 2
    return math.exp(-gamma * total)


def clark(x: Any, y: Any) -> float:
    """A metric that scikit-learn does not have."""
    total = 0.0
    for k in range(len(x)):
        size = abs(x[k]) + abs(y[k])
        if size > 0:
            total += ((x[k] - y[k]) / size) ** 2
    return math.sqrt(total)


CPP = """
#include <cmath>
#include <cstddef>
#include <thread>
#include <vector>
static inline double gaussian(const T* x, const T* y, std::ptrdiff_t d) {
    double total = 0;
    for (std::ptrdiff_t k = 0; k < d; ++k) total += double(x[k] - y[k]) * (x[k] - y[k]);
    return std::exp(-GAMMA * total);
}
static inline double clark(const T* x, const T* y, std::ptrdiff_t d) {
    double total = 0;
    for (std::ptrdiff_t k = 0; k < d; ++k) {
        const double size = std::abs(x[k]) + std::abs(y[k]);
        if (size > 0) {
            const double ratio = (x[k] - y[k]) / size;
            total += ratio * ratio;
        }
    }
    return std::sqrt(total);
}
// For the processor at hand, as fastml's own kernels are.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
__attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif
void one_row(const T* x, const T* Y, std::ptrdiff_t m, std::ptrdiff_t d, T* out) {
    for (std::ptrdiff_t j = 0; j < m; ++j) out[j] = NAME(x, Y + j * d, d);
}
extern "C" void matrix(const T* X, const T* Y, std::ptrdiff_t n, std::ptrdiff_t m,
                       std::ptrdiff_t d, T* out, int threads) {
    auto rows = [&](int first) {
        for (std::ptrdiff_t i = first; i < n; i += threads)
            one_row(X + i * d, Y, m, d, out + i * m);
    };
    std::vector<std::thread> crew;
    for (int t = 1; t < threads; ++t) crew.emplace_back(rows, t);
    rows(0);
    for (auto& thread : crew) thread.join();
}
"""


class Data(NamedTuple):
    X: np.ndarray
    Y: np.ndarray
    f: Callable[..., float]
    params: dict[str, Any]

    def out(self) -> np.ndarray:
        return np.empty((len(self.X), len(self.Y)), self.X.dtype)


def two_samples(name: str, n: int, d: int, dtype: str) -> Data:
    rng = np.random.default_rng(0)
    X, Y = (rng.normal(size=(n, d)).astype(dtype) for _ in range(2))
    known: dict[str, Any] = {"gaussian": (gaussian, {"gamma": GAMMA}), "clark": (clark, {})}
    return Data(X, Y, *known[name])


def in_python(data: Data, threads: int) -> Callable[[], Any]:
    def call() -> np.ndarray:
        out = data.out()
        for i, x in enumerate(data.X):
            for j, y in enumerate(data.Y):
                out[i, j] = data.f(x, y, **data.params)
        return out

    return call


def compiled(data: Data, threads: int) -> Callable[[], Any]:
    from fastml.jit import gram

    gram(data.f, data.X[:1], data.Y[:1], **data.params)
    return partial(gram, data.f, data.X, data.Y, n_threads=threads, **data.params)


def in_cpp(data: Data, threads: int) -> Callable[[], Any]:
    scalar = "float" if data.X.dtype == np.float32 else "double"
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "pairs.cpp"), Path(folder, "pairs.so")
        source.write_text(CPP, encoding="utf-8")
        defined = [f"-DT={scalar}", f"-DNAME={data.f.__name__}", f"-DGAMMA={GAMMA}"]
        flags = ["-O3", "-fno-math-errno", "-std=c++17", "-shared", "-fPIC"]
        compiler = os.environ.get("CXX", "c++")
        command = [compiler, *flags, *defined, "-pthread", "-o", str(library), str(source)]
        subprocess.run(command, check=True)
        matrix = ctypes.CDLL(str(library)).matrix
    pointer, size = ctypes.c_void_p, ctypes.c_ssize_t
    matrix.argtypes = [pointer, pointer, size, size, size, pointer, ctypes.c_int]

    def call() -> np.ndarray:
        out = data.out()
        X, Y = data.X.ctypes.data, data.Y.ctypes.data
        matrix(X, Y, len(data.X), len(data.Y), data.X.shape[1], out.ctypes.data, threads)
        return out

    return call


def error(data: Data, out: np.ndarray) -> float:
    """Largest error of some entries."""
    rows = range(0, len(data.X), max(1, len(data.X) // 20))
    pairs = [(i, j) for i in rows for j in range(0, len(data.Y), max(1, len(data.Y) // 20))]
    exact = [
        data.f(*(a.astype(np.float64) for a in (data.X[i], data.Y[j])), **data.params)
        for i, j in pairs
    ]
    return max(abs(out[i, j] - value) for (i, j), value in zip(pairs, exact, strict=True))


def case(name: str, n: int, d: int, dtype: str = "float64") -> Case:
    """All pairs of n rows and n others. Python takes part as long as that lasts seconds."""
    python = Contestant("Python", in_python, "numpy")
    peers = (Contestant("C++", in_cpp, "numpy"), Contestant("fastml", compiled, "fastml"))
    everybody = (python, *peers) if n <= 500 else peers
    params = {"name": name, "n": n, "d": d, "dtype": dtype}
    atol = 1e-5 if dtype == "float32" else 1e-12
    return Case("jit", params, two_samples, everybody, error, "error", atol=atol)


CASES = (case("gaussian", 200, 20), case("clark", 3000, 20), case("clark", 3000, 20, "float32"))
