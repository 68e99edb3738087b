"""Paint a picture with 64 colours instead of all of them.

This is plain scikit-learn: it does not know that fastml exists.
"""

import numpy as np
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.metrics import pairwise_distances_argmin


def picture(height=720, width=1080):
    """A sunset over the sea, float32 colours between 0 and 1."""
    rng = np.random.default_rng(3)
    y, x = np.mgrid[0 : 1 : height * 1j, 0 : 1 : width * 1j]
    sun = np.exp(-40 * ((x - 0.65) ** 2 + (y - 0.45) ** 2))
    waves = 0.1 * np.sin(60 * x + 200 * y**2) * (y > 0.55)
    red = 0.9 - 0.5 * y + sun + waves
    green = 0.3 + 0.3 * y + 0.8 * sun + waves
    blue = 0.2 + 0.6 * y + 0.3 * sun - waves
    image = np.stack([red, green, blue], axis=-1) + 0.02 * rng.normal(size=(height, width, 3))
    return np.clip(image, 0, 1).astype(np.float32)


pixels = picture().reshape(-1, 3)

for estimator in (
    KMeans(64, n_init=3, random_state=0),
    MiniBatchKMeans(64, n_init=3, batch_size=4096, random_state=0),
):
    palette = estimator.fit(pixels).cluster_centers_
    painted = palette[estimator.predict(pixels)]
    error = np.sqrt(np.mean((painted - pixels) ** 2))
    print(f"{type(estimator).__name__}: root mean square error {error:.4f}")

random = pixels[np.random.default_rng(0).choice(len(pixels), 64, replace=False)]
painted = random[pairwise_distances_argmin(pixels, random)]
print(f"64 random pixels: root mean square error {np.sqrt(np.mean((painted - pixels) ** 2)):.4f}")
