"""`@likelihood`: a Python function as the likelihood of ratings."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from fastml.jit._function import Decorated, Function, NotCompilable, unwrap
from fastml.jit._pairs import likelihood_address


class Likelihood(Decorated):
    """The likelihood of ratings as a function; made by `fastml.jit.likelihood`.

    Called with a rating and a score it is the function. Copies and clones are the object itself.

    Parameters
    ----------
    f : callable
        The function.

    mean : callable, default=None
        What ratings are on average, as a function of an array of scores.

    Attributes
    ----------
    __wrapped__ : callable
        The function in Python.
    """

    _options = ("mean",)

    def __init__(self, f: Callable[..., Any], *, mean: Callable | None = None) -> None:
        f = f.__wrapped__ if isinstance(f, Likelihood) else f
        super().__init__(f, Function(unwrap(f).python, reassociate=False))
        self.mean = mean

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Likelihood) and (self.function, self.mean) == (
            other.function,
            other.mean,
        )

    def __hash__(self) -> int:
        return hash(self.function.python)

    def address(self, dtype: Any = np.float64) -> int:
        """Of the compiled function of many ratings and scores, all of `dtype`."""
        if self.function.plain.__code__.co_argcount != 2:
            raise NotCompilable(self.function.name, "it has to take a rating and a score")
        return likelihood_address(self.function, dtype)


def likelihood(f: Callable[..., Any] | None = None, *, mean: Callable | None = None) -> Any:
    """Say that a function is the likelihood of a rating, for `GLMFactorization` to maximise.

    The function is compiled when the first model is fitted, and called on all threads.

    Parameters
    ----------
    f : callable
        ``f(rating, score)``, of two numbers, to three: the logarithm of the likelihood, and its
        first and second derivative by the score. Terms that do not depend on the score may be left
        out.

    mean : callable, default=None
        ``mean(scores)``, what ratings with such scores are on average, for an array of scores; it
        should not fall where they rise. It is what a model predicts. None: the scores themselves.

    Returns
    -------
    Likelihood
        Or a decorator that makes one, if only `mean` is given.

    Examples
    --------
    >>> import numpy as np
    >>> from fastml.jit import likelihood
    >>> from fastml.recommendation import GLMFactorization
    >>> @likelihood(mean=np.exp)
    ... def exponential(rating, score):
    ...     share = rating * np.exp(-score)
    ...     return -score - share, share - 1, -share
    >>> pairs = [["ann", "tea"], ["ann", "milk"], ["bob", "tea"], ["bob", "cocoa"]]
    >>> model = GLMFactorization(1, likelihood=exponential, random_state=0)
    >>> model.fit(pairs, [5.0, 1.0, 4.0, 2.0]).predict([["ann", "tea"]]) > 3
    array([ True])
    """
    if f is None:
        return functools.partial(likelihood, mean=mean)
    return Likelihood(f, mean=mean)
