"""What a callback has to offer, checked by ``isinstance`` on its methods alone."""

from typing import Any, Protocol, runtime_checkable


class _Callback(Protocol):
    def setup(self, estimator: Any, context: Any) -> None:
        """Run once, before the first task of the outermost fit."""

    def teardown(self, estimator: Any, context: Any) -> None:
        """Run once, after that fit, whether it succeeded or not."""


@runtime_checkable
class FitCallback(_Callback, Protocol):
    """A callback that follows the tasks of a fit.

    The two hooks are given the values that they name as keyword-only arguments, out of
    ``X``, ``y``, ``metadata`` and ``fitted_estimator`` (a copy of the estimator as if
    fit had ended here; None where the task cannot tell). What no hook names is never
    computed.
    """

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Run before a task."""

    def on_fit_task_end(self, estimator: Any, context: Any) -> bool | None:
        """Run after a task; True stops the loop that the task belongs to."""


@runtime_checkable
class AutoPropagatedCallback(_Callback, Protocol):
    """A callback that a meta-estimator hands down to the estimators that it fits."""

    @property
    def max_propagation_depth(self) -> int | None:
        """How many levels down it goes; None for all of them."""
