"""Find segments among customers, and how many there are.

This is plain scikit-learn: it does not know that fastml exists.
"""

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import davies_bouldin_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

FEATURES = ["recency", "frequency", "basket", "discount", "returns", "tenure", "visits", "mobile"]


def customers(n, rng):
    """Twelve kinds of customers, eight habits each, some of them skewed as habits are."""
    kinds = rng.normal(scale=1.6, size=(12, len(FEATURES)))
    shares = rng.dirichlet(np.full(12, 5.0))
    X = kinds[rng.choice(12, size=n, p=shares)] + 0.6 * rng.normal(size=(n, len(FEATURES)))
    X[:, :3] = np.exp(0.5 * X[:, :3])
    return X


X = customers(200_000, np.random.default_rng(7))

print("segments  inertia   Davies-Bouldin")
scores = {}
for k in range(4, 21, 2):
    model = make_pipeline(StandardScaler(), KMeans(k, n_init=5, random_state=0)).fit(X)
    kmeans, scaled = model[-1], model[0].transform(X)
    scores[k] = davies_bouldin_score(scaled, kmeans.labels_)
    print(f"{k:8d}  {kmeans.inertia_:8.0f}  {scores[k]:.3f}")

best = min(scores, key=scores.get)
model = make_pipeline(StandardScaler(), KMeans(best, n_init=10, random_state=0)).fit(X)
centers = model[0].inverse_transform(model[-1].cluster_centers_)
share = np.bincount(model[-1].labels_, minlength=best) / len(X)

print(f"\n{best} segments\n  share  " + "  ".join(f"{name:>9}" for name in FEATURES))
for i in np.argsort(-share):
    print(f"{share[i]:7.1%}  " + "  ".join(f"{value:9.2f}" for value in centers[i]))
