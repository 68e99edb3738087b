"""Checks of the arguments of functions, and of the parameters of estimators."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn._config import _get_threadlocal_config as configuration
from sklearn.utils import _param_validation


def validate_params(
    constraints: dict[str, Any], *, prefer_skip_nested_validation: bool
) -> Callable[[Any], Any]:
    """scikit-learn's decorator, for arguments that are as they should be without its cost.

    That is the time of a Gram matrix of two hundred rows: it makes the signature and the
    constraints anew in every call. Here they are made once. Whatever they do not allow goes to
    scikit-learn's, and with it the message of the error.
    """

    def decorate(function: Any) -> Any:
        function.__signature__ = inspect.signature(function)
        asked = _param_validation.validate_params(
            constraints, prefer_skip_nested_validation=prefer_skip_nested_validation
        )(function)
        if not prefer_skip_nested_validation:
            return asked  # for its estimator, whose messages scikit-learn's puts in terms of it
        expected = _Expected(function.__signature__, constraints)

        @functools.wraps(asked)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            config = configuration()
            if config["skip_parameter_validation"] or not expected.are(args, kwargs):
                return asked(*args, **kwargs)
            config["skip_parameter_validation"] = True
            try:
                return function(*args, **kwargs)
            finally:
                config["skip_parameter_validation"] = False

        return wrapper

    return decorate


class _Expected:
    """What a function takes, in a form that is soon looked through."""

    def __init__(self, signature: inspect.Signature, constraints: dict[str, Any]) -> None:
        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        parameters = signature.parameters.values()
        self.names = [p.name for p in parameters if p.kind in kinds]
        self.required = [
            p.name for p in parameters if p.default is p.empty and p.kind is not p.VAR_KEYWORD
        ]
        self.anything = any(p.kind is p.VAR_KEYWORD for p in parameters)
        self.tests = {
            name: [_test(c) for c in allowed]
            for name, allowed in constraints.items()
            if allowed != "no_validation"
        }
        free = {p.name: [_always] for p in parameters if p.name not in self.tests}
        self.tests |= free

    def are(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        n = len(args)
        return (
            n <= len(self.names)
            and all(map(self._allows, self.names, args))
            and (n >= len(self.required) or all(name in kwargs for name in self.required[n:]))
            and (not kwargs or self._allow_by_name(kwargs, self.names[:n]))
        )

    def _allow_by_name(self, kwargs: dict[str, Any], given: list[str]) -> bool:
        return kwargs.keys().isdisjoint(given) and all(
            self._allows(name, value) if name in self.tests else self.anything
            for name, value in kwargs.items()
        )

    def _allows(self, name: str, value: Any) -> bool:
        for test in self.tests[name]:  # noqa: SIM110 - twice as fast as any()
            if test(value):
                return True
        return False


def _test(constraint: Any) -> Callable[[Any], bool]:
    satisfies = _param_validation.make_constraint(constraint).is_satisfied_by
    if constraint != "array-like":
        return satisfies
    # scikit-learn's test takes twice as long as all the others of a call.
    return lambda value: type(value) is np.ndarray or satisfies(value)


def _always(value: Any) -> bool:
    return True


class CheckedOnce:
    """Mixin that stands before the stock class: what was found valid is not checked again.

    A third of a small fit is scikit-learn's check, which makes a signature anew in every call.
    """

    def _validate_params(self) -> None:
        key = _simple(self)
        if key is None:
            super()._validate_params()  # type: ignore[misc]
        elif key not in _valid:
            super()._validate_params()  # type: ignore[misc]
            if len(_valid) >= MANY:
                _valid.clear()
            _valid.add(key)


# Parameters that scikit-learn has validated, of classes and all of simple types.
_valid: set[Any] = set()
MANY = 1000
_SIMPLE = {str, int, float, bool, type(None), np.float64}


def _simple(model: Any) -> Any:
    kind: Any = type(model)
    values = tuple(getattr(model, name) for name in _names(kind))
    types = tuple(map(type, values))
    return (kind, types, values) if _SIMPLE.issuperset(types) else None


@functools.cache
def _names(cls: Any) -> tuple[str, ...]:
    return tuple(cls._get_param_names())
