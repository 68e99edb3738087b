"""Small fits and one-row predictions beside scikit-learn's: `python benchmarks/small.py [names]`.

Both libraries take turns on two threads in one process, a few milliseconds each, and the median
call of the best turn counts. What is slower than scikit-learn's is printed, after it was tried
three times with ever more turns; with any left the program ends with status 1.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import sklearn
from scipy import sparse
from threadpoolctl import threadpool_limits

import fastml

THREADS = 2
SHAPES = [(20, 3), (100, 5), (500, 30), (1000, 10)]
ANSWERS = ("predict", "predict_proba", "transform", "decision_function", "score_samples",
           "kneighbors", "radius_neighbors")  # fmt: skip
SEED = {"random_state": 0}
FEW = SEED | {"n_clusters": 3, "n_init": 1}
ESTIMATORS: dict[str, list[dict[str, Any]]] = {
    "cluster.KMeans": [FEW, FEW | {"init": "random"}],
    "cluster.MiniBatchKMeans": [FEW],
    "cluster.BisectingKMeans": [FEW],
    "neighbors.NearestNeighbors": [{}, {"metric": "manhattan"}, {"algorithm": "brute"}],
    "neighbors.KNeighborsClassifier": [{}, {"weights": "distance"}, {"metric": "cosine"}],
    "neighbors.KNeighborsRegressor": [{}, {"weights": "distance"}],
    "neighbors.RadiusNeighborsClassifier": [{"radius": 100.0}],
    "neighbors.RadiusNeighborsRegressor": [{"radius": 100.0}],
    "neighbors.KNeighborsTransformer": [{}],
    "neighbors.RadiusNeighborsTransformer": [{"radius": 3.0}],
    "neighbors.LocalOutlierFactor": [{}, {"novelty": True}],
    "neighbors.NearestCentroid": [{}, {"metric": "manhattan"}],
    "neighbors.KernelDensity": [{}, {"kernel": "tophat"}],
    "preprocessing.StandardScaler": [{}],
    "preprocessing.MinMaxScaler": [{}],
    "preprocessing.MaxAbsScaler": [{}],
    "preprocessing.RobustScaler": [{}],
    "preprocessing.Normalizer": [{}, {"norm": "l1"}],
}
PAIRS = (
    *(f"{name}_distances" for name in ("euclidean", "manhattan", "cosine", "nan_euclidean")),
    *(f"{name}_kernel" for name in ("linear", "polynomial", "rbf", "laplacian", "sigmoid")),
    "cosine_similarity",
    "chi2_kernel",
    "additive_chi2_kernel",
)
FUNCTIONS: dict[str, list[dict[str, Any]]] = {
    **{f"metrics.pairwise.{name}": [{}] for name in PAIRS},
    "metrics.pairwise_distances": [{"metric": m} for m in ("chebyshev", "minkowski", "cosine")],
    "metrics.pairwise_kernels": [{"metric": "rbf"}],
    "metrics.pairwise_distances_argmin": [{"Y": 5}],
    "metrics.pairwise_distances_argmin_min": [{"Y": 5}],
    "neighbors.kneighbors_graph": [{"n_neighbors": 3}],
    "neighbors.radius_neighbors_graph": [{"radius": 1.0}],
    "preprocessing.scale": [{}],
    "preprocessing.minmax_scale": [{}],
    "preprocessing.maxabs_scale": [{}],
    "preprocessing.robust_scale": [{}],
    "preprocessing.normalize": [{}],
}
SPARSE = ("KMeans", "NearestNeighbors", "StandardScaler", "MaxAbsScaler", "Normalizer",
          "NearestCentroid", "euclidean_distances", "rbf_kernel", "cosine_similarity")  # fmt: skip


class Race(NamedTuple):
    """A call of each library's that does the same."""

    what: str
    ours: Callable[[], Any]
    stock: Callable[[], Any]

    def times(self, turns: int) -> tuple[float, float]:
        """Seconds of the median call of the best turn."""
        best = [np.inf, np.inf]
        for _ in range(turns):
            for i, call in enumerate((self.stock, self.ours)):
                best[i] = min(best[i], _median(call))
        return best[1], best[0]


