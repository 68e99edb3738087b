"""The tree of tasks of a fit, and the calls of the callbacks' hooks."""

import copy
import inspect
import uuid
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from fastml.callback._protocol import AutoPropagatedCallback


@dataclass(eq=False, repr=False)
class CallbackContext:
    """One task of a fit: a node of a tree, whose root is the fit itself.

    Made by an estimator's ``_init_callback_context`` (the root) and by ``subcontext``.
    ``max_subtasks`` is 0 for a leaf and None where the number is not known in advance.
    A sub-estimator's root takes the place of the leaf that its meta-estimator made for
    it; ``source_estimator_name`` and ``source_task_name`` keep that leaf's names.
    """

    estimator_name: str
    task_name: str = "fit"
    task_id: int = 0
    max_subtasks: int | None = 0
    sequential_subtasks: bool = True
    parent: "CallbackContext | None" = None
    root_uuid: uuid.UUID = field(default_factory=uuid.uuid4)
    init_time: datetime = field(default_factory=lambda: datetime.now(UTC))
    source_estimator_name: str | None = None
    source_task_name: str | None = None
    _callbacks: list = field(default_factory=list)
    _depth: int = 0
    _children: dict = field(default_factory=dict)
    _handed_down: list = field(default_factory=list)

    @classmethod
    def _from_estimator(cls, estimator: Any, **task: Any) -> "CallbackContext":
        root = cls(
            estimator_name=type(estimator).__name__,
            _callbacks=getattr(estimator, "_skl_callbacks", []),
            **task,
        )
        leaf = getattr(estimator, "_parent_callback_ctx", None)
        if leaf is not None:
            root._take_place_of(leaf)
        return root

    def _take_place_of(self, leaf: "CallbackContext") -> None:
        if leaf.max_subtasks != 0:
            raise ValueError(f"{self!r} cannot take the place of {leaf!r}, which is not a leaf.")
        self.parent, self.task_id, self.root_uuid = leaf.parent, leaf.task_id, leaf.root_uuid
        self.source_estimator_name = leaf.estimator_name
        self.source_task_name = leaf.task_name
        self._depth = leaf._depth + 1
        if leaf.parent is not None:
            leaf.parent._children[self.task_id] = self

    def subcontext(
        self,
        task_name: str = "",
        task_id: int | None = None,
        max_subtasks: int | None = 0,
        sequential_subtasks: bool = True,
    ) -> "CallbackContext":
        """Return the context of a new subtask; sequential ones are numbered from 0."""
        if self.sequential_subtasks != (task_id is None):
            rule = "numbered here: leave task_id out" if task_id is not None else "yours to number"
            raise ValueError(f"The subtasks of {self!r} are {rule}.")
        if task_id is None:
            task_id = len(self._children)
        if task_id in self._children:
            raise ValueError(f"{self!r} already has a subtask with task_id={task_id}.")
        if self.max_subtasks is not None and len(self._children) >= self.max_subtasks:
            raise ValueError(f"{self!r} already has its {self.max_subtasks} subtasks.")
        child = CallbackContext(
            estimator_name=self.estimator_name,
            task_name=task_name,
            task_id=task_id,
            max_subtasks=max_subtasks,
            sequential_subtasks=sequential_subtasks,
            parent=self,
            root_uuid=self.root_uuid,
            _callbacks=self._callbacks,
            _depth=self._depth,
        )
        self._children[task_id] = child
        return child

    def call_on_fit_task_begin(
        self,
        *,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        metadata: Any = None,
        reconstruction_attributes: dict | Callable[[], dict] | None = None,
    ) -> "CallbackContext":
        """Call every callback's ``on_fit_task_begin``; return the context.

        Any value may be given as a function without arguments, which is called only if
        a hook asks for the value. ``reconstruction_attributes`` are the fitted
        attributes that make the hooks' ``fitted_estimator`` out of the estimator.
        """
        self._call("on_fit_task_begin", estimator, reconstruction_attributes, X, y, metadata)
        return self

    def call_on_fit_task_end(
        self,
        *,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        metadata: Any = None,
        reconstruction_attributes: dict | Callable[[], dict] | None = None,
    ) -> bool:
        """Call every callback's ``on_fit_task_end``; return whether one asks to stop."""
        return self._call("on_fit_task_end", estimator, reconstruction_attributes, X, y, metadata)

    def _call(
        self, hook: str, estimator: Any, attributes: Any, X: Any, y: Any, metadata: Any
    ) -> bool:
        offered = {
            "X": X,
            "y": y,
            "metadata": metadata,
            "fitted_estimator": lambda: _as_fitted(estimator, attributes),
        }
        values: dict[str, Any] = {}
        stop = False
        for callback in self._callbacks:
            # The sub-estimator's root stands for this same task and makes the call.
            if any(callback is handed for handed in self._handed_down):
                continue
            method = getattr(callback, hook)
            names = _keyword_only(method)
            if unknown := sorted(names - offered.keys()):
                raise TypeError(
                    f"{type(callback).__name__}.{hook} asks for {unknown}; "
                    f"a hook can have {sorted(offered)}."
                )
            for name in names - values.keys():
                values[name] = _value(offered[name])
            stop |= bool(method(estimator, self, **{name: values[name] for name in names}))
        return stop

    @contextmanager
    def propagate_callback_context(self, sub_estimator: Any) -> Iterator[None]:
        """Attach a sub-estimator's fit to this leaf, and hand callbacks down to it."""
        own = getattr(sub_estimator, "_skl_callbacks", [])
        if misplaced := [type(c).__name__ for c in own if isinstance(c, AutoPropagatedCallback)]:
            raise TypeError(
                f"{type(sub_estimator).__name__} is fitted by {self.estimator_name}: "
                f"set {misplaced} on {self.estimator_name}, which hands them down."
            )
        handed = [c for c in self._callbacks if _reaches(c, self._depth)]
        if handed and not hasattr(sub_estimator, "set_callbacks"):
            warnings.warn(
                f"{type(sub_estimator).__name__} does not support callbacks: those of "
                f"{self.estimator_name} do not follow its fit.",
                stacklevel=3,
            )
            handed = []
        if handed:
            sub_estimator.set_callbacks(*own, *handed)
        self._handed_down = handed
        sub_estimator._parent_callback_ctx = self
        try:
            yield
        finally:
            if handed:
                sub_estimator.set_callbacks(*own)
            del sub_estimator._parent_callback_ctx

    def __iter__(self) -> Iterator["CallbackContext"]:
        yield self
        for child in self._children.values():
            yield from child

    def __repr__(self) -> str:
        return (
            f"CallbackContext(estimator_name={self.estimator_name!r}, "
            f"task_name={self.task_name!r}, task_id={self.task_id})"
        )


def path_to(context: CallbackContext) -> list[CallbackContext]:
    """Return the contexts from the root down to this one."""
    above = [] if context.parent is None else path_to(context.parent)
    return [*above, context]


def _reaches(callback: Any, depth: int) -> bool:
    if not isinstance(callback, AutoPropagatedCallback):
        return False
    limit = callback.max_propagation_depth
    return limit is None or depth < limit


def _keyword_only(method: Callable) -> set[str]:
    parameters = inspect.signature(method).parameters.values()
    return {p.name for p in parameters if p.kind is p.KEYWORD_ONLY}


def _value(given: Any) -> Any:
    return given() if callable(given) else given


def _as_fitted(estimator: Any, attributes: Any) -> Any:
    attributes = _value(attributes)
    if attributes is None:
        return None
    fitted = copy.copy(estimator)
    for name, value in attributes.items():
        setattr(fitted, name, value)
    return fitted
