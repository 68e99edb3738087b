import json
import os
import signal
import subprocess
import sys

import pytest

GUESS = "from sklearn.dummy import DummyClassifier as D; print(D.__module__)"

SCRIPT = """
import sys
print(__name__, __file__, sys.argv, sys.path[0], len(sys.warnoptions), __spec__)
from sklearn.dummy import DummyClassifier as D
print(D.__module__)
"""


@pytest.fixture
def script(tmp_path):
    def write(text, name="script.py"):
        (tmp_path / name).write_text(text)
        return tmp_path

    return write


def test_a_script_sees_what_it_sees_without_fastml(run, script):
    folder = script(SCRIPT)
    stock = run("-Wignore", "script.py", "-m", "--strict", cwd=folder)
    ours = run("-Wignore", "-m", "fastml", "script.py", "-m", "--strict", cwd=folder)
    assert stock.returncode == ours.returncode == 0, ours.stderr
    assert stock.stdout.splitlines()[0] == ours.stdout.splitlines()[0]
    assert stock.stdout.splitlines()[1] == "sklearn.dummy"
    assert ours.stdout.splitlines()[1] == "fastml.dummy"


def test_module_and_code(run, script):
    folder = script(SCRIPT)
    assert "fastml.dummy" in run("-m", "fastml", "-m", "script", "a", cwd=folder).stdout
    assert run("-m", "fastml", "-c" + GUESS).stdout == "fastml.dummy\n"


@pytest.mark.parametrize(
    "code",
    ["import sys; sys.exit(3)", "raise SystemExit('why')", "def f():\n    1 / 0\nf()"],
)
def test_exits_and_tracebacks_are_pythons(run, script, code):
    folder = script(code)
    stock, ours = run("script.py", cwd=folder), run("-m", "fastml", "script.py", cwd=folder)
    assert stock.returncode == ours.returncode != 0
    assert (stock.stdout, stock.stderr) == (ours.stdout, ours.stderr)


@pytest.mark.skipif(os.name == "nt", reason="sends a POSIX signal")
def test_keyboard_interrupt(tmp_path):
    code = "import time\nprint('ready', flush=True)\ntime.sleep(30)"
    command = [sys.executable, "-m", "fastml", "-c", code]
    with subprocess.Popen(
        command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=10)
    assert process.returncode == -signal.SIGINT
    assert "KeyboardInterrupt" in err


UNIFORM = "from sklearn.dummy import DummyClassifier as D; D(strategy='uniform').fit([[0]], [1])"


def test_strict(run):
    result = run("-m", "fastml", "--strict", "-c", UNIFORM)
    assert result.returncode == 1
    assert "NotAcceleratedError: DummyClassifier.fit cannot run natively" in result.stderr
    assert run("-m", "fastml", "-c", UNIFORM).returncode == 0


def test_verbose(run):
    result = run("-m", "fastml", "--verbose", "-c", UNIFORM)
    assert result.stderr.startswith(
        "[fastml] DummyClassifier.fit: scikit-learn (draws are not compiled), 0.0"
    )


def test_only(run):
    assert run("-m", "fastml", "--only", "dummy", "-c", GUESS).stdout == "fastml.dummy\n"
    result = run("-m", "fastml", "--only=Dumy", "-c", GUESS)
    assert result.returncode == 2
    assert "fastml: error: fastml replaces nothing called 'Dumy'" in result.stderr


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["-m", "fastml"], "nothing to run"),
        (["-m", "fastml", "--nonsense", "x.py"], "unrecognized arguments: --nonsense"),
        (["-E", "-m", "fastml", "-c", "1"], "-E, -I and -S keep fastml from starting"),
    ],
)
def test_bad_command_lines(args, message):
    result = subprocess.run([sys.executable, *args], capture_output=True, text=True)
    assert result.returncode == 2
    assert message in result.stderr


