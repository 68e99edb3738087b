"""Checks of functions' arguments: scikit-learn's, without what they cost."""

import inspect

import numpy as np
import pytest
import sklearn
from sklearn.metrics import pairwise as stock
from sklearn.utils._param_validation import Interval, InvalidParameterError, Real

from fastml._runtime.parameters import validate_params
from fastml.decomposition import PCA
from fastml.metrics.pairwise import rbf_kernel

X = np.arange(6.0).reshape(3, 2)


@pytest.mark.parametrize(
    "args, kwargs",
    [
        ((X,), {"gamma": -1.0}),
        ((X,), {"gamma": "scale"}),
        ((X, "rows"), {}),
        ((X, None, [1.0]), {}),
        ((3.0,), {}),
        ((), {}),
        ((X, X, 1.0, 2.0), {}),
        ((X,), {"X": X}),
        ((X,), {"other": 1}),
    ],
)
def test_errors_are_scikit_learns(args, kwargs):
    with pytest.raises((TypeError, ValueError)) as ours:
        rbf_kernel(*args, **kwargs)
    with pytest.raises((TypeError, ValueError)) as theirs:
        stock.rbf_kernel(*args, **kwargs)
    assert type(ours.value) is type(theirs.value)
    assert str(ours.value) == str(theirs.value)


def test_what_is_called_within_is_not_checked_again():
    def skips():
        return sklearn.get_config()["skip_parameter_validation"]

    @validate_params(
        {"x": [Interval(Real, 0, None, closed="left")]}, prefer_skip_nested_validation=True
    )
    def function(x, fail=False):
        if fail:
            raise KeyError("from within")
        return skips()

    assert function(1.0)
    assert not skips()
    with pytest.raises(KeyError):
        function(1.0, fail=True)
    assert not skips()
    with pytest.raises(InvalidParameterError, match=r"'x' parameter of .*function must be"):
        function(-1.0)
    with sklearn.config_context(skip_parameter_validation=True):
        assert function(-1.0)
        assert skips()


def test_signature_and_constraints_are_kept():
    assert str(inspect.signature(rbf_kernel)) == str(inspect.signature(stock.rbf_kernel))
    assert rbf_kernel.__wrapped__._skl_parameter_constraints.keys() == {"X", "Y", "gamma"}


def test_what_was_valid_once_is_checked_again_when_it_changes():
    X = np.random.default_rng(0).normal(size=(20, 3))
    model = PCA(2).fit(X)
    assert model.fit(X).n_components_ == 2
    for wrong in (-1, "two", 2.5 + 1j):
        with pytest.raises(InvalidParameterError, match="'n_components' parameter of PCA must be"):
            model.set_params(n_components=wrong).fit(X)
    with pytest.raises(InvalidParameterError, match="'whiten' parameter of PCA must be"):
        PCA(2, whiten=1).fit(X)  # equal to True, which is valid

    class Narrow(PCA):
        _parameter_constraints = PCA._parameter_constraints | {"n_components": [None]}

    model.set_params(n_components=2).fit(X)
    with pytest.raises(InvalidParameterError, match="'n_components' parameter of Narrow must be"):
        Narrow(2).fit(X)
