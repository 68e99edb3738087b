"""How fast the tile engine is at shapes that nobody chose: `python benchmarks/drawn.py [names]`.

Draws shapes of Gram matrices, of k-means and its start, of searches by brute force and in k-d
trees, of kernel machines, of linear ones on text and of principal components, and lets all
installed peers work on each by turns, as `fastml bench` does. For every case it prints how many
times as fast as each peer fastml is; peers whose results are worse are in brackets.
`--number` is how many of a name, and another `--seed` draws others.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fastml._bench.cases import covariance, kdtree, kmeans, linear_svm, neighbors, pairwise, svm
from fastml._bench.contest import Case, Contest, run

Draws = np.random.Generator


def between(rng: Draws, low: float, high: float) -> int:
    """Every order of magnitude as often as any other."""
    return round(float(np.exp(rng.uniform(np.log(low), np.log(high)))))


def dtype(rng: Draws) -> str:
    return str(rng.choice(["float32", "float64"]))


def gram(rng: Draws) -> Case:
    function = str(rng.choice(["rbf_kernel", "polynomial_kernel"]))
    return pairwise.case(between(rng, 300, 8_000), 0, between(rng, 2, 64), function, dtype(rng))


def narrow_gram(rng: Draws) -> Case:
    function = str(rng.choice(["laplacian_kernel", "chi2_kernel"]))
    return pairwise.case(between(rng, 300, 8_000), 0, between(rng, 2, 64), function, dtype(rng))


def lloyd(rng: Draws) -> Case:
    make = kmeans.late_case if rng.random() < 0.5 else kmeans.fit_case
    d, k = between(rng, 4, 200), between(rng, 64, 1_000)
    n = min(between(rng, 20_000, 500_000), 40_000_000 // d, 100_000_000 // k)
    return make(n, d, k, dtype(rng), spread=float(rng.choice([0.3, 0.7, 5])))


def seeding(rng: Draws) -> Case:
    d, k = between(rng, 4, 200), between(rng, 100, 1_000)
    n = min(between(rng, 20_000, 500_000), 40_000_000 // d, 100_000_000 // k)
    return kmeans.seed_case(n, d, k, dtype(rng))


def brute(rng: Draws) -> Case:
    n, d, k = between(rng, 10_000, 200_000), between(rng, 16, 128), between(rng, 1, 50)
    return neighbors.search_case(n, d, k, dtype(rng), between(rng, 1_000, 10_000))


def tree(rng: Draws) -> Case:
    n, d, k = between(rng, 1e5, 1e6), int(rng.integers(2, 9)), between(rng, 1, 20)
    kind = str(rng.choice(["uniform", "clusters"]))
    return kdtree.query_case(n, d, k, dtype(rng), kind=kind)


def machine(rng: Draws, model: str, kernel: str, largest: int) -> Case:
    """Classes without and with overlap, or a smooth function with noise."""
    params: dict[str, Any] = {"kernel": kernel}
    if not model.startswith("Nu"):
        params["C"] = round(float(np.exp(rng.uniform(np.log(0.1), np.log(100)))), 2)
    n, d, k = between(rng, 2_000, largest), between(rng, 5, 60), 2
    if model == "SVC" and kernel != "linear" and rng.random() < 0.4:
        k = int(rng.integers(3, 9))
    noise = float(rng.choice([0.3, 1, 2]))
    return svm.case("fit", n, d, k, noise, model, dtype(rng), **params)


def svc(rng: Draws) -> Case:
    return machine(rng, "SVC", str(rng.choice(["rbf", "poly"])), 10_000)


def linear_svc(rng: Draws) -> Case:
    return machine(rng, str(rng.choice(["SVC", "SVR"])), "linear", 8_000)


def other_machines(rng: Draws) -> Case:
    return machine(rng, str(rng.choice(["SVR", "NuSVC", "NuSVR"])), "rbf", 6_000)


def text(rng: Draws) -> Case:
    """Linear machines on sparse rows of words."""
    n, d = between(rng, 2_000, 20_000), between(rng, 5_000, 60_000)
    C = round(float(np.exp(rng.uniform(np.log(0.1), np.log(10)))), 2)
    loss = str(rng.choice(["hinge", "squared_hinge"]))
    return linear_svm.case("text", n, d, int(rng.choice([2, 5])), dtype(rng), loss=loss, C=C)


def pca(rng: Draws) -> Case:
    n = between(rng, 30, 20_000)
    d = min(between(rng, 3, 1_000), 6_000_000 // n)
    k = int(rng.choice([0, 2, 10]))  # 0 for all
    return covariance.case(n, d, dtype(rng), min(k, n, d) or None)


NAMES: dict[str, Callable[[Draws], Case]] = {
    "gram": gram,
    "narrow-gram": narrow_gram,
    "kmeans": lloyd,
    "seeding": seeding,
    "brute": brute,
    "tree": tree,
    "svc": svc,
    "linear-svc": linear_svc,
    "other-svm": other_machines,
    "text": text,
    "pca": pca,
}


def ratios(contest: Contest) -> Iterator[str]:
    ours = contest.entry("fastml")
    for entry in contest.finished:
        if entry is not ours:
            ratio = f"{entry.name} {contest.ratio(ours, entry.name):.2f}"
            yield ratio if contest.equal(entry) else f"({ratio})"
    if not contest.equal(ours):
        yield "and fastml's result is worse"


def main() -> None:
    parser = argparse.ArgumentParser(description="fastml beside its peers at drawn shapes.")
    parser.add_argument("names", nargs="*", help=f"all by default: {', '.join(NAMES)}")
    parser.add_argument("--number", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for name in options.names or NAMES:
        rng = np.random.default_rng(options.seed)
        for _ in range(options.number):
            contest = run(NAMES[name](rng), rounds=8, budget=5, threads=2)
            best = contest.entry("fastml").best
            print(f"{contest.case}: {best * 1e3:.2f} ms; {', '.join(ratios(contest))}", flush=True)


if __name__ == "__main__":
    main()
