"""Options of the test suite, and what it needs of its process."""

import signal

import pytest


def pytest_addoption(parser):
    parser.addoption("--slow", action="store_true", help="also run the exhaustive tests")


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: exhaustive; runs with --slow only")
    # A background job inherits from its shell that Ctrl-C is ignored; tests send it to themselves.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(config, items):
    if not config.getoption("--slow"):
        for item in items:
            if "slow" in item.keywords:
                item.add_marker(pytest.mark.skip(reason="needs --slow"))
