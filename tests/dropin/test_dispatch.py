import inspect
import logging
import pickle
import threading
import timeit
from typing import ClassVar

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone

import fastml
from fastml._runtime import dispatch
from fastml._runtime.dispatch import NotAcceleratedError, Unsupported, accelerated


class Stock(TransformerMixin, BaseEstimator):
    def __init__(self, mode="plain"):
        self.mode = mode

    def fit(self, X, y=None):
        self.by_ = "stock"
        return self

    def transform(self, X):
        return np.asarray(X) + 1.0

    def fit_transform(self, X, y=None):
        return self.fit(X).transform(X)

    def get_feature_names_out(self, names=None):
        return ["a"]


def _unless(self, X, y=None):
    if self.mode == "odd":
        return Unsupported("mode='odd'", "odd modes are not compiled", "use mode='plain'")
    return None


class Ours(Stock):
    @accelerated(unless=_unless)
    def fit(self, X, y=None):
        """Fit it."""
        self.by_ = "ours"
        if self.mode == "broken":
            raise ZeroDivisionError
        return self

    @accelerated
    def transform(self, X):
        return super().transform(X)

    @accelerated
    def fit_transform(self, X, y=None):
        return super().fit_transform(X)


class Child(Ours):
    def fit(self, X, y=None):
        return super().fit(X, y)


def _stock_add(a, b):
    return "stock"


@accelerated(
    unless=lambda a, b: Unsupported("b", "b is negative", "use b >= 0") if b < 0 else None,
    stock=_stock_add,
)
def add(a, b):
    return a + b


X = np.zeros((2, 1))


@pytest.fixture
def messages(caplog):
    caplog.set_level(logging.INFO, logger="fastml.dispatch")
    return lambda: [record.getMessage() for record in caplog.records]


def test_native_and_fallback_are_recorded(messages, caplog):
    assert Ours().fit(X).by_ == "ours"
    assert Ours("odd").fit(X).by_ == "stock"
    assert messages() == [
        "Ours.fit: native",
        "Ours.fit: scikit-learn (odd modes are not compiled)",
    ]
    native, fallback = caplog.records
    assert (native.estimator, native.method, native.native, native.reason) == (
        "Ours",
        "fit",
        True,
        None,
    )
    assert not fallback.native
    assert fallback.reason == "odd modes are not compiled"
    assert 0 <= fallback.seconds < 1


def test_a_call_within_a_call_belongs_to_it(messages):
    Ours().fit_transform(X)
    Ours("odd").fit_transform(X)
    assert messages() == [
        "Ours.fit_transform: native",
        "Ours.fit_transform: scikit-learn (odd modes are not compiled)",
    ]


def test_other_instances_have_records_of_their_own(messages):
    class Meta(Ours):
        @accelerated
        def fit(self, X, y=None):
            Ours().fit(X)
            return self

    Meta().fit(X)
    assert messages() == ["Ours.fit: native", "Meta.fit: native"]


def test_inheritance_names_the_class_of_the_instance(messages):
    assert Child("odd").fit(X).by_ == "stock"
    assert messages() == ["Child.fit: scikit-learn (odd modes are not compiled)"]


def test_wrapped_again_by_set_output(messages):
    class Refusing(Ours):
        @accelerated(unless=lambda self, X: Unsupported("X", "no", "do not"))
        def transform(self, X):
            raise AssertionError("not to be called")

    pytest.importorskip("pandas")
    out = Refusing().set_output(transform="pandas").fit(X).transform(X)
    assert list(out.columns) == ["a"]
    assert out.iloc[0, 0] == 1
    assert messages()[-1] == "Refusing.transform: scikit-learn (no)"


def test_a_call_that_fails_is_recorded(messages):
    with pytest.raises(ZeroDivisionError):
        Ours("broken").fit(X)
    assert messages() == ["Ours.fit: native"]
    Ours().fit_transform(X)  # and leaves nothing in flight
    assert messages()[1:] == ["Ours.fit_transform: native"]


def test_functions(messages):
    assert add(1, b=2) == 3
    assert add(1, -2) == "stock"
    assert messages() == ["add: native", "add: scikit-learn (b is negative)"]
    with pytest.raises(TypeError, match="needs stock="):

        @accelerated(unless=lambda: None)
        def incomplete():
            pass


def test_nothing_to_fall_back_to():
    class Alone(BaseEstimator):
        @accelerated(unless=lambda self: Unsupported("all", "never", "nothing"))
        def fit(self):
            pass

    with pytest.raises(TypeError, match=r"Alone\.fit overrides nothing"):
        Alone().fit()


def test_strict_mode_names_parameter_reason_and_remedy(messages):
    with (
        fastml.config_context(strict=True),
        pytest.raises(NotAcceleratedError, match=r"Ours\.fit .*mode='odd'.*not compiled.*plain"),
    ):
        Ours("odd").fit(X)
    with fastml.config_context(strict=True), pytest.raises(NotAcceleratedError, match="add"):
        add(1, -1)
    assert messages() == []
    with fastml.config_context(strict=True):
        assert Ours().fit(X).by_ == "ours"


def test_error_crosses_processes():
    error = pickle.loads(pickle.dumps(NotAcceleratedError("K.fit", "p", "because", "do this")))
    assert error.parameter == "p"
    assert "do this" in str(error)
    assert fastml.NotAcceleratedError is NotAcceleratedError


def test_looks_like_the_method():
    assert Ours.fit.__doc__ == "Fit it."
    assert list(inspect.signature(Ours.fit).parameters) == ["self", "X", "y"]
    assert clone(Ours("odd")).mode == "odd"
    assert pickle.loads(pickle.dumps(Ours().fit(X))).by_ == "ours"


def test_fit_context_within(messages):
    from sklearn.base import _fit_context

    class Validated(Ours):
        _parameter_constraints: ClassVar = {"mode": [str]}

        @accelerated
        @_fit_context(prefer_skip_nested_validation=True)
        def fit(self, X, y=None):
            return self

    Validated().fit(X)
    with pytest.raises(ValueError, match="'mode' parameter of Validated"):
        Validated(3).fit(X)
    assert messages() == ["Validated.fit: native"] * 2


def test_threads_do_not_share_calls_in_flight(messages):
    shared = Ours()
    barrier = threading.Barrier(4)

    class Waiting(Ours):
        @accelerated
        def fit(self, X, y=None):
            barrier.wait(10)
            return self

    shared = Waiting()
    threads = [threading.Thread(target=shared.fit, args=(X,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert messages() == ["Waiting.fit: native"] * 4


def test_overhead_when_nobody_listens():
    class Empty(Stock):
        def plain(self, X):
            return X

        @accelerated(unless=lambda self, X: None)
        def marked(self, X):
            return X

    empty, n = Empty(), 20_000
    plain = min(timeit.repeat(lambda: empty.plain(1), number=n, repeat=7))
    marked = min(timeit.repeat(lambda: empty.marked(1), number=n, repeat=7))
    overhead = (marked - plain) / n
    assert overhead < 3e-6, f"{overhead:.2e} s a call"  # 1.5 µs, with room for a busy machine


def test_collector_sees_calls_without_the_logger(monkeypatch):
    calls = []
    monkeypatch.setattr(dispatch, "_collectors", (calls.append,))
    Ours("odd").fit_transform(X)
    (call,) = calls
    assert (call.label, call.native, call.instance) == ("Ours.fit_transform", False, None)
