"""The callback protocol: ours, and whichever one the installed scikit-learn gives."""

import importlib
import pickle
import types

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClusterMixin, RegressorMixin, clone

import fastml.callback
from fastml._runtime.callbacks import NO_TASK, fit_context, fit_task


def _ours():
    names = {}
    for module in ("_context", "_progress", "_protocol", "_scoring", "_support"):
        names |= vars(importlib.import_module(f"fastml.callback.{module}"))
    return types.SimpleNamespace(**{name: names[name] for name in fastml.callback.__all__})


@pytest.fixture(params=["ours", "installed"])
def api(request):
    return _ours() if request.param == "ours" else fastml.callback


X = np.arange(20.0).reshape(10, 2)
Y = X[:, 0]


def averager(api):
    """An estimator whose model after i iterations predicts i times the mean."""

    class Averager(api.CallbackSupportMixin, RegressorMixin, BaseEstimator):
        def __init__(self, n_init=2, max_iter=3, fail=False):
            self.n_init, self.max_iter, self.fail = n_init, max_iter, fail

        @api.with_callbacks
        def fit(self, X, y=None, sample_weight=None):
            self.steps_ = 0
            metadata = {"sample_weight": sample_weight}
            with fit_task(self, self.n_init, X=X, y=y, metadata=metadata) as fit:
                for _ in range(self.n_init):
                    with fit.subtask("run", self.max_iter) as run:
                        self._run(run)
                fit.attributes = {"n_iter_": self.max_iter}
            self.n_iter_ = self.max_iter
            return self

        def _run(self, run):
            for i in range(self.max_iter):
                with run.subtask("iteration") as step:
                    self.steps_ += 1
                    if self.fail:
                        raise FloatingPointError("diverged")
                    step.attributes = lambda i=i: {"n_iter_": i + 1}
                if step.stop:
                    break

        def predict(self, X):
            return X.mean(axis=1) * self.n_iter_

    return Averager


class Recorder:
    def __init__(self, stop=False, fail_at=()):
        self.events, self.stop, self.fail_at = [], stop, fail_at

    def _note(self, event, context):
        self.events.append((event, context.task_name, context.task_id))
        if event in self.fail_at:
            raise ValueError(f"failed at {event}")

    def setup(self, estimator, context):
        self._note("setup", context)

    def on_fit_task_begin(self, estimator, context):
        self._note("begin", context)

    def on_fit_task_end(self, estimator, context):
        self._note("end", context)
        return self.stop and context.task_name == "iteration"

    def teardown(self, estimator, context):
        self._note("teardown", context)

    def count(self, event):
        return sum(e[0] == event for e in self.events)


class Propagated(Recorder):
    max_propagation_depth = None


def test_without_callbacks_there_is_no_task(api):
    model = averager(api)()
    assert fit_task(model, 2, X=X) is NO_TASK
    assert not NO_TASK
    with NO_TASK.subtask("run", 3) as run:
        run.attributes = {"a_": 1}
    assert run is NO_TASK
    assert run.stop is False
    assert run.attributes is None
    assert model.fit(X).steps_ == 6


def test_hooks_follow_the_tree_of_tasks(api):
    recorder = Recorder()
    model = averager(api)(n_init=1, max_iter=2).set_callbacks(recorder).fit(X)
    assert recorder.events == [
        ("setup", "fit", 0),
        ("begin", "fit", 0),
        ("begin", "run", 0),
        ("begin", "iteration", 0),
        ("end", "iteration", 0),
        ("begin", "iteration", 1),
        ("end", "iteration", 1),
        ("end", "run", 0),
        ("end", "fit", 0),
        ("teardown", "fit", 0),
    ]
    assert not [name for name in vars(model) if "callback" in name and name != "_skl_callbacks"]


def test_a_callback_stops_the_loop_it_follows(api):
    recorder = Recorder(stop=True)
    model = averager(api)(n_init=2, max_iter=5).set_callbacks(recorder).fit(X)
    assert model.steps_ == 2
    assert recorder.count("begin") == recorder.count("end") == 1 + 2 + 2


@pytest.mark.parametrize("event", ["setup", "begin", "end", "teardown"])
def test_teardown_whatever_fails(api, event):
    failing, witness = Recorder(fail_at=(event,)), Recorder()
    model = averager(api)().set_callbacks(witness, failing)
    with pytest.raises(ValueError, match=f"failed at {event}"):
        model.fit(X)
    assert witness.count("teardown") == failing.count("teardown") == 1
    model.set_callbacks().fit(X)


def test_teardown_when_fit_fails(api):
    recorder = Recorder()
    with pytest.raises(FloatingPointError):
        averager(api)(fail=True).set_callbacks(recorder).fit(X)
    assert (recorder.count("teardown"), recorder.count("end")) == (1, 0)


