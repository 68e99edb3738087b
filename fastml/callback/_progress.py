"""Progress bars, drawn by rich."""

import uuid
from collections import Counter
from typing import Any

from fastml.callback._context import CallbackContext, path_to

# Kept here and not on the callback, which must stay picklable while it is in use.
_displays: dict[uuid.UUID, "_Display"] = {}


class ProgressBar:
    """Show a progress bar for each task of a fit that has subtasks. Needs rich.

    Parameters
    ----------
    max_propagation_depth : int or None, default=1
        How many levels of estimators inside a meta-estimator have bars as well: 0 for
        the outermost estimator alone, None for all.
    """

    def __init__(self, max_propagation_depth: int | None = 1):
        try:
            import rich.progress  # noqa: F401
        except ImportError as error:
            raise ImportError("ProgressBar requires rich: pip install rich") from error
        if max_propagation_depth is not None and max_propagation_depth < 0:
            raise ValueError(f"max_propagation_depth={max_propagation_depth} must be >= 0 or None")
        self.max_propagation_depth = max_propagation_depth

    def setup(self, estimator: Any, context: CallbackContext) -> None:
        _displays[context.root_uuid] = _Display()

    def on_fit_task_begin(self, estimator: Any, context: CallbackContext) -> None:
        heads_an_estimator = context.parent is None or context.source_estimator_name is not None
        if context.max_subtasks != 0 or heads_an_estimator:
            _displays[context.root_uuid].begin(context)

    def on_fit_task_end(self, estimator: Any, context: CallbackContext) -> None:
        _displays[context.root_uuid].end(context)

    def teardown(self, estimator: Any, context: CallbackContext) -> None:
        display = _displays.pop(context.root_uuid, None)
        if display is not None:
            display.progress.stop()


class _Display:
    """The bars of one fit, keyed by the path of task ids from the root."""

    def __init__(self) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        class Ordered(Progress):
            """Show a task below its parent, whenever it was added."""

            def get_renderables(self) -> Any:
                yield self.make_tasks_table(sorted(self.tasks, key=lambda t: t.fields["path"]))

        self.progress = Ordered(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f}%"),
            TimeRemainingColumn(elapsed_when_finished=True),
        )
        self.bars: dict[tuple, Any] = {}
        self.totals: dict[tuple, int | None] = {}
        self.ended: Counter = Counter()
        self.progress.start()

    def begin(self, context: CallbackContext) -> None:
        path = _path(context)
        number = f" #{context.task_id}" if len(path) > 1 else ""
        source = (
            f"{context.source_estimator_name} - {context.source_task_name} | "
            if context.source_estimator_name
            else ""
        )
        self.totals[path] = context.max_subtasks
        self.bars[path] = self.progress.add_task(
            f"{'  ' * (len(path) - 1)}{source}"
            f"{context.estimator_name} - {context.task_name}{number}",
            total=context.max_subtasks,
            path=path,
        )

    def end(self, context: CallbackContext) -> None:
        path = _path(context)
        if path in self.bars:
            # Done, even if it took fewer subtasks than it was allowed.
            self.progress.update(self.bars[path], completed=1, total=1)
        done: float = 0.0
        self.ended[path[:-1]] += 1
        for depth in range(len(path) - 1, 0, -1):
            ancestor = path[:depth]
            total = self.totals.get(ancestor)
            if not total:
                break
            done = self.ended[ancestor] + done
            self.progress.update(self.bars[ancestor], completed=done)
            done /= total


def _path(context: CallbackContext) -> tuple:
    return tuple(c.task_id for c in path_to(context))
