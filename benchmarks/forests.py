"""How much faster forests grow: `python benchmarks/forests.py [--rows 20000 | --memory]`.

Prints the table of docs/trees.md: how many times as fast as scikit-learn's both kinds of forests
grow, by kinds of features and of targets. Both libraries take turns on two threads in one process,
the best time counts, and the trees are compared node by node. With --memory, what six trees of
300,000 x 30 take beyond the data, each in a process of its own (Linux).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import sklearn.ensemble

import fastml.ensemble

D, TREES, THREADS = 16, 10, 2
TARGETS = {"two classes": 2, "five classes": 5, "real targets": 0, "integer targets": 0}


def features(n: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    shape = n, D
    return {
        "continuous": rng.normal(size=shape),
        "1,000 integers": rng.integers(0, 1000, shape),
        "16 integers": rng.integers(0, 16, shape),
        "two values": rng.integers(0, 2, shape),
        "mostly zero": np.round(rng.normal(size=shape), 1) * (rng.random(shape) < 0.2),
    }


def target(X: np.ndarray, name: str, rng: np.random.Generator) -> np.ndarray:
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    score = Z[:, 0] + Z[:, 1] * Z[:, 2] + rng.normal(size=len(X))
    if name == "real targets":
        return score
    if name == "integer targets":
        return np.round(3 * score)
    n_classes = TARGETS[name]
    return np.searchsorted(np.quantile(score, np.arange(1, n_classes) / n_classes), score)


def gain(kind: str, X: np.ndarray, y: np.ndarray, rounds: int) -> float:
    options: dict[str, Any] = {"n_estimators": TREES, "n_jobs": THREADS, "random_state": 0}
    ours, theirs = (getattr(m, kind)(**options) for m in (fastml.ensemble, sklearn.ensemble))
    best = {ours: np.inf, theirs: np.inf}
    for _ in range(rounds):
        for forest in (theirs, ours, ours):  # it is over sooner
            start = time.perf_counter()
            forest.fit(X, y)
            best[forest] = min(best[forest], time.perf_counter() - start)
    for mine, stock in zip(ours, theirs, strict=True):
        for name in ("feature", "threshold", "value", "impurity"):
            np.testing.assert_array_equal(getattr(mine.tree_, name), getattr(stock.tree_, name))
    return best[theirs] / best[ours]


def resident(what: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(what)) >> 10


def taken(library: str, kind: str, values: str) -> int:
    """MB that a fit takes; scikit-learn's Tree of it included."""
    rng = np.random.default_rng(0)
    shape = 300_000, 30
    X = rng.normal(size=shape) if values == "continuous" else rng.integers(0, 16, shape)
    X = X.astype(np.float32)
    y = X[:, 0] > 0 if kind == "Classifier" else X[:, 0] + rng.normal(size=len(X))
    make = getattr(import_module(f"{library}.ensemble"), f"RandomForest{kind}")
    make(2, n_jobs=THREADS, max_depth=3, random_state=0).fit(X[:5_000], y[:5_000])
    Path("/proc/self/clear_refs").write_text("5")
    before = resident("VmRSS")
    make(6, n_jobs=THREADS, max_features=0.1, min_samples_leaf=20, random_state=0).fit(X, y)
    return resident("VmHWM") - before


def show_memory() -> None:
    for values in ("16 values", "continuous"):
        for kind in ("Classifier", "Regressor"):
            for library in ("fastml", "sklearn"):
                call = f"import forests; print(forests.taken({library!r}, {kind!r}, {values!r}))"
                run = [sys.executable, "-c", call]
                here = Path(__file__).parent
                found = subprocess.run(run, cwd=here, check=True, capture_output=True, text=True)
                print(f"{values}, {kind}, {library}: {found.stdout.strip()} MB", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--memory", action="store_true")
    args = parser.parse_args()
    if args.memory:
        return show_memory()
    rng = np.random.default_rng(0)
    print(f"{args.rows:,} x {D}, {TREES} trees, {THREADS} threads: RandomForest*, ExtraTrees*")
    print("| features | " + " | ".join(TARGETS) + " |")
    print("|---|" + "---|" * len(TARGETS))
    for kind, X in features(args.rows, rng).items():
        X = X.astype(np.float32)
        cells = []
        for name, n_classes in TARGETS.items():
            y = target(X, name, rng)
            suffix = "Classifier" if n_classes else "Regressor"
            gains = [gain(k + suffix, X, y, args.rounds) for k in ("RandomForest", "ExtraTrees")]
            cells.append(", ".join(f"{g:.1f}" for g in gains))
        print(f"| {kind} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
