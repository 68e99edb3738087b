import pickle
import pydoc
import sys
from importlib import import_module

import pytest
import sklearn
import sklearn.dummy

import fastml
from fastml._runtime import modules


@pytest.mark.parametrize("name", sorted(sklearn._submodules))
def test_every_public_module_has_every_public_name(name):
    ours, stock = import_module(f"fastml.{name}"), import_module(f"sklearn.{name}")
    assert getattr(fastml, name) is ours
    replaced = {n for module, n in modules.register if module == stock.__name__}
    replaced |= {n.rpartition(".")[2] for n in modules.own_modules() if n.startswith(ours.__name__)}
    # Not in dir(): experimental features that have to be enabled first.
    for attr in set(getattr(stock, "__all__", dir(stock))) & set(dir(stock)):
        if attr not in replaced and not attr.startswith("__"):
            assert getattr(ours, attr) is getattr(stock, attr), attr


def test_a_module_that_fastml_lacks_is_scikit_learns():
    import fastml.feature_extraction.text
    import sklearn.feature_extraction.text
    from fastml.feature_extraction import text
    from fastml.feature_extraction.text import HashingVectorizer

    assert fastml.feature_extraction.text is text is sklearn.feature_extraction.text
    assert HashingVectorizer is sklearn.feature_extraction.text.HashingVectorizer
    # and does not know it
    assert text.__spec__.name == text.__name__ == "sklearn.feature_extraction.text"


def test_deep_private_modules():
    import fastml.feature_extraction._hash as private
    import sklearn.feature_extraction._hash

    assert private is sklearn.feature_extraction._hash


def test_names_of_the_package():
    from sklearn.base import clone

    from fastml import base, datasets, set_config

    assert datasets is sklearn.datasets
    assert base.clone is clone is fastml.clone
    assert set_config is not sklearn.set_config
    assert fastml.__version__ != sklearn.__version__
    assert {"KMeans", "svm", "clone", "patch_sklearn"} - set(dir(fastml)) == {"KMeans"}
    assert set(sklearn.__all__) <= set(fastml.__all__)
    namespace = {}
    exec("from fastml import *", namespace)
    assert namespace["clone"] is clone
    assert namespace["patch_sklearn"] is fastml.patch_sklearn
    assert "patch_sklearn" in pydoc.render_doc(fastml)


def test_what_neither_has():
    for name in ("nonsense", "_nonsense", "__wrapped__"):
        with pytest.raises(AttributeError, match=f"'fastml' has no attribute '{name}'"):
            getattr(fastml, name)
    for name in ("fastml.nonsense", "fastml.svm.nonsense", "fastml.nonsense.deeper"):
        with pytest.raises(ModuleNotFoundError, match=f"'{name.removesuffix('.deeper')}'"):
            import_module(name)
    with pytest.raises(ImportError, match="cannot import name 'nonsense'"):
        from fastml.svm import nonsense  # noqa: F401


def test_what_is_not_compiled():
    with pytest.raises(ImportError, match=r"not compiled in .*fastml: .*pip install -e"):
        from fastml._native import tangled  # noqa: F401


def test_experimental_features():
    from fastml.experimental import enable_iterative_imputer  # noqa: F401
    from fastml.impute import IterativeImputer

    assert IterativeImputer.__module__ == "sklearn.impute._iterative"


def test_topic_has_ours_and_theirs(topic):
    assert fastml.dummy is topic
    assert topic.DummyClassifier is not sklearn.dummy.DummyClassifier
    assert topic.DummyRegressor is sklearn.dummy.DummyRegressor
    with pytest.raises(AttributeError, match=r"module 'fastml\.dummy' has no attribute 'Smart"):
        _ = topic.SmartClassifier
    assert {"DummyClassifier", "DummyRegressor", "Oracle"} <= set(topic.__all__) & set(dir(topic))
    namespace = {}
    exec("from fastml.dummy import *", namespace)
    assert namespace["DummyRegressor"] is sklearn.dummy.DummyRegressor
    assert namespace["DummyClassifier"] is topic.DummyClassifier
    model = topic.DummyClassifier().fit([[0]], [1])
    assert pickle.loads(pickle.dumps(model)).predict([[5]]) == [1]


