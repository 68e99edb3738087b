"""The conformance command itself: it selects, classifies, and can fail."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import fastml
from conformance import select, xfail

TESTS = Path(__file__).parents[1]
K_MEANS = "sklearn.cluster.tests.test_k_means"
NAMES = {"KMeans", "MiniBatchKMeans", "k_means", "kmeans_plusplus"}

# A fastml whose KMeans numbers its clusters from 1, as a plugin for pytest.
BROKEN = """
import pytest

@pytest.hookimpl(trylast=True)
def pytest_load_initial_conftests(early_config):
    import sklearn.cluster
    if early_config.known_args_namespace.patch:
        predict = sklearn.cluster.KMeans.predict
        sklearn.cluster.KMeans.predict = lambda self, X: predict(self, X) + 1
"""


def command(*arguments, path=""):
    paths = [path, *(str(p) for p in (Path(fastml.__file__).parents[1], TESTS.parent))]
    done = subprocess.run(
        [sys.executable, "-m", "tests.conformance", *arguments],
        cwd=TESTS.parent,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_selection():
    modules = select.modules_of(NAMES)
    assert {K_MEANS, "sklearn.tests.test_common"} <= set(modules)
    assert "sklearn.svm.tests.test_svm" not in modules
    common = "sklearn.tests.test_common::test_estimators[{}(n_init=2)-check_fit2d_1sample]"
    assert select.concerns(common.format("KMeans"), NAMES)
    assert not select.concerns(common.format("SpectralClustering"), NAMES)
    assert select.concerns(f"{K_MEANS}::test_kmeans_verbose", NAMES)


def test_command_classifies(tmp_path):
    outcomes = tmp_path / "ours.json"
    which = "test_kmeans_copyx or test_is_same_clustering"
    code, output = command(K_MEANS, "--json", str(outcomes), "--", "-k", which)
    assert code == 0, output
    assert json.loads(outcomes.read_text()) == {
        f"{K_MEANS}::test_kmeans_copyx": ["passed", "native"],
        f"{K_MEANS}::test_is_same_clustering": ["passed", "untouched"],
    }
    assert "passed and native: 1 of the 1 passed" in output
    assert output.splitlines()[-1].strip("=").startswith(" 2 passed in ")


def test_command_fails_where_scikit_learn_passes(tmp_path):
    (tmp_path / "broken.py").write_text(BROKEN)
    pytest_options = ("--", "-p", "broken", "-k", "test_kmeans_predict and elkan")
    code, output = command(K_MEANS, *pytest_options, path=str(tmp_path))
    assert code == 1, output
    assert "passed -> failed" in output


def test_stale_expectations(tmp_path):
    listed = tmp_path / "xfail.toml"
    entry = '[[xfail]]\nreason = "r"\ncondition = "scikit-learn{}"\ntests = ["{}::test_gone"]\n'
    listed.write_text(entry.format(">=1", K_MEANS) + entry.format("<1", K_MEANS))
    expected = xfail.load(listed)
    assert expected == {f"{K_MEANS}::test_gone": "r"}
    assert xfail.stale(expected, [f"{K_MEANS}::test_there"]) == [f"{K_MEANS}::test_gone"]
    assert xfail.stale(expected, ["sklearn.svm.tests.test_svm::test_there"]) == []
    listed.write_text('[[xfail]]\ntests = ["a::b"]\n')
    with pytest.raises(pytest.UsageError, match="reason"):
        xfail.load(listed)
    listed.write_text(entry.format(">=1", K_MEANS))
    code, output = command(K_MEANS, "--xfail", str(listed), "--", "-k", "test_kmeans_copyx")
    assert code != 0
    assert "stale" in output


def test_unexpected_pass(tmp_path):
    listed = tmp_path / "xfail.toml"
    test = f"{K_MEANS}::test_kmeans_copyx"
    listed.write_text(f'[[xfail]]\nreason = "r"\ncondition = "numpy>=1"\ntests = ["{test}"]\n')
    code, output = command(K_MEANS, "--xfail", str(listed), "--", "-k", "test_kmeans_copyx")
    assert code == 1, output
    assert "XPASS(strict)" in output
    assert f"{test}: passed -> failed" in output
