"""Checks of the arguments of functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from sklearn.utils import _param_validation


def validate_params(
    constraints: dict[str, Any], *, prefer_skip_nested_validation: bool
) -> Callable[[Any], Any]:
    """scikit-learn's decorator; the signature is found here, once, and not in every call.

    That takes as long as a Gram matrix of a hundred rows.
    """

    def decorate(function: Any) -> Any:
        function.__signature__ = inspect.signature(function)
        return _param_validation.validate_params(
            constraints, prefer_skip_nested_validation=prefer_skip_nested_validation
        )(function)

    return decorate
