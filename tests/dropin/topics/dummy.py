"""A topic of fastml's for the tests: it stands on no kernel, and has a path that falls back."""

import sklearn.dummy

from fastml._runtime.dispatch import Unsupported, accelerated
from fastml._runtime.modules import fall_through
from fastml._runtime.versioned import Versioned

__all__ = ["DummyClassifier", "Oracle"]


def _unless(self, X, y=None, sample_weight=None):
    if self.strategy == "uniform":
        return Unsupported("strategy='uniform'", "draws are not compiled", "use strategy='prior'")
    return None


class DummyClassifier(Versioned, sklearn.dummy.DummyClassifier):
    @accelerated(unless=_unless)
    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        self._fastml_cache = "ours alone"
        return self

    @accelerated
    def predict(self, X):
        return super().predict(X)


class Oracle(sklearn.dummy.DummyClassifier):
    """An estimator that scikit-learn has not."""


fall_through(__name__)