def test_several_failed_teardowns_are_grouped(api):
    model = averager(api)().set_callbacks(*(Recorder(fail_at=("teardown",)) for _ in range(2)))
    with pytest.raises(ExceptionGroup) as caught:
        model.fit(X)
    assert len(caught.value.exceptions) == 2


def test_hooks_get_what_they_name_and_nothing_else_is_computed(api):
    class Curious(Recorder):
        def on_fit_task_end(self, estimator, context, *, X, metadata, fitted_estimator):
            self.events.append((context.task_name, metadata, fitted_estimator))
            if context.task_name == "iteration":
                assert fitted_estimator is not estimator
                np.testing.assert_array_equal(
                    fitted_estimator.predict(X), X.mean(axis=1) * (context.task_id + 1)
                )

    curious = Curious()
    averager(api)().set_callbacks(curious).fit(X)
    fits = [e for e in curious.events if e[0] == "fit"]
    assert fits[0][1] == {}
    assert fits[0][2].n_iter_ == 3
    assert all(e[2] is None for e in curious.events if e[0] == "run")

    context = averager(api)().set_callbacks(Recorder())._init_callback_context()
    context.call_on_fit_task_end(estimator=None, X=lambda: 1 / 0)


def test_a_hook_that_asks_for_what_is_not_offered(api):
    class Wrong(Recorder):
        def on_fit_task_begin(self, estimator, context, *, loss):
            pass

    with pytest.raises(TypeError, match="loss"):
        averager(api)().set_callbacks(Wrong()).fit(X)


@pytest.mark.parametrize("wrong", [None, "ProgressBar", Recorder, object()])
def test_only_instances_of_the_protocol_are_callbacks(api, wrong):
    with pytest.raises(TypeError, match="FitCallback"):
        averager(api)().set_callbacks(wrong)


def test_clones_share_callbacks_and_pickles_copy_them(api):
    recorder = Recorder()
    model = averager(api)(max_iter=1).set_callbacks(recorder)
    twin = clone(model)
    assert twin._skl_callbacks == [recorder]
    assert twin.max_iter == 1
    # The class lives inside a function; what has to pickle is the state.
    assert pickle.loads(pickle.dumps(model.__getstate__()))["_skl_callbacks"][0].events == []
    assert not hasattr(clone(model.set_callbacks()), "_skl_callbacks")


def meta(api):
    class Meta(api.CallbackSupportMixin, ClusterMixin, BaseEstimator):
        def __init__(self, estimator, n=2):
            self.estimator, self.n = estimator, n

        @api.with_callbacks
        def fit(self, X, y=None):
            root = self._init_callback_context(max_subtasks=self.n)
            root.call_on_fit_task_begin(estimator=self, X=X)
            for _ in range(self.n):
                inner = clone(self.estimator)
                leaf = root.subcontext(task_name="inner")
                with leaf.propagate_callback_context(inner):
                    leaf.call_on_fit_task_begin(estimator=self)
                    inner.fit(X, y)
                    leaf.call_on_fit_task_end(estimator=self)
                assert not hasattr(inner, "_parent_callback_ctx")
            root.call_on_fit_task_end(estimator=self, X=X)
            return self

    return Meta


def test_propagation_to_sub_estimators(api):
    outer, inner = Propagated(), Recorder()
    sub = averager(api)(n_init=1, max_iter=2).set_callbacks(inner)
    meta(api)(sub).set_callbacks(outer).fit(X)
    # The leaf of the meta-estimator and the root of the inner one are the same task.
    assert outer.count("begin") == outer.count("end") == 1 + 2 * (1 + 1 + 2)
    assert (outer.count("setup"), outer.count("teardown")) == (1, 1)
    assert (inner.count("setup"), inner.count("teardown")) == (2, 2)
    assert inner.count("end") == 2 * 4


def test_propagation_has_a_depth(api):
    shallow = Propagated()
    shallow.max_propagation_depth = 0
    meta(api)(averager(api)()).set_callbacks(shallow).fit(X)
    assert shallow.count("end") == 1 + 2


def test_propagated_callbacks_belong_on_the_outermost_estimator(api):
    sub = averager(api)().set_callbacks(Propagated())
    with pytest.raises(TypeError, match="Propagated"):
        meta(api)(sub).fit(X)


def test_sub_estimator_without_callbacks_warns(api):
    class Plain(BaseEstimator):
        def fit(self, X, y=None):
            return self

    with pytest.warns(UserWarning, match="does not support callbacks"):
        meta(api)(Plain()).set_callbacks(Propagated()).fit(X)


