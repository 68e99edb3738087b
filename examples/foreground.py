"""Tell what moves in a video from what stays.

The video is made up: a scene under a light that changes, two discs that cross it, and noise. Frame
after frame as the rows of a matrix, the scene alone is of rank 1: one picture, times how bright it
is. So the best fit of rank 1 to all of it, the first singular vectors, is the background, and what
is left is the foreground. The mean of the frames must not be taken away first: it would leave the
changes of the light in the foreground. Draws foreground.png if matplotlib is installed.
"""

import numpy as np

from fastml.decomposition import TruncatedSVD

FRAMES, HEIGHT, WIDTH, NOISE = 400, 90, 120, 0.02


def video(rng):
    """Frames (one a row), which of their pixels are discs, and the scene without them."""
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    scene = 0.35 + 0.25 * np.sin(x / 9) * np.cos(y / 14) + 0.2 * (y > 60) + 0.15 * (x % 40 < 4)
    time = np.linspace(0, 1, FRAMES)[:, None, None]
    light = 1 + 0.35 * np.sin(7 * time)
    behind = light * scene
    discs = np.zeros((FRAMES, HEIGHT, WIDTH), bool)
    for radius, height, speed in ((9, 30, 2.3), (6, 65, -3.1)):
        middle = (speed * time * WIDTH + rng.uniform(0, WIDTH)) % WIDTH
        discs |= (x - middle) ** 2 + (y - height - 8 * np.sin(9 * time)) ** 2 < radius**2
    frames = np.where(discs, 0.95, behind) + NOISE * rng.normal(size=discs.shape)
    return tuple(a.reshape(FRAMES, -1) for a in (frames.astype(np.float32), discs, behind))


def f1(found, true):
    return 2 * (found & true).sum() / (found.sum() + true.sum())


frames, discs, behind = video(np.random.default_rng(0))
svd = TruncatedSVD(1, algorithm="power", tol=1e-6, random_state=0)
background = svd.inverse_transform(svd.fit_transform(frames))
foreground = frames - background
found = abs(foreground) > 0.15
less_mean = frames - frames.mean(axis=0)

error = np.sqrt(np.mean((background - behind)[~discs] ** 2))
print(f"{FRAMES} frames of {HEIGHT} x {WIDTH}; the first singular value holds")
print(f"{svd.singular_values_[0] ** 2 / np.sum(frames.astype(float) ** 2):.1%} of their squares")
print(f"background: off by {error:.3f}, under noise of {NOISE}")
print(f"discs: F1 {f1(found, discs):.3f}")
print(f"less the mean frame instead: F1 {f1(abs(less_mean) > 0.15, discs):.3f}")

try:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt
except ImportError:
    print("install matplotlib to see them")
else:
    shown = [40, 190, 330]
    gray = {"vmin": 0, "vmax": 1.2, "cmap": "gray"}
    change = {"vmin": -0.6, "vmax": 0.6, "cmap": "RdBu"}
    rows = (
        ("video", frames, gray),
        ("background", background, gray),
        ("foreground", foreground, change),
        ("less the mean", less_mean, change),
    )
    figure, axes = plt.subplots(len(rows), len(shown), figsize=(9, 9), sharex=True, sharey=True)
    for line, (name, pictures, colours) in zip(axes, rows, strict=True):
        line[0].set_ylabel(name)
        for axis, i in zip(line, shown, strict=True):
            axis.imshow(pictures[i].reshape(HEIGHT, WIDTH), **colours)
            axis.set(xticks=[], yticks=[])
    figure.tight_layout()
    figure.savefig("foreground.png", dpi=110)
    print("foreground.png")
