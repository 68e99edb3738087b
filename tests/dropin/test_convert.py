import copy
import io
import pickle
from functools import partial

import joblib
import numpy as np
import pytest
import scipy.special
import sklearn.cluster
import sklearn.dummy
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import BaggingClassifier, StackingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import fastml
from fastml import from_sklearn, to_sklearn

rng = np.random.RandomState(0)
X = rng.rand(40, 3)
y = (X[:, 0] > 0.5).astype(int)
Stock = sklearn.dummy.DummyClassifier


def nested(Guess):
    """Fitted models of every kind that hold a Guess inside."""
    guess = partial(Guess, strategy="prior")
    columns = ColumnTransformer([("scale", StandardScaler(), [0])], remainder="passthrough")
    models = {
        "plain": guess(),
        "pipeline": make_pipeline(columns, FunctionTransformer(np.exp), guess()),
        "search": GridSearchCV(guess(), {"strategy": ["prior", "most_frequent"]}, cv=2),
        "search over estimators": GridSearchCV(
            make_pipeline(StandardScaler(), guess()),
            {"dummyclassifier": [guess(), guess(strategy="stratified", random_state=0)]},
            cv=2,
        ),
        "bagging": BaggingClassifier(guess(), n_estimators=3, random_state=rng),
        "stacking": StackingClassifier([("a", guess()), ("b", LogisticRegression())], cv=2),
        "one versus rest": OneVsRestClassifier(guess()),
    }
    for model in models.values():
        model.fit(X, y)
    return models


def classes_within(model):
    seen = set()

    class Spy(pickle.Pickler):
        def reducer_override(self, obj):
            seen.add(obj if isinstance(obj, type) else type(obj))
            return NotImplemented

    Spy(io.BytesIO()).dump(model)
    return seen


KINDS = list(nested(Stock))


@pytest.mark.parametrize("kind", KINDS)
def test_there_and_back(topic, kind):
    model = nested(topic.DummyClassifier)[kind]
    before = pickle.dumps(model)
    stock = to_sklearn(model)
    assert topic.DummyClassifier not in classes_within(stock)
    assert Stock in classes_within(stock)
    assert b"fastml" not in pickle.dumps(stock)
    assert pickle.dumps(model) == before
    np.testing.assert_array_equal(stock.predict(X), model.predict(X))
    np.testing.assert_array_equal(stock.predict_proba(X), model.predict_proba(X))

    back = from_sklearn(stock)
    assert Stock not in classes_within(back)
    assert topic.DummyClassifier in classes_within(back)
    assert isinstance(back, type(model))  # Bagging is replaced, the others are not
    np.testing.assert_array_equal(back.predict_proba(X), model.predict_proba(X))
    assert "_sklearn_version" not in str(vars(back))


@pytest.mark.filterwarnings("error")
def test_the_stock_model_is_what_scikit_learn_would_have_made(topic):
    ours, theirs = topic.DummyClassifier().fit(X, y), Stock().fit(X, y)
    assert "_fastml_cache" in vars(ours)
    converted = to_sklearn(ours)
    assert type(converted) is Stock
    assert vars(converted).keys() == vars(theirs).keys()
    assert pickle.loads(pickle.dumps(converted)).get_params() == theirs.get_params()
    assert type(from_sklearn(theirs)) is topic.DummyClassifier


def test_containers_share_what_was_shared(topic):
    one = topic.DummyClassifier().fit(X, y)
    array = np.array([one, None, [one]], dtype=object)
    out = to_sklearn({"a": one, "b": (one, {"c": array}), 3: X, "class": topic.DummyClassifier})
    assert out["a"] is out["b"][0] is out["b"][1]["c"][0] is out["b"][1]["c"][2][0]
    assert type(out["a"]) is out["class"] is Stock
    assert out[3] is not X
    assert (out[3] == X).all()
    out[3][0] = 5  # a copy that can be written to
    assert X[0, 0] < 1


def test_functions_and_what_pickle_cannot_find_by_name(topic):
    def local(Z):
        return Z + 1

    model = make_pipeline(FunctionTransformer(local), topic.DummyClassifier()).fit(X, y)
    model.others = [np.exp, scipy.special.expit, str.join, "x".join, len, np.float32, local]
    out = to_sklearn(model)
    assert out.others[:3] + out.others[4:] == model.others[:3] + model.others[4:]
    assert out[0].func is local
    assert type(out[-1]) is Stock


def test_models_without_ours_are_copied(topic):
    model = LogisticRegression().fit(X, y)
    out = from_sklearn(to_sklearn(model))
    assert type(out) is LogisticRegression
    assert out is not model
    assert not np.shares_memory(out.coef_, model.coef_)


def test_unfitted_models(topic):
    out = to_sklearn(topic.DummyClassifier(strategy="constant", constant=1))
    assert out.fit(X, y).predict(X[:1]) == [1]
    assert out.strategy == "constant"