def test_contexts_number_and_limit_their_subtasks(api):
    model = averager(api)()
    root = model._init_callback_context(max_subtasks=1)
    assert root.subcontext("a").task_id == 0
    with pytest.raises(ValueError):
        root.subcontext("b")
    with pytest.raises(ValueError, match="task_id"):
        model._init_callback_context(max_subtasks=2).subcontext("a", task_id=4)
    free = model._init_callback_context(max_subtasks=None, sequential_subtasks=False)
    with pytest.raises(ValueError, match=r"task_id|number"):
        free.subcontext("a")
    assert free.subcontext("a", task_id=7).parent is free
    with pytest.raises(ValueError):
        free.subcontext("a", task_id=7)
    assert [c.task_id for c in free] == [0, 7]
    assert "task_name='fit'" in repr(free)


@pytest.mark.parametrize("scoring", ["r2", ["r2", "neg_mean_absolute_error"]])
def test_scoring_monitor(api, scoring):
    from sklearn.metrics import get_scorer

    monitor = api.ScoringMonitor(scoring=scoring)
    with pytest.raises(ValueError, match="No logs"):
        monitor.get_logs()
    model = averager(api)(n_init=2, max_iter=3).set_callbacks(monitor).fit(X, Y).fit(X, Y)
    assert len(monitor.get_logs(select="all")) == 2
    log = monitor.get_logs()
    assert log.estimator_name == "Averager"
    assert [row["task_id_path"] for row in log.data] == [
        (0,),
        *((0, run, step) for run in range(2) for step in range(3)),
    ]
    model.n_iter_ = 2
    for name in [scoring] if isinstance(scoring, str) else scoring:
        assert log.data[2][name] == pytest.approx(get_scorer(name)(model, X, Y))
    lineage = monitor.get_logs(include_lineage=True).data
    assert [row["task_id_path"] for row in lineage][:3] == [(0,), (0, 0), (0, 1)]
    assert "r2" not in lineage[1]
    assert lineage[1]["parent_task_id_path"] == (0,)


def test_scoring_monitor_passes_weights(api):
    seen = []

    def scorer(estimator, X, y, sample_weight=None):
        seen.append(sample_weight)
        return {"s": 1.0}

    monitor = api.ScoringMonitor(scoring=scorer)
    weights = np.ones(len(X))
    averager(api)(n_init=1, max_iter=1).set_callbacks(monitor).fit(X, Y, sample_weight=weights)
    assert seen
    assert all(w is weights for w in seen)


def test_scoring_monitor_as_pandas(api):
    pytest.importorskip("pandas")
    monitor = api.ScoringMonitor(scoring="r2")
    averager(api)().set_callbacks(monitor).fit(X, Y)
    frame = monitor.get_logs().data_as_pandas
    assert len(frame) == 7
    assert "r2" in frame


def test_progress_bar(api, capsys):
    pytest.importorskip("rich")
    model = averager(api)(n_init=2, max_iter=3).set_callbacks(api.ProgressBar()).fit(X)
    shown = capsys.readouterr().out
    for bar in ("Averager - fit", "  Averager - run #0", "  Averager - run #1", "100%"):
        assert bar in shown
    assert pickle.dumps(model._skl_callbacks)


def test_progress_bar_moves_its_ancestors(capsys):
    pytest.importorskip("rich")
    from fastml.callback import _progress

    bar = _progress.ProgressBar()
    model = averager(_ours())().set_callbacks(bar)
    root = model._init_callback_context(max_subtasks=2)
    display = _progress._displays[root.root_uuid]
    bar.on_fit_task_begin(model, root)
    run = root.subcontext("run", max_subtasks=4)
    bar.on_fit_task_begin(model, run)
    bar.on_fit_task_end(model, run.subcontext("iteration"))
    assert [task.percentage for task in display.progress.tasks] == [12.5, 25.0]
    bar.on_fit_task_end(model, run)
    assert [task.percentage for task in display.progress.tasks] == [50.0, 100.0]
    bar.teardown(model, root)
    assert root.root_uuid not in _progress._displays


def test_progress_bar_follows_sub_estimators(api, capsys):
    pytest.importorskip("rich")
    meta(api)(averager(api)(n_init=1)).set_callbacks(api.ProgressBar(None)).fit(X)
    shown = capsys.readouterr().out
    assert "  Meta - inner | Averager - fit #1" in shown
    assert "    Averager - run #0" in shown


def test_fit_context_validates_and_tears_down():
    class Averager(averager(fastml.callback)):
        _parameter_constraints: dict = {"n_init": [int], "max_iter": [int], "fail": [bool]}  # noqa: RUF012
        fit = fit_context(prefer_skip_nested_validation=True)(
            averager(fastml.callback).fit.__wrapped__
        )

    recorder = Recorder()
    Averager().set_callbacks(recorder).fit(X)
    assert recorder.count("teardown") == 1
    with pytest.raises(ValueError, match="n_init"):
        Averager(n_init="many").fit(X)
