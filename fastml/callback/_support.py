"""What an estimator needs to accept callbacks and to see them torn down."""

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from fastml.callback._context import CallbackContext
from fastml.callback._protocol import AutoPropagatedCallback, FitCallback


class CallbackSupportMixin:
    """Gives an estimator ``set_callbacks``; goes before ``BaseEstimator`` in the bases."""

    def set_callbacks(self, *callbacks: Any) -> Any:
        """Set the callbacks that follow the estimator's fit.

        Parameters
        ----------
        *callbacks : callback instances
            The callbacks; none at all removes those set before.

        Returns
        -------
        self : estimator instance
            The estimator itself.
        """
        # A class has the protocol's methods too, hence the second condition.
        if not all(isinstance(c, FitCallback) and not isinstance(c, type) for c in callbacks):
            raise TypeError("callbacks must be instances following the FitCallback protocol.")
        if callbacks:
            self._skl_callbacks = list(callbacks)
        else:
            vars(self).pop("_skl_callbacks", None)
        return self

    def _init_callback_context(
        self,
        task_name: str = "fit",
        task_id: int = 0,
        max_subtasks: int | None = 0,
        sequential_subtasks: bool = True,
    ) -> CallbackContext:
        context = CallbackContext._from_estimator(
            self,
            task_name=task_name,
            task_id=task_id,
            max_subtasks=max_subtasks,
            sequential_subtasks=sequential_subtasks,
        )
        self._callback_fit_ctx = context
        self._skl_callbacks_to_teardown: list[Any] = []
        for callback in context._callbacks:
            # One that was handed down is set up and torn down by who handed it.
            handed_down = hasattr(self, "_parent_callback_ctx")
            if not (handed_down and isinstance(callback, AutoPropagatedCallback)):
                # Noted first: a setup that fails half-way is torn down as well.
                self._skl_callbacks_to_teardown.append(callback)
                callback.setup(estimator=self, context=context)
        return context

    def __sklearn_clone__(self) -> Any:
        # scikit-learn's clone knows nothing of callbacks before 1.9. They are shared,
        # not copied: one instance follows all the clones that a search fits.
        clone = super().__sklearn_clone__()  # type: ignore[misc]
        if hasattr(self, "_skl_callbacks"):
            clone._skl_callbacks = self._skl_callbacks
        return clone


@contextmanager
def callback_management_context(estimator: Any) -> Iterator[None]:
    """Tear down, on the way out, the callbacks that the fit inside has set up."""
    try:
        yield
    finally:
        errors = []
        context = vars(estimator).pop("_callback_fit_ctx", None)
        for callback in vars(estimator).pop("_skl_callbacks_to_teardown", []):
            try:
                callback.teardown(estimator=estimator, context=context)
            except Exception as error:
                errors.append(error)
        if len(errors) == 1:
            raise errors[0]
        if errors:
            raise ExceptionGroup("Several callbacks failed in teardown", errors)


def with_callbacks(method: Callable) -> Callable:
    """Decorate a fit method so that its callbacks are torn down however it ends."""

    @functools.wraps(method)
    def managed(estimator: Any, *args: Any, **kwargs: Any) -> Any:
        with callback_management_context(estimator):
            return method(estimator, *args, **kwargs)

    return managed