def test_the_original_folder_need_not_hold_fastml(script):
    # As in a checkout: found because Python starts there, and not from the script's place.
    import fastml

    root = os.path.dirname(os.path.dirname(fastml.__file__))
    folder = script("import fastml, sklearn.cluster; print(fastml.__path__)")
    result = subprocess.run(
        [sys.executable, "-m", "fastml", str(folder / "script.py")],
        cwd=root,
        env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
        capture_output=True,
        text=True,
    )
    assert root in result.stdout, result.stderr


def test_another_python_is_left_alone(run):
    hook = os.path.join(os.path.dirname(os.path.dirname(__file__)), "nowhere")
    from fastml._runtime.children import HOOK

    env = {"FASTML_PATCH": "*", "FASTML_PYTHON": "cpython-27:/usr"}
    path = os.pathsep.join([HOOK, hook, os.path.join(os.path.dirname(__file__), "topics")])
    result = run("-c", GUESS, env=env | {"PYTHONPATH": path})
    assert "fastml.dummy" not in result.stdout


FAMILY = """
import multiprocessing, subprocess, sys
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import GridSearchCV

def work(i):
    from sklearn.dummy import DummyClassifier
    DummyClassifier().fit([[0]], [1]).predict([[0]])
    return DummyClassifier.__module__

if __name__ == "__main__":
    for kind in sys.argv[1:]:
        with multiprocessing.get_context(kind).Pool(1) as pool:
            assert pool.map(work, [1, 2]) == ["fastml.dummy"] * 2, kind
    code = "from sklearn.dummy import DummyClassifier as D; D(strategy='uniform').fit([[0]], [1])"
    subprocess.run([sys.executable, "-c", code], check=True)
    GridSearchCV(DummyClassifier(), {"strategy": ["prior", "uniform"]}, n_jobs=2, cv=2).fit(
        [[0], [1], [2], [3]], [0, 1, 0, 1]
    )
"""


def test_profile_counts_all_processes(run, script):
    kinds = ["fork", "spawn", "forkserver"] if os.name != "nt" else ["spawn"]
    folder = script(FAMILY)
    result = run("-m", "fastml", "--profile=out.json", "script.py", *kinds, cwd=folder)
    assert result.returncode == 0, result.stderr
    profile = json.loads((folder / "out.json").read_text())
    rows = {(row["estimator"], row["method"]): row for row in profile["methods"]}
    fit, predict = rows["DummyClassifier", "fit"], rows["DummyClassifier", "predict"]
    # Pools, the subprocess, then 2 × 2 fits of the search and its refit.
    n = 2 * len(kinds)
    assert fit["calls"] == n + 1 + 5
    assert fit["native_calls"] + sum(fit["reasons"].values()) == fit["calls"]
    assert list(fit["reasons"]) == ["draws are not compiled"]
    assert predict["calls"] == predict["native_calls"] == n + 4
    assert 0 < fit["native_seconds"] < fit["seconds"] < profile["seconds"]
    assert profile["processes"] > len(kinds) + 1
    assert profile["command"] == ["script.py", *kinds]
    table = result.stderr.splitlines()
    assert any(line.startswith("DummyClassifier.predict") and "100 %" in line for line in table)
    assert "draws are not compiled (×" in result.stderr


def test_profile_of_a_script_that_fails(run):
    result = run("-m", "fastml", "--profile", "-c", UNIFORM + "; 1 / 0")
    assert result.returncode == 1
    _, table = result.stderr.split("ZeroDivisionError: division by zero")
    assert "DummyClassifier.fit" in table
    assert "0 %" in table
    result = run("-m", "fastml", "--profile", "-c", "pass")
    assert "No call reached anything" in result.stderr


def test_info():
    pytest.importorskip("fastml._native.runtime")
    result = subprocess.run(
        [sys.executable, "-m", "fastml", "info"], capture_output=True, text=True, check=True
    )
    for word in ("instruction set", "threads", "scikit-learn", "openblas", "platform"):
        assert word in result.stdout
