"""Runs what the README and the guide show, and builds the kernel that CONTRIBUTING adds."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import NamedTuple

import pytest

import fastml

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(
    r"^(?P<fence>```|:::)(?P<language>\S*)[^\n]*\n(?P<text>.*?)^(?P=fence)$", re.M | re.S
)

# Blocks in these languages are not run here. Those of CONTRIBUTING are built by its own test.
NOT_RUN = {"text", "cpp", "cython", "{toctree}", "{eval-rst}", "{include}"}
# Setting up an environment is the business of `.ci/run`; here the files must exist.
NOT_CHEAP = re.compile(r"pip install|-m pytest|-m build|pre-commit|\.ci/|tests\.conformance")


class Block(NamedTuple):
    language: str
    line: int  # of its first line
    text: str


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(m["language"], text.count("\n", 0, m.start()) + 2, m["text"])
        for m in FENCE.finditer(text)
    ]


def commands(page: Path) -> list[str]:
    lines = "".join(b.text for b in blocks(page) if b.language == "console").splitlines()
    return [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]


def run(command: list[str], folder: Path, **environment: str) -> None:
    """Run a command in a process of its own: examples patch modules and set options."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"


def pages_with(language: str) -> list[object]:
    return [
        pytest.param(page, id=page.stem)
        for page in PAGES
        if any(block.language == language for block in blocks(page))
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_block_is_of_a_kind_that_is_tested(page):
    assert {block.language for block in blocks(page)} <= NOT_RUN | {"python", "console"}


@pytest.mark.parametrize("page", [p for p in pages_with("python") if p.id != "CONTRIBUTING"])
def test_python_blocks_run_in_order(page, tmp_path):
    source = ""
    for block in blocks(page):
        if block.language == "python":
            # On the line that it has in the page, so that a traceback leads there.
            source += "\n" * (block.line - 1 - source.count("\n")) + block.text
    file = tmp_path / page.with_suffix(".py").name
    file.write_text(source, encoding="utf-8")
    run([sys.executable, str(file)], tmp_path)


@pytest.mark.parametrize("page", pages_with("console"))
def test_commands(page, tmp_path):
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    scripts = [b.text for b in blocks(page) if b.text.startswith("# script.py")]
    for script in scripts:
        (tmp_path / "script.py").write_text(script, encoding="utf-8")
    # `python` and `fastml` are those of this interpreter, installed or not.
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    for name, module in {"python": "", "fastml": "-m fastml"}.items():
        (bin_ / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {module} "$@"\n')
        (bin_ / name).chmod(0o755)
    for command in commands(page):
        if NOT_CHEAP.search(command):
            for file in re.findall(r"(?:examples|\.ci|tests|benchmarks)/[\w./-]+", command):
                assert (ROOT / file).exists(), f"{command}: there is no {file}"
        else:
            run(["sh", "-ec", command], tmp_path, PATH=f"{bin_}{os.pathsep}{os.environ['PATH']}")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_to_files(page):
    prose = FENCE.sub("", page.read_text(encoding="utf-8"))
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", prose):
        assert (page.parent / target).exists(), target


NAMED_BLOCK = re.compile(
    r"^`(?P<file>[\w./]+)`, [^\n]*:\n\n```\w+\n(?P<text>.*?)^```$", re.M | re.S
)


@pytest.mark.skipif(not (ROOT / "csrc").exists(), reason="needs the source tree")
def test_the_kernel_of_contributing(tmp_path):
    """What the page says to write is written, built and tested, in a copy of the sources."""
    pytest.importorskip("Cython")
    tree = tmp_path / "tree"
    for name in ("csrc", "fastml", "benchmarks"):
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    # The modules that are built already, wherever they are, need not be built again.
    for compiled in Path(fastml.__file__).parent.glob(f"_native/*{EXTENSION_SUFFIXES[0]}"):
        shutil.copy(compiled, tree / "fastml" / "_native")
    shutil.copy(ROOT / "pyproject.toml", tree)
    setup = (ROOT / "setup.py").read_text(encoding="utf-8")
    setup, n = re.subn("FAMILIES = {.*?}", 'FAMILIES = {"centring": "centring"}', setup, flags=re.S)
    assert n == 1
    (tree / "setup.py").write_text(setup, encoding="utf-8")
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    files = {m["file"]: m["text"] for m in NAMED_BLOCK.finditer(contributing)}
    assert len(files) == 9
    for file, text in files.items():
        (tree / file).parent.mkdir(parents=True, exist_ok=True)
        (tree / file).write_text(text, encoding="utf-8")
    run([sys.executable, "setup.py", "-q", "build_ext", "--inplace"], tree)
    pytest_ = [sys.executable, "-m", "pytest", "-q", "tests/test_centring.py"]
    for isa in ("baseline", "avx2", "avx512"):
        run(pytest_, tree, PYTHONPATH=str(tree), FASTML_ISA=isa)
    bench = [sys.executable, "-m", "fastml", "bench", "--rounds", "1", "--budget", "0", "centring"]
    run(bench, tree, PYTHONPATH=str(tree))


def test_compare_runs_a_script_both_ways(tmp_path):
    """The two runs must be of unlike code, and the verdict must depend on what they print."""
    compare = str(ROOT / "examples" / "compare.py")
    script = tmp_path / "script.py"
    script.write_text("import sys\nprint(1 / 3, sys.argv[1:])\n", encoding="utf-8")
    run([sys.executable, compare, str(script), "argument"], ROOT)
    script.write_text("from sklearn.cluster import KMeans\nprint(KMeans.__module__)\n")
    done = subprocess.run([sys.executable, compare, str(script)], capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    assert "sklearn.cluster._kmeans" in done.stdout
    assert "fastml.cluster._kmeans" in done.stdout
