"""Fitting in forked and spawned processes, whatever the parent did or is doing."""

import os
import threading

import pytest

from suites.harness import assert_equal, in_child, map_in_pool
from suites.registry import LARGE, SUBJECTS, data

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]
each_subject = pytest.mark.parametrize("subject", SUBJECTS, ids=str)


@each_subject
def test_fit_fork_fit(subject):
    X = data(*LARGE)
    expected = subject.run_large(X)
    assert_equal(in_child(lambda: subject.run_large(X)), expected)
    assert_equal(subject.run_large(X), expected)


@each_subject
def test_grandchild(subject):
    X = data(*LARGE)
    expected = subject.run_large(X)

    def child():
        assert_equal(subject.run_large(X), expected)
        return in_child(lambda: subject.run_large(X))

    assert_equal(in_child(child), expected)


@each_subject
def test_fork_during_a_fit(subject):
    X = data(*LARGE)
    expected = subject.run_large(X)
    stop = threading.Event()

    def keep_fitting():
        while not stop.is_set():
            subject.run_large(X)

    thread = threading.Thread(target=keep_fitting)
    thread.start()
    try:
        for _ in range(5):
            assert_equal(in_child(lambda: subject.run_large(X)), expected)
    finally:
        stop.set()
        thread.join()


@each_subject
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_multiprocessing(subject, method):
    expected = subject.run(data())
    for got in map_in_pool(method, subject.name):
        assert_equal(got, expected)
