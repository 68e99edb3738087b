"""Kernels of strings, bags and sets, against plain counting."""

import math
import re
from collections import Counter
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from fastml._native.strings import subsequences
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.svm import SVC
from suites.harness import in_child

from fastml.gaussian_process._strings import ragged
from fastml.gaussian_process.kernels import (
    RBF,
    BagOfWords,
    Composed,
    NGram,
    Normalized,
    SetIntersection,
    Subsequence,
    check_mercer,
)

WORDS = ["banana", "bandana", "", "a", "cabin", "naïve 🙂🙂", "🙂", "bananabanana", "\ud800x"]
TEXTS = ["To be or not to be", "to do is to be", "", "Do be do be do", "a I"]


def product(a, b):
    return sum(a[key] * b[key] for key in a.keys() & b.keys())


def intersection(a, b):
    return sum((a & b).values())


def grams(x, least, most):
    return Counter(x[i : i + n] for n in range(least, most + 1) for i in range(len(x) - n + 1))


def words(x):
    return Counter(re.findall(r"\b\w\w+\b", x.lower()))


def subsequence_naive(s, t, n, decay):
    def places(x):
        found = {}
        for place in combinations(range(len(x)), n):
            key = "".join(x[i] for i in place)
            found.setdefault(key, []).append(place[-1] - place[0] + 1)
        return found

    in_s, in_t = places(s), places(t)
    return math.fsum(
        decay ** (a + b) for key in in_s.keys() & in_t.keys() for a in in_s[key] for b in in_t[key]
    )


def gram_naive(compare, X, Y):
    return np.array([[compare(x, y) for y in Y] for x in X], dtype=float)


@pytest.mark.parametrize("compare", [product, intersection])
@pytest.mark.parametrize(("least", "most"), [(1, 1), (2, 2), (3, 3), (1, 4), (2, 7), (13, 13)])
def test_n_grams(least, most, compare):
    k = NGram(most, None if least == most else least, compare=compare.__name__)
    counts = [grams(x, least, most) for x in WORDS]
    expected = gram_naive(compare, counts, counts)
    np.testing.assert_array_equal(k(WORDS), expected)
    np.testing.assert_array_equal(k(WORDS, WORDS[:3]), expected[:, :3])
    np.testing.assert_array_equal(k.diag(WORDS), np.diag(expected))


@pytest.mark.parametrize("n", [5, 20, 70])
def test_long_n_grams_of_a_large_alphabet_are_not_confused(n):
    """A number of 64 bits does not hold them: they are numbered anew on the way."""
    rng = np.random.default_rng(n)
    text = "".join(map(chr, rng.integers(0x20, 0xD7FF, 3000)))
    X = [text[i : i + 200] for i in range(0, 2900, 100)]
    counts = [grams(x, n, n) for x in X]
    np.testing.assert_array_equal(NGram(n)(X), gram_naive(product, counts, counts))


def test_n_grams_are_those_of_count_vectorizer():
    rng = np.random.default_rng(0)
    X = ["".join(rng.choice(list("acgt"), size)) for size in rng.integers(0, 300, 50)]
    counts = CountVectorizer(analyzer="char", ngram_range=(2, 4), lowercase=False).fit_transform(X)
    np.testing.assert_array_equal(NGram(4, n_min=2)(X), (counts @ counts.T).toarray())


@pytest.mark.parametrize("compare", [product, intersection])
def test_bags_of_words(compare):
    k = BagOfWords(compare.__name__)
    expected = gram_naive(compare, *2 * [[words(x) for x in TEXTS]])
    np.testing.assert_array_equal(k(TEXTS), expected)
    np.testing.assert_array_equal(k(TEXTS[:2], TEXTS), expected[:2])
    np.testing.assert_array_equal(k.diag(TEXTS), np.diag(expected))
    assert BagOfWords(lowercase=False)(["To be"], ["to be"]).item() == 1
    assert BagOfWords(token_pattern=r"\w+")(["a I"]).item() == 2


def test_normalized_intersection_is_the_formula():
    X = TEXTS[:2]
    a, b = map(words, X)
    expected = intersection(a, b) / math.sqrt(sum(a.values()) * sum(b.values()))
    assert Normalized(BagOfWords("intersection"))(X)[0, 1] == pytest.approx(expected)


def test_sets():
    X = [{1, 2, 3}, frozenset([2, "a"]), [2, 2, 5], (), range(4)]
    sets = [set(x) for x in X]
    expected = gram_naive(lambda x, y: len(x & y), sets, sets)
    np.testing.assert_array_equal(SetIntersection()(X), expected)
    np.testing.assert_array_equal(SetIntersection()(X, X[:2]), expected[:, :2])
    np.testing.assert_array_equal(SetIntersection().diag(X), np.diag(expected))
    root = np.sqrt(np.diag(expected))
    ratio = expected / np.maximum(1, np.outer(root, root))
    np.testing.assert_allclose(Normalized(SetIntersection())(X), ratio)


