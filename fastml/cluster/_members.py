"""Centers in the feature space of a kernel, which are known by their members alone."""

from typing import NamedTuple

import numpy as np

from fastml.cluster._gram import Gram


class Centers(NamedTuple):
    """Means of members in feature space: all that is known of them."""

    sums: np.ndarray  # (k, n): the weighted sums of kernel values of members
    norm: np.ndarray  # squared, infinite for a cluster without members
    scale: np.ndarray  # one over the weight of the members
    inertia: float  # of the members about their centers


def moved(
    gram: Gram,
    members: np.ndarray,
    labels: np.ndarray,
    w: np.ndarray,
    centers: Centers | None,
    k: int,
) -> Centers:
    """The centers once members are given by `labels`: from their old sums if few of them move."""
    rows = np.flatnonzero(labels != members)
    if centers is None or 2 * len(rows) > gram.n:
        sums = np.zeros((k, gram.n))
        gram.move(np.arange(gram.n), None, labels, w, sums)
    else:
        sums = centers.sums
        gram.move(rows, members[rows], labels[rows], w[rows], sums)
    weights = np.bincount(labels, w, minlength=k)
    within = np.bincount(labels, w * sums[labels, np.arange(gram.n)], minlength=k)
    scale = np.divide(1.0, weights, out=np.zeros(k), where=weights > 0)
    norm = np.where(weights > 0, within * scale**2, np.inf)
    return Centers(sums, norm, scale, float(w @ gram.diagonal - within @ scale))


def greedy_seeds(
    gram: Gram, w: np.ndarray, n_clusters: int, random_state: np.random.RandomState
) -> np.ndarray:
    """The rows that greedy k-means++ picks in feature space, from scikit-learn's random draws."""
    n_trials = 2 + int(np.log(n_clusters))

    def sqdist(rows):
        sqdist = gram.diagonal[rows, None] + gram.diagonal - 2 * gram.rows(rows)
        return np.maximum(sqdist, 0, out=sqdist)

    picked = np.empty(n_clusters, np.intp)
    picked[0] = random_state.choice(gram.n, p=w / w.sum())
    closest = sqdist(picked[:1])[0]
    potential = closest @ w
    for c in range(1, n_clusters):
        targets = random_state.uniform(size=n_trials) * potential
        candidates = np.minimum(np.searchsorted(np.cumsum(w * closest), targets), gram.n - 1)
        left = np.minimum(sqdist(candidates), closest)
        potentials = left @ w
        best = potentials.argmin()
        picked[c], potential, closest = candidates[best], potentials[best], left[best]
    return picked