def _median(call: Callable[[], Any]) -> float:
    took: list[float] = []
    while len(took) < 5 or (sum(took) < 0.004 and len(took) < 100):
        start = time.perf_counter()
        call()
        took.append(time.perf_counter() - start)
    return statistics.median(took)


def races(names: list[str]) -> Iterator[Race]:
    for n, d in SHAPES:
        rng = np.random.default_rng(n)
        for dtype in (np.float64, np.float32):
            X = rng.random((n, d)).astype(dtype)
            y = rng.integers(0, 3, n)
            about = f"{n} x {d} {np.dtype(dtype).name}"
            yield from _of(X, y, about, names)
        X = sparse.random(n, d, 0.3, "csr", np.float64, random_state=0)
        yield from _of(X, y, f"{n} x {d} sparse", names)


def _of(X: Any, y: np.ndarray, about: str, names: list[str]) -> Iterator[Race]:
    for table, race in ((ESTIMATORS, _of_estimator), (FUNCTIONS, _of_function)):
        for name, variants in table.items():
            module, _, short = name.rpartition(".")
            if names and short not in names:
                continue
            if sparse.issparse(X) and short not in SPARSE:
                continue
            ours, stock = (
                getattr(import_module(f"{lib}.{module}"), short) for lib in ("fastml", "sklearn")
            )
            for params in variants:
                if sparse.issparse(X) and short == "StandardScaler":
                    params = params | {"with_mean": False}
                told = ", ".join(f"{k}={v}" for k, v in params.items() if k not in FEW)
                yield from race(ours, stock, params, X, y, f"{short}({told})", about)


def _of_estimator(
    ours: Any, stock: Any, params: dict[str, Any], X: Any, y: np.ndarray, what: str, about: str
) -> Iterator[Race]:
    mine, theirs = ours(**params), stock(**params)
    yield Race(f"{what}.fit, {about}", partial(mine.fit, X, y), partial(theirs.fit, X, y))
    mine, theirs = ours(**params).fit(X, y), stock(**params).fit(X, y)
    for method in ANSWERS:
        if hasattr(theirs, method):
            calls = (partial(getattr(model, method), X[:1]) for model in (mine, theirs))
            yield Race(f"{what}.{method}, a row of {about}", *calls)


def _of_function(
    ours: Any, stock: Any, params: dict[str, Any], X: Any, y: np.ndarray, what: str, about: str
) -> Iterator[Race]:
    if "Y" in params:
        params = {"Y": X[: params["Y"]]}
        what = what.partition("(")[0] + "()"
    yield Race(f"{what}, {about}", partial(ours, X, **params), partial(stock, X, **params))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("names", nargs="*", help="of estimators or functions; all by default")
    parser.add_argument("--all", action="store_true", help="print every time, not only the slower")
    args = parser.parse_args()
    print(f"fastml {fastml.__version__}, scikit-learn {sklearn.__version__}, {THREADS} threads")
    print(f"{'fastml':>10} {'sklearn':>10} {'times':>6}", flush=True)
    ratios = []
    warnings.simplefilter("ignore")
    with threadpool_limits(THREADS):
        for race in races(args.names):
            for turns in (3, 12, 40):
                mine, theirs = race.times(turns)
                if mine <= theirs:
                    break
            ratios.append(theirs / mine)
            if args.all or mine > theirs:
                print(f"{mine * 1e6:7.1f} us {theirs * 1e6:7.1f} us {theirs / mine:6.2f}"
                      f"  {race.what}", flush=True)  # fmt: skip
    slower = sum(r < 1 for r in ratios)
    print(f"{len(ratios)} calls, {slower} slower; times as fast: least {min(ratios):.2f}, "
          f"median {statistics.median(ratios):.1f}")  # fmt: skip
    sys.exit(slower > 0)


if __name__ == "__main__":
    main()
