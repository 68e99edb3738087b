"""Two rings: k-means cuts them in halves, kernel k-means tells them apart.

Draws rings.png if matplotlib is installed.
"""

from sklearn.datasets import make_circles
from sklearn.metrics import adjusted_rand_score

from fastml.cluster import KernelKMeans, KMeans

X, ring = make_circles(2_000, factor=0.4, noise=0.06, random_state=0)
models = {
    "KMeans": KMeans(n_clusters=2, n_init=5, random_state=0),
    "KernelKMeans, rbf": KernelKMeans(n_clusters=2, gamma=3, n_init=5, random_state=0),
}
for name, model in models.items():
    model.fit(X)
    score = adjusted_rand_score(ring, model.labels_)
    print(f"{name:18}  {model.n_iter_:2d} iterations  adjusted Rand index {score:.3f}")

try:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt
except ImportError:
    print("install matplotlib to see them")
else:
    figure, axes = plt.subplots(1, 2, figsize=(8, 4), sharex=True, sharey=True)
    for ax, (name, model) in zip(axes, models.items(), strict=True):
        ax.scatter(*X.T, c=model.labels_, s=4, cmap="coolwarm")
        ax.set(title=name, aspect="equal")
    figure.savefig("rings.png", dpi=120)
    print("rings.png")
