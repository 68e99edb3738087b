"""The example in the docstring of everything that fastml has in a topic of scikit-learn's."""

import doctest
import inspect

import pytest

from fastml._runtime.modules import load, own_modules


def of_ours(module):
    """The names of a topic that do not fall through to scikit-learn."""
    values = {name: getattr(module, name) for name in module.__all__}
    return {k: v for k, v in values.items() if getattr(v, "__module__", "").startswith("fastml.")}


PUBLIC = {name: value for topic in own_modules() for name, value in of_ours(load(topic)).items()}


@pytest.mark.parametrize("name", PUBLIC)
def test_example(name):
    finder, runner = doctest.DocTestFinder(recurse=False), doctest.DocTestRunner()
    examples = finder.find(PUBLIC[name], name)
    assert sum(len(test.examples) for test in examples) >= 2
    for test in examples:
        assert runner.run(test).failed == 0


@pytest.mark.parametrize("name", PUBLIC)
def test_parameters_are_described(name):
    assert "Parameters\n----------" in inspect.getdoc(PUBLIC[name])
