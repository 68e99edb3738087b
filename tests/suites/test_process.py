"""What fastml does to the process that it is imported into: nothing."""

import pytest

from suites.harness import run_python
from suites.registry import SUBJECTS

# Whether denormals survive an addition and a multiplication, in this thread.
DENORMALS = """
import numpy as np
def flushed():
    tiny = np.full(64, 5e-310)
    return bool((tiny * 1.0 == 0).any() or (tiny + np.zeros(64) == 0).any())
"""


def test_import_fastml_loads_neither_numba_nor_kernels():
    loaded = run_python("import sys, fastml; print(*sys.modules)").split()
    assert "numba" not in loaded
    assert not [name for name in loaded if name.startswith("fastml._native.")]


def test_fitting_loads_no_numba():
    fit_all = "from suites.registry import *\nfor s in SUBJECTS: s.run(data())\n"
    assert "numba" not in run_python(f"{fit_all}import sys; print(*sys.modules)").split()


@pytest.mark.parametrize("subject", SUBJECTS, ids=str)
def test_denormals_are_not_flushed(subject):
    fit = (
        f"{DENORMALS}\nimport fastml; print(flushed())\n"
        "import sys\n"
        "from suites.registry import *\n"
        "s = next(s for s in SUBJECTS if s.name == sys.argv[1])\n"
        "s.run_large(data(*LARGE)); print(flushed())\n"
        "import threading; t = threading.Thread(target=lambda: print(flushed()))\n"
        "t.start(); t.join()"
    )
    assert run_python(fit, subject.name).split() == ["False"] * 3
