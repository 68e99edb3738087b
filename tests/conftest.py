"""Options of the test suite."""

import pytest


def pytest_addoption(parser):
    parser.addoption("--slow", action="store_true", help="also run the exhaustive tests")


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: exhaustive; runs with --slow only")


def pytest_collection_modifyitems(config, items):
    if not config.getoption("--slow"):
        for item in items:
            if "slow" in item.keywords:
                item.add_marker(pytest.mark.skip(reason="needs --slow"))
