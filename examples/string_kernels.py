"""Which bacterium is a stretch of DNA from? String kernels, and one of our own.

Two made-up species differ in how often one letter follows another, and in a motif that turns up
with gaps. The sequences are not vectors: the kernels compare them as they are.
"""

import numpy as np
from sklearn.svm import SVC

from fastml.gaussian_process import GaussianProcessClassifier
from fastml.gaussian_process.kernels import (
    NGram,
    Normalized,
    Subsequence,
    UserKernel,
    check_mercer,
)
from fastml.jit import kernel

rng = np.random.default_rng(0)
LETTERS = np.array(list("acgt"))


def sequence(habits):
    letters = [rng.integers(4)]
    for _ in range(rng.integers(60, 120)):
        letters.append(rng.choice(4, p=habits[letters[-1]]))
    return "".join(LETTERS[letters])


habits = [rng.dirichlet(np.full(4, 4.0), size=4) for _ in range(2)]
species = rng.integers(2, size=300)
dna = np.array([sequence(habits[s]) for s in species])
train, test = slice(0, 150), slice(150, None)

kernels = {
    "3-grams": Normalized(NGram(3)),
    "1- to 4-grams": Normalized(NGram(4, n_min=1)),
    "3-grams, minima of counts": Normalized(NGram(3, compare="intersection")),
    "subsequences with gaps": Normalized(Subsequence(3, decay=0.6)),
}
print(f"{'kernel':<28} accuracy")
for name, k in kernels.items():
    model = SVC(kernel="precomputed", C=10).fit(k(dna[train]), species[train])
    print(f"{name:<28} {model.score(k(dna[test], dna[train]), species[test]):.1%}")

model = GaussianProcessClassifier(Normalized(NGram(2)) ** 4, optimizer=None)
model.fit(dna[train], species[train])
print(f"{'a Gaussian process':<28} {model.score(dna[test], species[test]):.1%}")


# Counts of letter pairs, compared by a kernel that scikit-learn does not have.
@kernel
def jensen_shannon(x, y, gamma=1.0):
    distance = 0.0
    for k in range(len(x)):
        middle = (x[k] + y[k]) / 2
        if x[k] > 0:
            distance += x[k] * np.log(x[k] / middle) / 2
        if y[k] > 0:
            distance += y[k] * np.log(y[k] / middle) / 2
    return np.exp(-gamma * distance)


pairs = [first + second for first in LETTERS for second in LETTERS]
shares = np.array([[x.count(pair) for pair in pairs] for x in dna], dtype=float)
shares /= shares.sum(axis=1, keepdims=True)

ours = UserKernel(jensen_shannon, {"gamma": 20.0}, {"gamma": (1.0, 1e3)})
print(f"\n{ours}\n{check_mercer(ours, shares)}")
model = GaussianProcessClassifier(ours).fit(shares[train], species[train])
print(f"tuned to {model.kernel_}: {model.score(shares[test], species[test]):.1%}")
