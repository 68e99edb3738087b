import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import fastml
from fastml._runtime import modules, patching

TOPICS = str(Path(__file__).parent / "topics")
ROOT = str(Path(fastml.__file__).parents[1])


@pytest.fixture
def topic():
    """The module fastml.dummy of the folder `topics`, which fastml has for the test alone."""
    before = {key: entry for key, entry in modules.register.items() if key[0] == "sklearn.dummy"}
    hidden = sys.modules.pop("fastml.dummy", None)
    fastml.__path__.insert(0, TOPICS)
    yield import_module("fastml.dummy")
    fastml.unpatch_sklearn()
    assert not patching._requests
    fastml.__path__.remove(TOPICS)
    for key in [key for key in modules.register if key[0] == "sklearn.dummy"]:
        del modules.register[key]
    modules.register.update(before)
    del sys.modules["fastml.dummy"]
    vars(fastml).pop("dummy", None)
    if hidden is not None:
        sys.modules["fastml.dummy"] = fastml.dummy = hidden


@pytest.fixture
def run():
    """Run Python in a new process that has the topics of the folder `topics`."""

    def run(*args, code=None, cwd=None, env=(), timeout=60):
        variables = {k: v for k, v in os.environ.items() if not k.startswith("FASTML_")}
        variables |= {"PYTHONPATH": os.pathsep.join([TOPICS, ROOT])}
        command = [sys.executable, *args, *(() if code is None else ("-c", code))]
        return subprocess.run(
            command,
            env=variables | dict(env),
            cwd=cwd,
            text=True,
            capture_output=True,
            timeout=timeout,
        )

    return run
