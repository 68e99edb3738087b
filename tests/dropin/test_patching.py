import copy
import copyreg
import pickle
import sys
import threading
from importlib import import_module
from types import ModuleType

import pytest
import sklearn.cluster
import sklearn.dummy
import sklearn.utils.discovery
from sklearn.exceptions import InconsistentVersionWarning

import fastml
from fastml._runtime import patching

# In a list, or patching would rebind this module's own name for it.
(STOCK,) = [[sklearn.dummy.DummyClassifier]]
X, y = [[0], [1]], [1, 1]


def bound():
    return sklearn.dummy.DummyClassifier


def everything():
    """Every name in every loaded module of scikit-learn's, and every entry of their tables."""
    names = {}
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] == "sklearn" and isinstance(module, ModuleType):
            for key, value in vars(module).items():
                names[name, key] = value
                if type(value) is dict and not key.startswith("__"):
                    names |= {(name, key, k): v for k, v in value.items()}
    return {key: id(value) for key, value in names.items()}


def test_rebinds_and_undoes_exactly(topic):
    before, meta_path, table = everything(), sys.meta_path[:], copyreg.dispatch_table.copy()
    fastml.patch_sklearn()
    assert bound() is topic.DummyClassifier
    assert everything() != before
    for name, module in list(sys.modules.items()):
        if name.startswith("sklearn.") and isinstance(module, ModuleType):
            assert STOCK[0] not in [v for v in vars(module).values() if isinstance(v, type)], name
    fastml.unpatch_sklearn()
    assert everything() == before
    assert sys.meta_path == meta_path
    assert copyreg.dispatch_table == table


def test_is_idempotent(topic):
    before = everything()
    fastml.patch_sklearn()
    after = everything()
    fastml.patch_sklearn()
    assert everything() == after
    fastml.unpatch_sklearn()
    assert everything() == before
    fastml.unpatch_sklearn()
    assert everything() == before


@pytest.mark.parametrize(
    "names",
    ["DummyClassifier", "dummy", ["dummy.DummyClassifier"], {"sklearn.dummy.DummyClassifier"}],
)
def test_names(topic, names):
    with fastml.patched(names):
        assert bound() is topic.DummyClassifier
        assert not any(
            getattr(import_module(module), name) is ours
            for (module, name), ours in fastml.replacements().items()
            if module != "sklearn.dummy"
        )
    assert bound() is STOCK[0]


def test_unknown_name(topic):
    with pytest.raises(ValueError, match=r"'DummyClasifier'.* mean 'DummyClassifier'"):
        fastml.patch_sklearn("DummyClasifier")
    with pytest.raises(ValueError, match="'Oracle'"):  # ours, but not scikit-learn's
        fastml.patch_sklearn(["DummyClassifier", "Oracle"])
    assert bound() is STOCK[0]


def test_nested_blocks(topic):
    with fastml.patched("dummy"):
        with fastml.patched():
            with fastml.patched("DummyClassifier"):
                fastml.patch_sklearn()
            assert bound() is topic.DummyClassifier
            fastml.unpatch_sklearn()  # takes back patch_sklearn, not the blocks around
            assert bound() is topic.DummyClassifier
        assert bound() is topic.DummyClassifier
    assert bound() is STOCK[0]
    with pytest.raises(ZeroDivisionError), fastml.patched():
        raise ZeroDivisionError
    assert bound() is STOCK[0]


def test_names_add_up(topic):
    patching.add(frozenset({"elsewhere"}))
    assert bound() is STOCK[0]
    fastml.patch_sklearn("dummy")
    assert bound() is topic.DummyClassifier
    fastml.unpatch_sklearn()
    assert bound() is STOCK[0]


def test_names_of_the_users_modules(topic, monkeypatch):
    main, mine, package = sys.modules["__main__"], ModuleType("mine"), ModuleType("package")
    monkeypatch.setattr(main, "Guess", STOCK[0], raising=False)
    mine.__file__, package.__file__ = "/home/me/mine.py", "/venv/lib/site-packages/package.py"
    for module in (mine, package):
        module.Guess = module.Changed = STOCK[0]
        monkeypatch.setitem(sys.modules, module.__name__, module)
    with fastml.patched():
        assert main.Guess is mine.Guess is mine.Changed is topic.DummyClassifier
        assert package.Guess is STOCK[0]
        mine.Changed = 3
        mine.Ours = topic.DummyClassifier
    assert main.Guess is mine.Guess is STOCK[0]
    assert mine.Changed == 3
    assert mine.Ours is topic.DummyClassifier


def test_our_own_modules_keep_what_they_imported(topic):
    topic.kept = STOCK[0]
    topic.__file__, file = "/home/me/fastml/dummy.py", topic.__file__
    with fastml.patched():
        assert topic.kept is STOCK[0]
        assert STOCK[0] in topic.DummyClassifier.__mro__
        assert topic.DummyClassifier(strategy="uniform").fit(X, y).predict(X).tolist() == y
    topic.__file__ = file


def test_tables_are_rebound(topic, monkeypatch):
    table = {"guess": STOCK[0], "other": 1}
    monkeypatch.setattr(sklearn.dummy, "_TABLE", table, raising=False)
    with fastml.patched():
        assert table == {"guess": topic.DummyClassifier, "other": 1}
    assert table == {"guess": STOCK[0], "other": 1}


def test_all_estimators(topic):
    stock = dict(sklearn.utils.discovery.all_estimators())
    with fastml.patched():
        ours = dict(sklearn.utils.discovery.all_estimators())
    assert list(stock) == list(ours)
    assert ours["DummyClassifier"] is topic.DummyClassifier


