"""Ctrl-C ends a fit within half a second and leaves the process usable."""

import os
import signal
import sys
import threading
import time

import pytest

from suites.harness import Since, assert_equal
from suites.registry import SUBJECTS, data

CASES = [
    pytest.param(subject, params, id=f"{subject}-{i}")
    for subject in SUBJECTS
    for i, params in enumerate(subject.long)
]


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT to a thread on Windows")
@pytest.mark.parametrize("after", [0.02, 0.7])
@pytest.mark.parametrize(("subject", "params"), CASES)
def test_interrupt(subject, params, after):
    small = data()
    expected = subject.run(small)
    X = data(*subject.long_shape)
    sent = []

    def interrupt():
        time.sleep(after)
        sent.append(Since())
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    try:
        thread.start()
        subject.run(X, **params)
        thread.join()
        pytest.fail("the fit ended before Ctrl-C, or in spite of it")
    except KeyboardInterrupt:
        sent[0].assert_within(0.5)
    thread.join()
    assert_equal(subject.run(small), expected)
