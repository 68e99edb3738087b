import threading

import pytest
import sklearn
from sklearn.utils.parallel import Parallel, delayed

import fastml
from fastml._runtime import config


def read(name):
    return config.get(name)


@pytest.fixture(autouse=True)
def same_afterwards():
    with fastml.config_context():
        yield


def test_defaults():
    assert fastml.get_config()["strict"] is False
    assert fastml.get_config()["threads"] is None


def test_options_of_both_kinds_are_set_and_restored():
    with fastml.config_context(strict=True, threads=1, assume_finite=True):
        assert config.get("strict")
        assert config.get("threads") == 1
        assert sklearn.get_config()["assume_finite"]
        assert fastml.get_config()["assume_finite"]
        with fastml.config_context(threads=None):
            assert config.get("threads") is None
            assert config.get("strict")
        assert config.get("threads") == 1
    assert not config.get("strict")
    assert not sklearn.get_config()["assume_finite"]


def test_restored_after_an_error():
    with pytest.raises(ZeroDivisionError), fastml.config_context(strict=True, working_memory=7):
        raise ZeroDivisionError
    assert not config.get("strict")
    assert sklearn.get_config()["working_memory"] != 7


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"strict": 1}, TypeError),
        ({"threads": 1.5}, TypeError),
        ({"threads": True}, TypeError),
        ({"threads": 0}, ValueError),
        ({"nonsense": 1}, TypeError),
    ],
)
def test_bad_options(options, error):
    before = fastml.get_config()
    with pytest.raises(error):
        fastml.set_config(**options)
    assert fastml.get_config() == before


def test_the_dict_is_a_copy():
    fastml.get_config()["strict"] = True
    assert not config.get("strict")


def test_threads_start_from_the_defaults():
    seen = []
    with fastml.config_context(strict=True):
        thread = threading.Thread(target=lambda: seen.append(config.get("strict")))
        thread.start()
        thread.join()
    assert seen == [False]


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_parallel_hands_options_to_workers(backend):
    with fastml.config_context(threads=3, strict=True):
        jobs = (delayed(read)(name) for name in ("threads", "strict", "threads"))
        assert Parallel(n_jobs=2, backend=backend)(jobs) == [3, True, 3]
    jobs = (delayed(read)("threads") for _ in range(2))
    assert Parallel(n_jobs=2, backend=backend)(jobs) == [None, None]


@pytest.mark.parametrize(("value", "strict"), [("1", True), ("off", False), ("", False)])
def test_environment(monkeypatch, value, strict):
    monkeypatch.setenv("FASTML_STRICT", value)
    assert config._flag("FASTML_STRICT") is strict


def test_bad_environment(monkeypatch):
    monkeypatch.setenv("FASTML_STRICT", "maybe")
    with pytest.raises(ValueError, match="FASTML_STRICT must be 0 or 1, not 'maybe'"):
        config._flag("FASTML_STRICT")