def test_state_hook(topic, monkeypatch):
    def hook(self, state):
        return state | {"class_prior_": self.class_prior_[::-1]}

    monkeypatch.setattr(topic.DummyClassifier, "__to_sklearn_state__", hook, raising=False)
    model = topic.DummyClassifier().fit(X, y)
    np.testing.assert_array_equal(to_sklearn(model).class_prior_, model.class_prior_[::-1])


def test_what_has_no_counterpart_is_named_with_its_place(topic):
    pipeline = make_pipeline(StandardScaler(), topic.Oracle())
    with pytest.raises(TypeError, match=r"fastml\.dummy\.Oracle, at model\['p'\]\.steps\[1\]\[1\]"):
        to_sklearn({"p": pipeline})
    with pytest.raises(TypeError, match=r"^fastml\.dummy\.Oracle has no counterpart"):
        to_sklearn(topic.Oracle())
    with pytest.raises(TypeError, match=r"_explain.*, at model\.func, has no counterpart"):
        to_sklearn(FunctionTransformer(fastml._runtime.convert._explain))

    class Mine(topic.DummyClassifier):
        pass

    with pytest.raises(TypeError, match=r"Mine, at model\[0\], derives from fastml\.dummy\.Dummy"):
        to_sklearn([Mine()])


def test_while_patched(topic):
    with fastml.patched():
        model = sklearn.dummy.DummyClassifier().fit(X, y)
        stock = to_sklearn(model)
        data = pickle.dumps(stock)
        buffer = io.BytesIO()
        joblib.dump(stock, buffer)
    assert type(model) is topic.DummyClassifier
    assert type(stock) is type(pickle.loads(data)) is Stock
    buffer.seek(0)
    assert type(joblib.load(buffer)) is Stock


WITHOUT_FASTML = """
import pickle, sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "fastml":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Block())
for name in [name for name in sys.modules if name.split(".")[0] == "fastml"]:
    del sys.modules[name]
with open(sys.argv[1], "rb") as file:
    models, X = pickle.load(file)
for model in models.values():
    print(model.predict(X).tolist())
"""


def test_loads_where_fastml_is_not_installed(topic, run, tmp_path):
    with fastml.patched():
        models = nested(topic.DummyClassifier)
        (tmp_path / "models.pkl").write_bytes(pickle.dumps((to_sklearn(models), X)))
    script = tmp_path / "script.py"
    script.write_text(WITHOUT_FASTML)
    result = run("-W", "error", str(script), str(tmp_path / "models.pkl"), env={"PYTHONPATH": ""})
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == [str(m.predict(X).tolist()) for m in models.values()]


@pytest.mark.filterwarnings("error::UserWarning")
@pytest.mark.parametrize("name", ["KMeans", "MiniBatchKMeans"])
def test_k_means(name):
    ours = getattr(fastml.cluster, name)(3, n_init=1, random_state=0).fit(X)
    theirs = getattr(sklearn.cluster, name)(3, n_init=1, random_state=0).fit(X)
    stock = to_sklearn(ours)
    assert type(stock) is type(theirs)
    assert vars(stock).keys() == vars(theirs).keys()
    np.testing.assert_array_equal(stock.predict(X), ours.predict(X))
    np.testing.assert_allclose(from_sklearn(theirs).transform(X), theirs.transform(X))
    with fastml.patched():
        loaded = pickle.loads(pickle.dumps(theirs))
        assert type(loaded) is type(ours)
        np.testing.assert_array_equal(loaded.predict(X), theirs.predict(X))
    for model in (ours, stock, loaded):
        np.testing.assert_allclose(from_sklearn(to_sklearn(model)).score(X), model.score(X))


def through_joblib(model):
    buffer = io.BytesIO()
    joblib.dump(model, buffer)
    buffer.seek(0)
    return joblib.load(buffer)


def through_cloudpickle(model):
    cloudpickle = pytest.importorskip("cloudpickle")
    return pickle.loads(cloudpickle.dumps(model))


def through_skops(model):
    sio = pytest.importorskip("skops.io")
    data = sio.dumps(model)
    return sio.loads(data, trusted=sio.get_untrusted_types(data=data))


@pytest.mark.parametrize(
    "through",
    [
        lambda model: pickle.loads(pickle.dumps(model)),
        copy.copy,
        copy.deepcopy,
        through_joblib,
        through_cloudpickle,
        through_skops,
    ],
)
@pytest.mark.parametrize("patch", [False, True])
def test_other_ways_to_copy(topic, through, patch):
    model = make_pipeline(StandardScaler(), topic.DummyClassifier()).fit(X, y)
    with fastml.patched() if patch else fastml.config_context():
        out = through(model)
    assert type(out[-1]) is topic.DummyClassifier
    np.testing.assert_array_equal(out.predict_proba(X), model.predict_proba(X))
