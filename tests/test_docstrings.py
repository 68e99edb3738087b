"""The example in the docstring of everything that fastml has in a topic of scikit-learn's."""

import doctest
import inspect

import pytest

from fastml._runtime.modules import load, own_modules


def of_ours(module):
    """The names of a topic that do not fall through to scikit-learn."""
    values = {name: getattr(module, name) for name in module.__all__}
    return {k: v for k, v in values.items() if getattr(v, "__module__", "").startswith("fastml.")}


RESULTS = {"MercerReport"}
PUBLIC = {name: value for topic in own_modules() for name, value in of_ours(load(topic)).items()}


@pytest.mark.parametrize("name", PUBLIC)
def test_example(name):
    finder, runner = doctest.DocTestFinder(recurse=False), doctest.DocTestRunner()
    examples = finder.find(PUBLIC[name], name)
    if name in RESULTS:
        pytest.skip("see what returns it")
    assert sum(len(test.examples) for test in examples) >= 2  # an import, and a use
    for test in examples:
        assert runner.run(test).failed == 0


TAKE_PARAMETERS = [name for name, value in PUBLIC.items() if inspect.signature(value).parameters]


@pytest.mark.parametrize("name", TAKE_PARAMETERS)
def test_parameters_are_described(name):
    text = inspect.getdoc(PUBLIC[name])
    # Of what is made for users to read, and not by them, it is the attributes.
    assert "Parameters\n----------" in text or (name in RESULTS and "Attributes\n---" in text)
