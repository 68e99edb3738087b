"""Parameters that a machine has beside scikit-learn's."""

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T", bound=type)


def with_options(**options: Any) -> Callable[[T], T]:
    """Give a class keyword parameters beside those of the installed scikit-learn's class.

    The defaults are attributes of the class too: a model that comes from scikit-learn has none.
    """

    def decorate(cls: T) -> T:
        before = cls.__init__  # type: ignore[misc]
        theirs = inspect.signature(before)

        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            own = {name: kwargs.pop(name, default) for name, default in options.items()}
            before(self, *args, **kwargs)
            vars(self).update(own)

        ours = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
            for name, default in options.items()
        ]
        parameters = [*theirs.parameters.values(), *ours]
        __init__.__signature__ = theirs.replace(parameters=parameters)  # type: ignore[attr-defined]
        cls.__init__ = __init__  # type: ignore[misc]
        for name, default in options.items():
            setattr(cls, name, default)
        return cls

    return decorate
