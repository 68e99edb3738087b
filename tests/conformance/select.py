"""Which of scikit-learn's test modules have to do with what fastml replaces."""

import ast
import re
from collections.abc import Collection
from pathlib import Path

import sklearn

# They go through scikit-learn's estimators without naming them.
GENERIC = (
    "sklearn.tests.test_common",
    "sklearn.tests.test_docstrings",
    "sklearn.tests.test_docstring_parameters",
    "sklearn.tests.test_docstring_parameters_consistency",
    "sklearn.tests.test_public_functions",
)
_ROOT = Path(sklearn.__file__).parent


def modules_of(names: Collection[str]) -> list[str]:
    """Return the test modules in which one of the names occurs, and the generic ones."""
    found = [
        _module(path)
        for path in sorted(_ROOT.glob("**/tests/test_*.py"))
        if _module(path) in GENERIC or not _names_in(path).isdisjoint(names)
    ]
    return found


def concerns(test: str, names: Collection[str]) -> bool:
    """Tell whether a test has to do with the names: in a generic module its id has one."""
    module, _, rest = test.partition("::")
    return module not in GENERIC or any(re.search(rf"\b{name}\b", rest) for name in names)


def _module(path: Path) -> str:
    return ".".join(("sklearn", *path.relative_to(_ROOT).with_suffix("").parts))


def _names_in(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Attribute):
            names.add(node.attr)
    return names
