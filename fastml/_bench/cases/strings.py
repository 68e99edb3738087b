"""Gram matrices of string kernels, beside scikit-learn's counts and a recursion in SciPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..contest import Case, Contestant


def random_strings(n: int, size: int, alphabet: int, length: int) -> tuple[list[str], int]:
    rng = np.random.default_rng(0)
    letters = np.array([chr(ord("0") + k) for k in range(alphabet)])
    return ["".join(rng.choice(letters, size)) for _ in range(n)], length


def fastml_ngrams(data: tuple[list[str], int], threads: int) -> Callable[[], Any]:
    from fastml.gaussian_process.kernels import NGram

    return lambda: NGram(data[1])(data[0])


def sklearn_ngrams(data: tuple[list[str], int], threads: int) -> Callable[[], Any]:
    from sklearn.feature_extraction.text import CountVectorizer

    texts, n = data

    def call() -> np.ndarray:
        vectorizer = CountVectorizer(analyzer="char", ngram_range=(n, n), lowercase=False)
        counts = vectorizer.fit_transform(texts)
        return (counts @ counts.T).toarray()

    return call


def fastml_subsequences(data: tuple[list[str], int], threads: int) -> Callable[[], Any]:
    from fastml.gaussian_process.kernels import Subsequence

    return lambda: Subsequence(data[1], decay=0.5)(data[0])


def numpy_subsequences(data: tuple[list[str], int], threads: int) -> Callable[[], Any]:
    """Level by level; the sums along t are those of a linear filter."""
    from scipy.signal import lfilter

    texts, n = data
    codes = [np.frombuffer(x.encode(), np.uint8) for x in texts]

    def pair(s: np.ndarray, t: np.ndarray) -> float:
        match = 0.25 * (s[:, None] == t)
        before = np.ones((len(s), len(t)))
        for _ in range(n - 1):
            gaps = lfilter([1.0], [1.0, -0.5], lfilter([1.0], [1.0, -0.5], match * before), axis=0)
            before = np.zeros_like(gaps)
            before[1:, 1:] = gaps[:-1, :-1]
        return float((match * before).sum())

    def call() -> np.ndarray:
        out = np.empty((len(codes), len(codes)))
        for i, s in enumerate(codes):
            for j in range(i + 1):
                out[i, j] = out[j, i] = pair(s, codes[j])
        return out

    return call


def error(data: tuple[list[str], int], K: np.ndarray) -> float:
    """How far some entries are from those of the slow way."""
    texts, n = data[0][:4], data[1]
    slow = sklearn_ngrams if K[0, 0] == int(K[0, 0]) else numpy_subsequences
    exact = slow((texts, n), 1)()
    return float(abs(K[:4, :4] - exact).max() / exact.max())


def ngrams_case(n: int, size: int, alphabet: int, length: int) -> Case:
    """All pairs of n strings of `size` letters, their common substrings of `length`."""
    params = {"n": n, "size": size, "alphabet": alphabet, "length": length}
    peers = (
        Contestant("scikit-learn", sklearn_ngrams, "scikit-learn"),
        Contestant("fastml", fastml_ngrams, "fastml"),
    )
    return Case("strings-ngrams", params, random_strings, peers, error, "error", atol=1e-12)


def subsequences_case(n: int, size: int, alphabet: int, length: int) -> Case:
    """All pairs of n strings of `size` letters, their common subsequences of `length`."""
    params = {"n": n, "size": size, "alphabet": alphabet, "length": length}
    peers = (
        Contestant("SciPy", numpy_subsequences, "scipy"),
        Contestant("fastml", fastml_subsequences, "fastml"),
    )
    return Case("strings-subsequences", params, random_strings, peers, error, "error", atol=1e-9)


CASES = (ngrams_case(500, 500, 4, 5), subsequences_case(60, 100, 4, 3))
