"""KernelPCA: `python -m pytest benchmarks/bench_kernel_pca.py`."""

import pytest

from fastml._bench.cases.kernel_pca import case

FITS = [
    case(n, d, k, kernel)
    for n, d, k, kernel in (
        (100, 5, 3, "rbf"),
        (250, 5, 3, "rbf"),
        (300, 5, 3, "rbf"),
        (300, 20, 3, "rbf"),
        (300, 10, 10, "rbf"),
        (500, 10, 5, "rbf"),
        (500, 20, 20, "rbf"),
        (500, 10, 100, "rbf"),
        (1_000, 10, 200, "rbf"),
        (1_000, 20, 2, "rbf"),
        (1_000, 20, 20, "rbf"),
        (1_000, 10, 5, "rbf"),
        (1_000, 10, 20, "rbf"),
        (2_000, 50, 20, "rbf"),
        (3_000, 20, 2, "rbf"),
        (3_000, 200, 2, "rbf"),
        (3_000, 200, 20, "rbf"),
        (3_000, 20, 20, "rbf"),
        (5_000, 20, 5, "rbf"),
        (5_000, 20, 20, "rbf"),
        (3_000, 20, 5, "poly"),
        (3_000, 20, 20, "poly"),
        (3_000, 20, 5, "cosine"),
        (3_000, 20, 5, "linear"),
        (8_000, 20, 2, "rbf"),
    )
]


@pytest.mark.contest([*FITS, case(3_000, dtype="float32"), case(3_000, part="transform")])
def bench_kernel_pca(entry, contest):
    assert entry.name != "fastml" or contest.ratio(entry) > 1