def test_subclasses_of_the_stock_class_keep_working(topic):
    class Sub(STOCK[0]):
        def fit(self, X, y):
            return super().fit(X, y)

    with fastml.patched():
        assert Sub().fit(X, y).predict(X).tolist() == y
        assert pickle.loads(pickle.dumps(STOCK[0]())).strategy == "prior"


def test_stock_instances_can_be_pickled_and_copied_while_patched(topic):
    model = STOCK[0](strategy="constant", constant=1).fit(X, y)
    with fastml.patched():
        assert type(copy.copy(model)) is type(copy.deepcopy(model)) is STOCK[0]
        assert copy.copy(model).class_prior_ is model.class_prior_
        data = [pickle.dumps(model, protocol) for protocol in range(2, 6)]
        # Its name leads to ours here.
        assert type(pickle.loads(data[0])) is topic.DummyClassifier
    for copied in map(pickle.loads, data):
        assert type(copied) is STOCK[0]
        assert copied.get_params() == model.get_params()
        assert copied.predict(X).tolist() == y
    assert b"fastml" not in b"".join(data)


def test_aliases_inside_scikit_learn():
    from sklearn.cluster import _bisect_k_means, _spectral

    before = _spectral.k_means, sklearn.cluster._kmeans.KMeans
    with fastml.patched():
        assert _spectral.k_means is fastml.cluster.k_means
        assert sklearn.cluster._kmeans.KMeans is fastml.cluster.KMeans
        model = sklearn.cluster.BisectingKMeans(2, random_state=0).fit([[0], [1], [9]])
        assert model.labels_.tolist() in ([0, 0, 1], [1, 1, 0])
        assert _bisect_k_means._BaseKMeans in fastml.cluster.KMeans.__mro__
    assert before == (_spectral.k_means, sklearn.cluster._kmeans.KMeans)
    assert before[1] is not fastml.cluster.KMeans


def test_stock_pickles_load_as_ours_while_patched(topic):
    data = pickle.dumps(STOCK[0]().fit(X, y))
    with fastml.patched():
        model = pickle.loads(data)
    assert type(model) is topic.DummyClassifier
    assert model.predict(X).tolist() == y
    assert vars(model).keys() == vars(STOCK[0]().fit(X, y)).keys()


def test_pickles_of_other_versions_of_scikit_learn(topic):
    model = topic.DummyClassifier().fit(X, y)
    data = pickle.dumps(model)
    assert vars(pickle.loads(data)).keys() == vars(model).keys()
    other = data.replace(sklearn.__version__.encode(), b"0" * len(sklearn.__version__))
    with pytest.warns(InconsistentVersionWarning, match="DummyClassifier from version 000"):
        pickle.loads(other)


def test_threads(topic):
    before, errors = everything(), []

    def work(seed):
        try:
            for i in range(30):
                with fastml.patched("dummy" if (i + seed) % 2 else None):
                    assert bound() is topic.DummyClassifier
                    fastml.patch_sklearn()
                    fastml.unpatch_sklearn()
                    assert bound() is topic.DummyClassifier
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert everything() == before


LAZY = """
import sys, fastml
fastml.patch_sklearn()
assert "sklearn" not in sys.modules          # patching imports nothing that is not there
import sklearn.linear_model
assert "fastml.dummy" not in sys.modules
from sklearn.dummy import DummyClassifier as Guess
assert Guess is sys.modules["fastml.dummy"].DummyClassifier
import sklearn.multioutput                   # imported after the topic
spec = sklearn.dummy.__spec__
assert type(spec.loader).__name__ == type(sklearn.dummy.__loader__).__name__ == "SourceFileLoader"
from sklearn.dummy import DummyRegressor
assert DummyRegressor.__module__ == "sklearn.dummy"
fastml.unpatch_sklearn()
assert sklearn.dummy.DummyClassifier.__module__ == "sklearn.dummy"
print("done")
"""

OURS_FIRST = """
import fastml, sys
fastml.patch_sklearn()
from fastml.dummy import DummyClassifier     # imports sklearn.dummy, half way through
import sklearn.dummy
assert sklearn.dummy.DummyClassifier is DummyClassifier
fastml.unpatch_sklearn()
assert sklearn.dummy.DummyClassifier.__module__ == "sklearn.dummy"
print("done")
"""

CHILDREN = """
import os, subprocess, sys, fastml
def child():
    code = "from sklearn.dummy import DummyClassifier as D; print(D.__module__)"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
before = dict(os.environ)
fastml.patch_sklearn(children=True)
print(child(), end="")
fastml.unpatch_sklearn()
assert dict(os.environ) == before
print(child(), end="")
"""


@pytest.mark.parametrize(
    ("code", "out"),
    [(LAZY, "done\n"), (OURS_FIRST, "done\n"), (CHILDREN, "fastml.dummy\nsklearn.dummy\n")],
)
def test_import_order(run, code, out):
    result = run(code=code)
    assert result.stdout == out, result.stderr


def test_ipython_extension(topic, monkeypatch):
    IPython = pytest.importorskip("IPython.core.interactiveshell")
    shell = IPython.InteractiveShell.instance()
    try:
        shell.run_cell("from sklearn.dummy import DummyClassifier as Guess")
        shell.run_line_magic("load_ext", "fastml")
        assert shell.user_ns["Guess"] is bound() is topic.DummyClassifier
        shell.run_line_magic("unload_ext", "fastml")
        assert shell.user_ns["Guess"] is bound() is STOCK[0]
    finally:
        IPython.InteractiveShell.clear_instance()
