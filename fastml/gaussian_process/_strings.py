"""Kernels of strings, bags and sets: rows need not be vectors.

All but the last count features and compare counts: matrices in CSR whose products are the kernel.
A minimum of counts is a product too, of as many columns for a feature as it is counted: the t-th
is 1 if the count is at least t.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, issparse
from sklearn.gaussian_process.kernels import GenericKernelMixin, Hyperparameter

from fastml._runtime.threads import n_threads
from fastml.gaussian_process._vectors import VectorKernel, log_derivative, row_dots
from fastml.metrics import pairwise


class CountKernel(GenericKernelMixin, VectorKernel):
    """A kernel that compares how often features occur.

    Subclasses give `_occurrences(X)`: for each feature of each object in turn an integer, and how
    many each object has.
    """

    compare = "product"

    def _gram(self, X: Any, Y: Any) -> np.ndarray:
        counts = self._counts(X if Y is None else [*X, *Y])
        return pairwise.linear_kernel(counts[: len(X)], None if Y is None else counts[len(X) :])

    def diag(self, X: Any) -> np.ndarray:
        """Return k(x, x) for each x."""
        counts = self._counts(self._rows(X))
        return row_dots(counts, counts)

    def _rows(self, X: Any) -> Sequence[Any]:
        return strings(X)

    def _counts(self, X: Sequence[Any]) -> csr_matrix:
        features, sizes = self._occurrences(X)
        if self.compare not in ("product", "intersection"):
            raise ValueError(f"compare={self.compare!r} is not 'product' or 'intersection'")
        counts = count(features, sizes)
        return unary(counts) if self.compare == "intersection" else counts

    def _occurrences(self, X: Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
        raise NotImplementedError


def strings(X: Any) -> list[str]:
    """A list, an array or a column of strings as a list; other things are an error that says so."""
    if isinstance(X, (str, bytes)):
        raise TypeError("expected a list of strings, got one string")
    if issparse(X):
        raise TypeError("expected a list of strings, got a sparse matrix")
    if hasattr(X, "ndim") and X.ndim == 2 and X.shape[1] == 1:
        X = np.asarray(X)[:, 0]
    X = list(X)
    for i, x in enumerate(X):
        if not isinstance(x, str):
            raise TypeError(f"expected strings, got {x!r} of type {type(x).__name__} at {i}")
    return X


def count(features: np.ndarray, sizes: np.ndarray) -> csr_matrix:
    """A CSR matrix of how often each feature occurs in each object."""
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    width = int(features.max(initial=-1)) + 1
    shape = (len(sizes), max(1, width))
    counts = csr_matrix((np.ones(len(features)), features, indptr), shape=shape)
    counts.sum_duplicates()
    return counts


def unary(counts: csr_matrix) -> csr_matrix:
    """Ones, in the columns (feature, 1), ..., (feature, count)."""
    n = counts.data.astype(np.int64)
    t = np.arange(n.sum()) - np.repeat(np.cumsum(n) - n, n)
    _, columns = np.unique(np.repeat(counts.indices, n) + t * counts.shape[1], return_inverse=True)
    sizes = np.add.reduceat(np.append(n, 0), counts.indptr[:-1]) * (np.diff(counts.indptr) > 0)
    return count(columns, sizes)


class NGram(CountKernel):
    """The n-gram (spectrum) kernel of strings: common substrings of n characters.

    Every occurrence counts. `Normalized(NGram(...))` does not grow with the strings.

    Parameters
    ----------
    n : int, default=3
        The length of the substrings.

    n_min : int, default=None
        The least length, if all lengths from it to n are to be counted.

    compare : {"product", "intersection"}, default="product"
        Whether to add the products of the counts in both strings, or their minima.

    Examples
    --------
    >>> from fastml.gaussian_process.kernels import NGram
    >>> NGram(2)(["banana", "bandana", "cabin"])
    array([[9., 7., 0.],
           [7., 8., 0.],
           [0., 0., 4.]])
    >>> NGram(2, n_min=1, compare="intersection")(["banana"], ["bandana", "cabin"])
    array([[10.,  3.]])
    """

    def __init__(self, n: int = 3, n_min: int | None = None, compare: str = "product") -> None:
        self.n = n
        self.n_min = n_min
        self.compare = compare

    def _occurrences(self, X: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        least = self.n if self.n_min is None else self.n_min
        if not 1 <= least <= self.n:
            raise ValueError(f"n={self.n} and n_min={self.n_min}: expected 1 <= n_min <= n")
        return ngrams(*code_points(X), least, self.n)


def code_points(X: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """The characters of all strings as numbers, and the length of each string."""
    text = "".join(X).encode("utf-32-le", "surrogatepass")
    return np.frombuffer(text, np.uint32), np.fromiter(map(len, X), np.int64, len(X))


def ngrams(codes: np.ndarray, lengths: np.ndarray, least: int, most: int) -> Any:
    """The substrings of `least` to `most` characters, numbered, string by string."""
    alphabet, symbols = np.unique(codes, return_inverse=True)
    left = np.repeat(np.cumsum(lengths), lengths) - np.arange(len(codes))  # to the string's end
    owner = np.repeat(np.arange(len(lengths)), lengths)
    key, bound = symbols.astype(np.int64), len(alphabet)
    features, owners, base = [], [], 0
    for n in range(1, most + 1):
        if n > 1:
            if bound * len(alphabet) >= 2**62:
                key, bound = ranks(key)
            key = key[:-1] * len(alphabet) + symbols[n - 1 :] if n <= len(symbols) else key[:0]
            bound *= len(alphabet)
        if n >= least:
            whole = left[: len(key)] >= n  # the others run into the next string
            feature, different = ranks(key[whole])
            features.append(feature + base)
            owners.append(owner[: len(key)][whole])
            base += different
    feature, owner = np.concatenate(features), np.concatenate(owners)
    if least < most:
        order = np.argsort(owner, kind="stable")
        feature, owner = feature[order], owner[order]
    return feature, np.bincount(owner, minlength=len(lengths))


def ranks(key: np.ndarray) -> tuple[np.ndarray, int]:
    """The place of each value among the different ones, and how many there are."""
    different, rank = np.unique(key, return_inverse=True)
    return rank, len(different)


class BagOfWords(CountKernel):
    """Common words of texts.

    Parameters
    ----------
    compare : {"product", "intersection"}, default="product"
        Whether to add the products of the counts in both texts, or their minima. Normalised,
        the latter is Σ min(c(x), c(y)) / √(Σ c(x) · Σ c(y)).

    lowercase : bool, default=True
        Whether to take texts in lower case.

    token_pattern : str, default=r"(?u)\\b\\w\\w+\\b"
        A regular expression of what a word is: two or more letters or digits.

    Examples
    --------
    >>> from fastml.gaussian_process.kernels import BagOfWords
    >>> BagOfWords()(["to be or not to be", "to do is to be"])
    array([[10.,  6.],
           [ 6.,  7.]])
    """

    def __init__(
        self,
        compare: str = "product",
        lowercase: bool = True,
        token_pattern: str = r"(?u)\b\w\w+\b",
    ) -> None:
        self.compare = compare
        self.lowercase = lowercase
        self.token_pattern = token_pattern

    def _occurrences(self, X: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        words = re.compile(self.token_pattern).findall
        return numbered([words(x.lower() if self.lowercase else x) for x in X])


class SetIntersection(CountKernel):
    """How many elements sets have in common, ``|x ∩ y|``.

    Normalised it is ``|x ∩ y| / √(|x| · |y|)``.

    Rows are sets, or other collections of things that can be elements of one.

    Examples
    --------
    >>> from fastml.gaussian_process.kernels import SetIntersection
    >>> SetIntersection()([{1, 2, 3}, {2, 3, 4}, {"a"}])
    array([[3., 2., 0.],
           [2., 3., 0.],
           [0., 0., 1.]])
    """

    def _rows(self, X: Any) -> Sequence[set[Any]]:
        if isinstance(X, (str, bytes)):
            raise TypeError("expected a list of sets, got one string")
        return [x if isinstance(x, (set, frozenset)) else set(x) for x in X]

    def _occurrences(self, X: Sequence[set[Any]]) -> tuple[np.ndarray, np.ndarray]:
        return numbered(X)


def numbered(X: Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
    """The elements of all collections as numbers, and the size of each."""
    numbers: dict[Any, int] = {}
    sizes = np.fromiter(map(len, X), np.int64, len(X))
    flat: Iterable[Any] = chain.from_iterable(X)
    features = (numbers.setdefault(x, len(numbers)) for x in flat)
    return np.fromiter(features, np.int64, int(sizes.sum())), sizes


class Subsequence(GenericKernelMixin, VectorKernel):
    """The gap-weighted subsequence kernel of strings.

    All sequences of n characters that x and y share, in this order but not necessarily side by
    side, count `decay` to the power of the length that they span in x and in y (Lodhi et al.,
    2002). The time is ``n · |x| · |y|`` for a pair. `Normalized(Subsequence(...))` does not grow
    with the strings.

    Parameters
    ----------
    n : int, default=2
        The length of the sequences.

    decay : float, default=0.5
        What each character that is spanned costs; 1 counts all sequences alike.

    decay_bounds : pair of floats > 0 or "fixed", default=(0.01, 1.0)
        Where to look for the decay when it is tuned. Gradients are central differences.

    Examples
    --------
    >>> from fastml.gaussian_process.kernels import Subsequence
    >>> Subsequence(2, decay=0.5)(["cat", "car", "cart"])  # cat and car share "ca"
    array([[0.140625  , 0.0625    , 0.1015625 ],
           [0.0625    , 0.140625  , 0.140625  ],
           [0.1015625 , 0.140625  , 0.22265625]])
    """

    def __init__(self, n: int = 2, decay: float = 0.5, decay_bounds: Any = (0.01, 1.0)) -> None:
        self.n = n
        self.decay = decay
        self.decay_bounds = decay_bounds

    @property
    def hyperparameter_decay(self) -> Hyperparameter:
        return Hyperparameter("decay", "numeric", self.decay_bounds)

    def _rows(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        return ragged(strings(X))

    def _gram(self, X: Any, Y: Any) -> np.ndarray:
        return self._at(self.decay, X, Y)

    def _at(self, decay: float, X: Any, Y: Any = None) -> np.ndarray:
        from fastml._native.strings import subsequences

        if self.n < 1:
            raise ValueError(f"n={self.n}: a sequence has at least one character")
        Y, symmetric = (X, True) if Y is None else (Y, False)
        K = np.empty((len(X[1]) - 1, len(Y[1]) - 1))
        if K.size:
            subsequences(*X, *Y, self.n, decay, symmetric, K, n_threads())
        return K

    def _gradient(self, X: Any, K: np.ndarray) -> dict[str, Any]:
        return {"decay": lambda: log_derivative(lambda decay: self._at(decay, X), self.decay)}

    def diag(self, X: Any) -> np.ndarray:
        """Return k(x, x) for each x."""
        text, begin = self._rows(X)
        return np.array([self._gram((text, begin[i : i + 2]), None).item() for i in range(len(X))])


def ragged(X: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """The characters of all strings, and where each string begins."""
    codes, lengths = code_points(X)
    return np.append(codes, np.uint32(0)), np.concatenate([[0], np.cumsum(lengths)])
