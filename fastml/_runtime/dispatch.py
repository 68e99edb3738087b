"""The record of what ran natively, what did not, and why.

`@accelerated` marks a method or function of ours. Each call logs one INFO message on the logger
`fastml.dispatch`: "KMeans.fit: native" or "KMeans.fit: scikit-learn (reason)". The log record has
the attributes `estimator` (None for a function), `method`, `native`, `reason` and `seconds`.
"""

from __future__ import annotations

import functools
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from fastml._runtime import config

logger = logging.getLogger("fastml.dispatch")


class Unsupported(NamedTuple):
    """Why a call cannot run natively, and what to do instead."""

    parameter: str
    reason: str
    instead: str


class NotAcceleratedError(RuntimeError):
    """In strict mode: a call that scikit-learn would have had to run.

    Attributes
    ----------
    call : str
        The method or function, such as `"KMeans.fit"`.

    parameter, reason, instead : str
        What stands in the way, why, and what to do about it.
    """

    def __init__(self, call: str, parameter: str, reason: str, instead: str) -> None:
        super().__init__(call, parameter, reason, instead)  # pickles across processes
        self.call, self.parameter, self.reason, self.instead = self.args

    def __str__(self) -> str:
        return (
            f"{self.call} cannot run natively because of {self.parameter}: {self.reason}. "
            f"Instead: {self.instead}. (Without strict mode, scikit-learn runs it.)"
        )


@dataclass(slots=True, eq=False)
class Call:
    """A recorded call; `instance` tells which calls are part of it while it is in flight."""

    estimator: str | None
    method: str
    instance: Any = None
    native: bool = True
    reason: str | None = None
    seconds: float = 0.0

    @property
    def label(self) -> str:
        return self.method if self.estimator is None else f"{self.estimator}.{self.method}"


_collectors: tuple[Callable[[Call], None], ...] = ()


class _InFlight(threading.local):
    def __init__(self) -> None:
        self.calls: list[Call] = []


_in_flight = _InFlight()


def collect(collector: Callable[[Call], None]) -> None:
    """Call `collector` with every call that ends from now on, in any thread."""
    global _collectors
    _collectors = (*_collectors, collector)


def accelerated(
    function: Callable[..., Any] | None = None,
    *,
    unless: Callable[..., Unsupported | None] | None = None,
    stock: Callable[..., Any] | None = None,
) -> Any:
    """Mark a method or a function as ours, and have its calls recorded.

    Parameters
    ----------
    unless : callable, default=None
        Called with the arguments of the call, before any is validated. Returns None if the call
        can run natively. Otherwise scikit-learn runs it, or in strict mode NotAcceleratedError is
        raised.

    stock : callable, default=None
        For a function with `unless`: scikit-learn's. A method's is found through the MRO.
    """
    if function is None:
        return functools.partial(accelerated, unless=unless, stock=stock)
    name = function.__name__
    scope = function.__qualname__.rpartition(".")[0]
    is_method = bool(scope) and not scope.endswith("<locals>")
    if unless is not None and not is_method and stock is None:
        raise TypeError(f"{name} needs stock=, for the calls that `unless` turns away")

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        refusal = unless(*args, **kwargs) if unless is not None else None
        if refusal is None:
            if not _collectors and not logger.isEnabledFor(logging.INFO):
                return function(*args, **kwargs)
            run: Any = function
        else:
            run = _stock_method(wrapper, args[0]) if is_method else stock
        instance = args[0] if is_method else None
        estimator = type(instance).__name__ if is_method else None
        call = Call(estimator, name, instance)
        if refusal is not None:
            call.native, call.reason = False, refusal.reason
            if config.get("strict"):
                raise NotAcceleratedError(call.label, *refusal)
        return _record(call, run, args, kwargs)

    return wrapper


def concede(instance: Any, method: str, refusal: Unsupported) -> None:
    """Say, from inside a call of ours on `instance`, that scikit-learn has to do the work.

    For what only validated data tells: `unless` knows the arguments as they were given.
    """
    if config.get("strict"):
        raise NotAcceleratedError(f"{type(instance).__name__}.{method}", *refusal)
    for call in _in_flight.calls:
        if call.instance is instance and call.native:
            call.native, call.reason = False, refusal.reason


def _stock_method(wrapper: Callable[..., Any], instance: Any) -> Callable[..., Any]:
    """The implementation that `wrapper` overrides, as a function of the instance."""
    name = wrapper.__name__
    mro = type(instance).__mro__
    for i, cls in enumerate(mro):
        # Others may have wrapped ours again, as scikit-learn's set_output does.
        attr = vars(cls).get(name)
        while attr is not None and attr is not wrapper:
            attr = getattr(attr, "__wrapped__", None)
        if attr is wrapper:
            rest = (vars(base).get(name) for base in mro[i + 1 :])
            descriptor = next((attr for attr in rest if attr is not None), None)
            if descriptor is not None:
                return lambda self, *args, **kwargs: descriptor.__get__(self, type(self))(
                    *args, **kwargs
                )
    raise TypeError(f"{type(instance).__name__}.{name} overrides nothing of scikit-learn's")


def _record(
    call: Call, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    in_flight = _in_flight.calls
    if call.instance is not None:
        for outer in in_flight:
            if outer.instance is call.instance:
                # fit_predict calls fit: one call of the user's, native only if all of it is.
                if outer.native and not call.native:
                    outer.native, outer.reason = False, call.reason
                return run(*args, **kwargs)
    in_flight.append(call)
    start = time.perf_counter()
    try:
        return run(*args, **kwargs)
    finally:
        call.seconds = time.perf_counter() - start
        in_flight.pop()
        call.instance = None
        for collector in _collectors:
            collector(call)
        if logger.isEnabledFor(logging.INFO):
            _log(call)


def _log(call: Call) -> None:
    extra = {
        name: getattr(call, name) for name in ("estimator", "method", "native", "reason", "seconds")
    }
    if call.native:
        logger.info("%s: native", call.label, extra=extra)
    else:
        logger.info("%s: scikit-learn (%s)", call.label, call.reason, extra=extra)
