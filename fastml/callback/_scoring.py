"""A score of the model after each task of its fit."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fastml.callback._context import CallbackContext, path_to


@dataclass
class ScoringMonitorLog:
    """The scores of one run: one fit of the outermost estimator.

    ``data`` is a list of rows, ``data_as_pandas`` the same as a DataFrame. A row has
    ``task_id_path`` (the task ids from the root), ``parent_task_id_path``,
    ``estimator_name``, ``task_name``, ``task_id``, ``sequential_subtasks`` and a column
    for each score.
    """

    run_id: uuid.UUID
    estimator_name: str
    timestamp: str
    data: list[dict]

    @property
    def data_as_pandas(self) -> Any:
        import pandas as pd

        return pd.DataFrame(self.data)

    def __repr__(self) -> str:
        return (
            f"ScoringMonitorLog(run_id={self.run_id}, estimator_name={self.estimator_name}, "
            f"timestamp={self.timestamp})"
        )


class ScoringMonitor:
    """Score the model on the training data at the end of each task that has a model.

    Parameters
    ----------
    scoring : str, callable, list, tuple, dict or None
        As in :func:`sklearn.metrics.check_scoring`; None is the estimator's ``score``.
        Scores are computed where fit was given ``y``.
    """

    def __init__(self, *, scoring: str | Callable | list | tuple | dict | None):
        self.scoring = scoring
        self._runs: dict[uuid.UUID, _Run] = {}
        self._scorers: dict[Any, Callable] = {}

    def setup(self, estimator: Any, context: CallbackContext) -> None:
        from sklearn.metrics import check_scoring

        # A list makes check_scoring name the score by its string.
        scoring = [self.scoring] if isinstance(self.scoring, str) else self.scoring
        self._scorers[estimator] = check_scoring(estimator, scoring)

    def on_fit_task_begin(self, estimator: Any, context: CallbackContext) -> None:
        pass

    def on_fit_task_end(
        self,
        estimator: Any,
        context: CallbackContext,
        *,
        X: Any = None,
        y: Any = None,
        metadata: Any = None,
        fitted_estimator: Any = None,
    ) -> None:
        if fitted_estimator is None:
            return
        scores: Any = {}
        if X is not None and y is not None:
            scores = self._scorers[estimator](fitted_estimator, X, y, **(metadata or {}))
            if not isinstance(scores, dict):
                scores = {"score": scores}
        path = path_to(context)
        run = self._runs.setdefault(context.root_uuid, _Run(path[0]))
        run.add(path, scores)

    def teardown(self, estimator: Any, context: CallbackContext) -> None:
        self._scorers.pop(estimator, None)

    def get_logs(
        self, select: str = "most_recent", include_lineage: bool = False
    ) -> "ScoringMonitorLog | list[ScoringMonitorLog]":
        """Return the log of the last run, or the list of all of them.

        Parameters
        ----------
        select : {"most_recent", "all"}, default="most_recent"
            Which runs.
        include_lineage : bool, default=False
            Whether to add rows without scores for the tasks above those scored.

        Returns
        -------
        logs : ScoringMonitorLog or list of ScoringMonitorLog
            The scores.
        """
        if select not in ("most_recent", "all"):
            raise ValueError(f"select={select!r} must be 'most_recent' or 'all'")
        if not self._runs:
            raise ValueError(
                "No logs to retrieve: the estimator has not been fitted, or none of its "
                "tasks could be scored."
            )
        logs = [run.log(run_id, include_lineage) for run_id, run in self._runs.items()]
        logs.sort(key=lambda log: (log.timestamp, log.estimator_name))
        return logs if select == "all" else logs[-1]


class _Run:
    def __init__(self, root: CallbackContext) -> None:
        self.estimator_name = root.estimator_name
        self.timestamp = root.init_time.strftime("UTC%Y-%m-%d-%H:%M:%S.%f")
        self.scored: dict[tuple, dict] = {}
        self.lineage: dict[tuple, dict] = {}

    def add(self, path: list[CallbackContext], scores: dict) -> None:
        ids = tuple(context.task_id for context in path)
        for depth, context in enumerate(path, start=1):
            self.lineage.setdefault(ids[:depth], _row(ids[:depth], context))
        self.scored[ids] = {**self.lineage[ids], **scores}

    def log(self, run_id: uuid.UUID, include_lineage: bool) -> ScoringMonitorLog:
        rows = {**self.lineage, **self.scored} if include_lineage else self.scored
        by_depth = sorted(rows, key=lambda ids: (len(ids), ids))
        data = [dict(rows[ids]) for ids in by_depth]
        return ScoringMonitorLog(run_id, self.estimator_name, self.timestamp, data)


def _row(ids: tuple, context: CallbackContext) -> dict:
    return {
        "task_id_path": ids,
        "parent_task_id_path": ids[:-1],
        "estimator_name": context.estimator_name,
        "task_name": context.task_name,
        "task_id": context.task_id,
        "sequential_subtasks": context.sequential_subtasks,
    }