def test_view_of_a_private_module_below_a_topic(tmp_path, monkeypatch):
    (tmp_path / "isotonic").mkdir()
    (tmp_path / "isotonic" / "__init__.py").write_text("")
    (tmp_path / "cluster").mkdir()
    (tmp_path / "cluster" / "__init__.py").write_text(
        "import sklearn.cluster\n"
        "from fastml._runtime.modules import fall_through\n"
        "__all__ = ['DBSCAN']\n"
        "class DBSCAN(sklearn.cluster.DBSCAN): pass\n"
        "fall_through(__name__)\n"
    )
    saved = {name: sys.modules.pop(name) for name in list(sys.modules) if "fastml.clus" in name}
    register = {key: value for key, value in modules.register.items() if "sklearn.cluster" in key}
    monkeypatch.setattr(fastml, "__path__", [str(tmp_path), *fastml.__path__])
    monkeypatch.setattr(fastml, "cluster", None, raising=False)
    try:
        import fastml.cluster._dbscan as view
        import sklearn.cluster._dbscan as stock

        assert view.DBSCAN is fastml.cluster.DBSCAN is not stock.DBSCAN
        assert view.dbscan is stock.dbscan
        assert view is not stock
        assert sklearn.cluster._dbscan is stock
        assert view.__file__ == stock.__file__
    finally:
        for name in [name for name in sys.modules if name.startswith("fastml.cluster")]:
            del sys.modules[name]
        sys.modules.update(saved)
        modules.register.pop(("sklearn.cluster", "DBSCAN"))
        modules.register.update(register)


def test_private_modules_of_ours_that_scikit_learn_has_too():
    import sklearn.cluster._kmeans as stock

    import fastml.cluster._kmeans as private

    assert private._tolerance is stock._tolerance
    assert private.KMeans is fastml.cluster.KMeans is not stock.KMeans
    with pytest.raises(AttributeError, match=r"'fastml\.cluster\._kmeans' has no attribute 'no"):
        _ = private.nothing


def test_replacements_come_from_the_topics(topic):
    replaced = fastml.replacements()
    assert replaced["sklearn.dummy", "DummyClassifier"] is topic.DummyClassifier
    assert ("sklearn.dummy", "Oracle") not in replaced  # scikit-learn has no such name
    assert ("sklearn.dummy", "DummyRegressor") not in replaced
    for (module, name), ours in replaced.items():
        assert getattr(import_module(module), name) is not ours
        assert getattr(import_module("fastml" + module.removeprefix("sklearn")), name) is ours


def test_every_topic_falls_through():
    for name in modules.own_modules():
        module = import_module(name)
        stock = import_module(modules.stock_name(name))
        assert set(getattr(stock, "__all__", ())) <= set(module.__all__), name


def test_importing_and_finding_load_nothing(run):
    # Finding must not: Python holds a lock then that other threads need to finish their imports.
    code = (
        "import sys, time; start = time.perf_counter(); import fastml, importlib.util;"
        "assert importlib.util.find_spec('fastml.svm');"
        "print(time.perf_counter() - start);"
        "print([m for m in sys.modules if m.split('.')[0] in ('sklearn', 'numpy', 'numba')])"
    )
    seconds, loaded = run("-S", code=code).stdout.splitlines()
    assert loaded == "[]"
    assert float(seconds) < 0.3


SCRIPT = """
import sklearn
from sklearn.experimental import enable_halving_search_cv
from sklearn import datasets, metrics
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import HalvingGridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import *
from sklearn.utils.estimator_checks import parametrize_with_checks
import sklearn.linear_model as lm
sklearn.set_config(assume_finite=True)
with sklearn.config_context(working_memory=3):
    assert sklearn.get_config()["working_memory"] == 3
X, y = sklearn.datasets.load_iris(return_X_y=True)
model = clone(make_pipeline(StandardScaler(), DummyClassifier())).fit(X, y)
print(metrics.accuracy_score(y, model.predict(X)), sklearn.__version__)
"""


def test_one_word_changed_in_a_script(run):
    stock, ours = run(code=SCRIPT), run(code=SCRIPT.replace("sklearn", "fastml"))
    assert stock.stdout.split()[0] == ours.stdout.split()[0], stock.stderr + ours.stderr
    assert ours.stdout.split()[1] == fastml.__version__
