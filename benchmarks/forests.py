"""How much faster forests grow: `python benchmarks/forests.py [--rows 20000]`.

Prints the table of docs/trees.md: how many times as fast as scikit-learn's both kinds of forests
grow, by kinds of features and of targets. Both libraries take turns on two threads in one process,
the best time counts, and the trees are compared node by node.
"""

from __future__ import annotations

import argparse
import time
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=4)
    args = parser.parse_args()
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
