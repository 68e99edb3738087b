"""Forks wait for threads that are in BLAS."""

import os
import threading
import time

import pytest

from fastml._runtime.forks import unforked
from tests.suites.harness import in_child

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")


def in_section(entered, leave):
    with unforked():
        entered.set()
        leave.wait()


def test_a_fork_waits_for_sections_of_other_threads():
    entered, leave = threading.Event(), threading.Event()
    thread = threading.Thread(target=in_section, args=(entered, leave))
    thread.start()
    entered.wait()
    threading.Timer(0.2, leave.set).start()
    began = time.perf_counter()
    assert in_child(lambda: 1) == 1
    assert time.perf_counter() - began > 0.15
    thread.join()


def test_a_thread_in_a_section_may_fork_and_enter_others():
    @unforked()
    def nested():
        return in_child(lambda: unforked()(lambda: 2)())

    with unforked():
        assert nested() == 2
    assert in_child(lambda: 3) == 3


def test_sections_wait_for_a_fork_to_come_first():
    """Two threads that are hardly ever both outside do not keep a fork from happening."""
    stop = threading.Event()

    def busy():
        while not stop.is_set():
            with unforked():
                time.sleep(0.01)

    threads = [threading.Thread(target=busy) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(5):
            assert in_child(lambda: 4, timeout=10) == 4
    finally:
        stop.set()
        for thread in threads:
            thread.join()
