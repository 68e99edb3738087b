"""The example in the docstring of everything that fastml puts in scikit-learn's place."""

import doctest

import pytest

import fastml

PUBLIC = {name: value for (_, name), value in fastml.replacements().items()}


@pytest.mark.parametrize("name", PUBLIC)
def test_example(name):
    finder, runner = doctest.DocTestFinder(recurse=False), doctest.DocTestRunner()
    examples = finder.find(PUBLIC[name], name)
    assert sum(len(test.examples) for test in examples) > 2
    for test in examples:
        assert runner.run(test).failed == 0


@pytest.mark.parametrize("name", PUBLIC)
def test_parameters_are_described(name):
    assert "Parameters\n----------" in PUBLIC[name].__doc__
