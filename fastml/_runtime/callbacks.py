"""Callbacks in an estimator's loop, for every scikit-learn we support.

An estimator that iterates derives from `CallbackSupportMixin`, decorates ``fit`` with
`fit_context` and writes its loop once::

    with fit_task(self, n_init, X=X, metadata={"sample_weight": sample_weight}) as fit:
        for _ in range(n_init):
            with fit.subtask("run", max_iter) as run:
                for _ in range(max_iter):
                    with run.subtask("iteration") as step:
                        ...
                        step.attributes = lambda: {"cluster_centers_": centers}
                    if step.stop:
                        break

Without callbacks every task is `NO_TASK`, which is false and does nothing, so that an
estimator may also ask ``if not fit`` and run its loop in one native call.
"""

from collections.abc import Callable
from typing import Any, Self

from sklearn.base import _fit_context

from fastml.callback import CallbackContext, CallbackSupportMixin, with_callbacks

__all__ = ["NO_TASK", "CallbackSupportMixin", "Task", "fit_context", "fit_task"]

if CallbackSupportMixin.__module__.startswith("sklearn."):
    fit_context = _fit_context  # it tears callbacks down by itself
else:

    def fit_context(*, prefer_skip_nested_validation: bool) -> Callable[[Callable], Callable]:
        """scikit-learn's ``_fit_context``, which before 1.9 leaves callbacks alone."""
        validated = _fit_context(prefer_skip_nested_validation=prefer_skip_nested_validation)
        return lambda fit_method: validated(with_callbacks(fit_method))


class Task:
    """A task of a fit that callbacks follow: a ``with`` block, or `begin` and `end`.

    A block that ends by an exception does not call the hooks of the task's end. A
    ``break`` does.
    """

    __slots__ = ("_context", "_data", "_estimator", "attributes", "stop")

    def __init__(self, context: CallbackContext, estimator: Any, data: dict[str, Any]) -> None:
        self._context = context
        self._estimator = estimator
        self._data = data
        #: Fitted attributes, or a function returning them, that turn the estimator into
        #: the model reached by this task. The function runs only if a callback asks.
        self.attributes: dict[str, Any] | Callable[[], dict[str, Any]] | None = None
        #: Whether a callback asked to leave the loop that the task belongs to.
        self.stop = False

    def subtask(self, name: str, max_subtasks: int | None = 0) -> "Task":
        """Return the next task inside this one (`max_subtasks` 0: leaf, None: unknown)."""
        context = self._context.subcontext(task_name=name, max_subtasks=max_subtasks)
        return Task(context, self._estimator, self._data)

    def begin(self) -> "Task":
        """Call the hooks of the task's begin."""
        self._context.call_on_fit_task_begin(estimator=self._estimator, **self._data)
        return self

    def end(self, attributes: dict | Callable[[], dict] | None = None) -> bool:
        """Call the hooks of the task's end; return whether a callback asks to stop."""
        self.stop = self._context.call_on_fit_task_end(
            estimator=self._estimator,
            reconstruction_attributes=self.attributes if attributes is None else attributes,
            **self._data,
        )
        return self.stop

    def __enter__(self) -> Self:
        self.begin()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.end()


class _NoTask(Task):
    """The task of a fit that nobody follows."""

    __slots__ = ()

    def __init__(self) -> None:
        pass

    attributes = property(lambda self: None, lambda self, value: None)  # type: ignore[assignment]
    stop = property(lambda self: False)  # type: ignore[assignment]

    def __bool__(self) -> bool:
        return False

    def subtask(self, name: str, max_subtasks: int | None = 0) -> "Task":
        return self

    def begin(self) -> "Task":
        return self

    def end(self, attributes: dict | Callable[[], dict] | None = None) -> bool:
        return False


NO_TASK: Task = _NoTask()


def fit_task(
    estimator: Any,
    max_subtasks: int | None = 0,
    *,
    X: Any = None,
    y: Any = None,
    metadata: dict[str, Any] | None = None,
) -> Task:
    """Return the task of a whole fit: the root of the tree that callbacks see.

    To be called once in ``fit``, after validation. Entries of `metadata` that are None
    are left out, as a scorer would take them for given.
    """
    if not getattr(estimator, "_skl_callbacks", None):
        return NO_TASK
    given = {key: value for key, value in (metadata or {}).items() if value is not None}
    context = estimator._init_callback_context(max_subtasks=max_subtasks)
    return Task(context, estimator, {"X": X, "y": y, "metadata": given})
