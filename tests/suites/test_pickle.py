"""Models survive every way of copying them, and parameters every way of cloning."""

import copy
import pickle

import joblib
import numpy as np
import pytest
from sklearn.base import clone

from suites.harness import assert_equal
from suites.registry import ESTIMATORS, data, outcome


def _pickle(model, tmp_path):
    for protocol in range(pickle.HIGHEST_PROTOCOL):
        pickle.loads(pickle.dumps(model, protocol))
    return pickle.loads(pickle.dumps(model))


def _joblib(model, tmp_path):
    joblib.dump(model, tmp_path / "model.joblib", compress=3)
    return joblib.load(tmp_path / "model.joblib")


def _joblib_mmap(model, tmp_path):
    joblib.dump(model, tmp_path / "model.joblib")
    return joblib.load(tmp_path / "model.joblib", mmap_mode="r")


def _cloudpickle(model, tmp_path):
    cloudpickle = pytest.importorskip("cloudpickle")
    return cloudpickle.loads(cloudpickle.dumps(model))


def _skops(model, tmp_path):
    skops = pytest.importorskip("skops.io")
    stored = skops.dumps(model)
    untrusted = skops.get_untrusted_types(data=stored)
    stock = {  # scikit-learn's models have them too
        "scipy.sparse._csr.csr_matrix",
        "sklearn.cluster._bisect_k_means._BisectingTree",
        "sklearn.metrics._dist_metrics.EuclideanDistance64",
        "sklearn.neighbors._kd_tree.KDTree",
    }
    assert all(name.startswith("fastml.") or name in stock for name in untrusted), untrusted
    return skops.loads(stored, trusted=untrusted)


def _deepcopy(model, tmp_path):
    return copy.deepcopy(model)


def _copy(model, tmp_path):
    return copy.copy(model)


@pytest.mark.parametrize(
    "duplicate", [_pickle, _joblib, _joblib_mmap, _cloudpickle, _skops, _deepcopy, _copy]
)
@pytest.mark.parametrize("fitted", [True, False], ids=["fitted", "unfitted"])
@pytest.mark.parametrize("subject", ESTIMATORS, ids=str)
def test_round_trip(subject, duplicate, fitted, tmp_path):
    X = data(dtype=np.float32)
    model = subject.make()
    fitted_model = subject.make().fit(X)
    twin = duplicate(fitted_model if fitted else model, tmp_path)
    assert type(twin) is subject.native()
    assert repr(twin.get_params()) == repr(model.get_params())
    if not fitted:
        twin.fit(X)
    assert_equal(outcome(twin, X), outcome(fitted_model, X))


@pytest.mark.parametrize("subject", ESTIMATORS, ids=str)
def test_clone_of_a_fitted_model_is_unfitted(subject):
    model = subject.make().fit(data())
    twin = clone(model)
    assert type(twin) is subject.native()
    assert not [name for name in vars(twin) if name.endswith("_")]
