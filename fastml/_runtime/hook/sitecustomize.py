"""Accelerates the Python processes that an accelerated one starts (see _runtime/children.py).

Python runs this at start-up because this folder leads PYTHONPATH. It removes the folder from
sys.path, runs the sitecustomize that it stands before, if there is one, and fails only as that
one does.
"""

import os
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec, spec_from_file_location
from typing import Any


def _execute(spec: Any) -> None:
    module = sys.modules[spec.name] = module_from_spec(spec)
    spec.loader.exec_module(module)


def _begin(package: str) -> None:
    # From its place, not from sys.path: what runs need not be able to import fastml, which may
    # have been found in the folder that the first process was started in.
    if "fastml" not in sys.modules:
        _execute(spec_from_file_location("fastml", os.path.join(package, "__init__.py")))
    from fastml._runtime.children import begin

    begin()


_here = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [path for path in sys.path if os.path.abspath(path) != _here]
_next = PathFinder.find_spec("sitecustomize")
try:
    if _next is not None:
        _execute(_next)
finally:
    # A child may be another Python altogether, which inherits the variables.
    if os.environ.get("FASTML_PYTHON") == f"{sys.implementation.cache_tag}:{sys.prefix}":
        try:
            _begin(os.path.dirname(os.path.dirname(_here)))
        except Exception as error:
            print(f"fastml: this process is not accelerated: {error!r}", file=sys.stderr)
