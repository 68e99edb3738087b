import faulthandler
import sys

import pytest

from suites.harness import PATIENCE

HANG = 300 * PATIENCE


@pytest.fixture(autouse=True)
def no_hang():
    """A test that hangs in native code ends the run, and the traceback says where."""
    faulthandler.dump_traceback_later(HANG, exit=True, file=sys.__stderr__)
    yield
    faulthandler.cancel_dump_traceback_later()
