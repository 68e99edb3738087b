"""The pytest plugin that patches scikit-learn and keeps the record of each test."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conformance import select, xfail

LOGGER = logging.getLogger("fastml.dispatch")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("conformance")
    group.addoption("--patch", action="store_true", help="put fastml in scikit-learn's place")
    group.addoption("--replaced-only", action="store_true", help="skip generic tests of the rest")
    group.addoption("--outcomes", help="where to write the outcomes, as JSON")
    group.addoption("--stock-outcomes", help="those of scikit-learn alone")
    group.addoption("--xfail-list", help="tests that may fail, with reasons")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    # Before scikit-learn's conftest is loaded: the tables of its common tests are keyed by
    # class, and have to be filled with ours.
    if early_config.known_args_namespace.patch:
        import fastml

        fastml.patch_sklearn()


def identify(item: pytest.Item) -> str:
    """Name a test in a way that does not depend on where scikit-learn is installed."""
    return "::".join((item.module.__name__, *item.nodeid.split("::")[1:]))  # type: ignore[attr-defined]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    expected = _expected_failures(config, [identify(item) for item in items])
    for item in items:
        test = identify(item)
        if test in expected:
            reason, strict = expected[test]
            item.add_marker(pytest.mark.xfail(reason=reason, strict=strict))
    if config.getoption("replaced_only"):
        import fastml

        names = {name for _, name in fastml.replacements()}
        kept = [item for item in items if select.concerns(identify(item), names)]
        config.hook.pytest_deselected(items=[item for item in items if item not in set(kept)])
        items[:] = kept


def _expected_failures(config: pytest.Config, collected: list[str]) -> dict[str, tuple[str, bool]]:
    if not config.getoption("patch"):
        return {}
    listed = xfail.load(Path(config.getoption("xfail_list")))
    whole_modules = not any("::" in argument for argument in config.args)
    if whole_modules and (gone := xfail.stale(listed, collected)):
        raise pytest.UsageError(f"{len(gone)} stale entries in the xfail list: {gone}")
    stock = json.loads(Path(config.getoption("stock_outcomes")).read_text())
    failed = [test for test, (outcome, _) in stock.items() if outcome in ("failed", "error")]
    return {
        **dict.fromkeys(failed, ("fails with scikit-learn alone", False)),
        **{test: (reason, True) for test, reason in listed.items()},
    }


class _Tap(logging.Handler):
    """Counts native calls and fallbacks, without a trace in what the test sees of logging."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.native = self.fallback = 0

    def emit(self, record: Any) -> None:
        if record.native:
            self.native += 1
        else:
            self.fallback += 1

    def kind(self) -> str:
        if self.native:
            return "mixed" if self.fallback else "native"
        return "fallback" if self.fallback else "untouched"


_tap_key = pytest.StashKey[_Tap]()


def _tapped(item: pytest.Item) -> Iterator[None]:
    tap = item.stash.setdefault(_tap_key, _Tap())
    level, handlers, propagate = LOGGER.level, LOGGER.handlers, LOGGER.propagate
    LOGGER.handlers, LOGGER.propagate = [tap], False
    LOGGER.setLevel(logging.INFO)
    try:
        return (yield)
    finally:
        LOGGER.handlers, LOGGER.propagate = handlers, propagate
        LOGGER.setLevel(level)


# A fixture may be what fits, so the setup counts.
@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    return (yield from _tapped(item))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    return (yield from _tapped(item))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: Any) -> Iterator[None]:
    report: Any = yield
    tap = item.stash.get(_tap_key, None)
    report.conformance = (identify(item), tap.kind() if tap else "untouched")
    return report


_outcomes: dict[str, tuple[str, str]] = {}


def pytest_runtest_logreport(report: Any) -> None:
    test, kind = report.conformance
    if report.when == "call" or report.outcome != "passed":
        _outcomes[test] = (_outcome(report), kind)


def _outcome(report: Any) -> str:
    if hasattr(report, "wasxfail"):
        return "xfailed" if report.outcome == "skipped" else "xpassed"
    return "error" if report.failed and report.when != "call" else report.outcome


def pytest_sessionfinish(session: pytest.Session) -> None:
    path = session.config.getoption("outcomes")
    if path and not hasattr(session.config, "workerinput"):
        Path(path).write_text(json.dumps(_outcomes))
