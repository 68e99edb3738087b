"""Options of the test suite."""

import pytest


def pytest_addoption(parser):
    parser.addoption("--long", action="store_true", help="also run the exhaustive tests")


def pytest_configure(config):
    config.addinivalue_line("markers", "long: exhaustive; runs with --long only")


def pytest_collection_modifyitems(config, items):
    if not config.getoption("--long"):
        for item in items:
            if "long" in item.keywords:
                item.add_marker(pytest.mark.skip(reason="needs --long"))
