"""Gram matrices of string kernels: `python -m pytest benchmarks/bench_strings.py`."""

import pytest

from fastml._bench.cases.strings import ngrams_case, subsequences_case


@pytest.mark.contest(
    [
        ngrams_case(1000, 1000, 4, 3),
        ngrams_case(1000, 1000, 4, 6),
        ngrams_case(1000, 1000, 30, 3),
        ngrams_case(200, 50, 30, 3),
        ngrams_case(20, 50_000, 4, 8),
    ]
)
def bench_ngrams(entry, contest):
    assert entry.name != "fastml" or contest.ratio(entry) > 2


@pytest.mark.contest(
    [
        subsequences_case(60, 100, 4, 3),
        subsequences_case(40, 400, 20, 5),
        subsequences_case(20, 100, 20, 8),
    ]
)
def bench_subsequences(entry, contest):
    assert entry.name != "fastml" or contest.ratio(entry) > 2