@pytest.mark.parametrize("decay", [0.3, 1.0])
@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_subsequences(n, decay):
    k = Subsequence(n, decay)
    expected = gram_naive(lambda s, t: subsequence_naive(s, t, n, decay), WORDS, WORDS)
    np.testing.assert_allclose(k(WORDS), expected, rtol=1e-12)
    np.testing.assert_allclose(k(WORDS, WORDS[:4]), expected[:, :4], rtol=1e-12)
    np.testing.assert_allclose(k.diag(WORDS), np.diag(expected), rtol=1e-12)


@pytest.mark.parametrize("symmetric", [False, True])
def test_threads_do_not_matter(symmetric):
    rng = np.random.default_rng(0)
    X = ragged(["".join(rng.choice(list("acgt"), size)) for size in rng.integers(0, 90, 80)])
    outs = [np.empty((80, 80)) for _ in range(2)]
    for threads, out in zip((1, 2), outs):
        subsequences(*X, *X, 3, 0.5, symmetric, out, threads)
    np.testing.assert_array_equal(*outs)
    np.testing.assert_allclose(outs[0], outs[0].T, rtol=1e-12)


def test_subsequences_in_a_forked_child():
    X = ["banana" * 20, "bandana" * 20] * 20
    K = Subsequence(3)(X)
    np.testing.assert_array_equal(in_child(lambda: Subsequence(3)(X)), K)


def test_gradient_of_the_decay():
    k = Normalized(Subsequence(2, 0.6))
    _, gradient = k(WORDS[:2], eval_gradient=True)
    step = 1e-4
    up, down = (k.clone_with_theta(k.theta + h)(WORDS[:2]) for h in (step, -step))
    np.testing.assert_allclose(gradient[:, :, 0], (up - down) / (2 * step), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("k", [NGram(2), BagOfWords(), Subsequence(2)], ids=str)
def test_what_strings_may_come_in(k):
    X = ["banana nana", "bandana", "nana na"]
    K = k(X)
    column = np.array(X)[:, None]
    for given in (tuple(X), np.array(X), np.array(X, dtype=object), column, pd.Series(X)):
        np.testing.assert_array_equal(k(given), K)
    with pytest.raises(TypeError, match="got one string"):
        k("banana")
    with pytest.raises(TypeError, match=r"expected strings, got 3\.0 of type float at 1"):
        k(["a", 3.0])
    with pytest.raises(TypeError, match=r"expected strings, got array"):
        k(np.zeros((2, 2)))
    assert k.requires_vector_input is False
    assert clone(k) == k


@pytest.mark.parametrize(
    "k", [NGram(0), NGram(2, 3), NGram(2, compare="max"), Subsequence(0)], ids=str
)
def test_wrong_parameters(k):
    with pytest.raises(ValueError, match=r"n=|n_min|compare"):
        k(["banana"])


ALL = [NGram(2), NGram(3, 1, "intersection"), BagOfWords(), Subsequence(2), Subsequence(3, 0.9)]


@pytest.mark.parametrize("k", ALL, ids=str)
def test_they_are_mercer_kernels(k):
    assert check_mercer(k, WORDS)
    assert check_mercer(Normalized(k), WORDS)


@pytest.mark.parametrize("k", [*ALL, Normalized(Subsequence(2)) * 2.0], ids=str)
def test_in_estimators(k):
    rng = np.random.default_rng(0)
    X = ["".join(rng.choice(list(letters), 12)) for letters in ["aab", "abb"] * 15]
    if isinstance(k, BagOfWords):
        X = [" ".join(2 * c for c in x) for x in X]
    y = np.array([0.0, 1.0] * 15)
    K = k(X)
    np.testing.assert_allclose(pairwise_kernels(X, metric=k), K, rtol=1e-12)
    gp = GaussianProcessRegressor(k, alpha=1.0, optimizer=None).fit(X, y)
    assert gp.score(X, y) > 0.3
    gp = GaussianProcessClassifier(Normalized(k), optimizer=None).fit(X, y > 0.5)
    assert gp.score(X, y > 0.5) > 0.7
    svc = SVC(kernel="precomputed").fit(K, y)
    assert svc.score(K, y) > 0.7


def test_composed_with_a_feature_map_of_strings():
    vectorizer = CountVectorizer(analyzer="char").fit(WORDS)

    def features(X):
        return vectorizer.transform(X).toarray()

    K = Composed(RBF(3.0), features)(WORDS)
    np.testing.assert_allclose(K, RBF(3.0)(features(WORDS)))
    gp = GaussianProcessRegressor(Composed(RBF(3.0, "fixed"), features)).fit(WORDS[:4], range(4))
    assert gp.predict(WORDS[:2]) == pytest.approx([0, 1], abs=1e-3)
