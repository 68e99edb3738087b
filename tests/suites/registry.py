"""What fastml replaces and adds, as the suites need it: an estimator joins by adding its name.

A `Subject` runs on data and returns named arrays, whether it is a class or a function,
fastml's or scikit-learn's; the suites compare such outcomes and need to know no more.
"""

import importlib
import inspect
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import is_classifier

import fastml

METHODS = ("predict", "transform", "predict_proba", "decision_function", "score_samples")


@dataclass(frozen=True)
class Subject:
    """A class or function of fastml's, and how to run it.

    params: a quick and seeded run on a few hundred rows.
    large: what to change of them for the tens of thousands of rows that occupy threads.
    long: one that takes many seconds on `long_shape` data, for Ctrl-C to interrupt.
    most: as many rows as `run_large` takes, where time grows with their square.
    call: for a function, what it returns by name; classes give their attributes.
    comparable: prepares an outcome for comparison with scikit-learn's.
    lenient: whether it may work where scikit-learn stumbles over its own input.
    unspecified: kinds of hostile input whose outcome is not compared, and why.
    like: for an estimator that scikit-learn has not, the one of its that takes the same input.
    excused: for such an estimator, the checks of `check_estimator` that it need not pass, and why.
    for_sparse: what to change of the parameters for sparse matrices; None if it takes none.
    """

    name: str
    params: dict[str, Any]
    long: tuple[dict[str, Any], ...]
    large: dict[str, Any] = field(default_factory=dict)
    long_shape: tuple[int, int] = (100_000, 20)
    most: int | None = None
    call: Callable | None = None
    comparable: Callable[[dict], dict] = dict
    lenient: bool = False
    unspecified: dict[str, str] = field(default_factory=dict)
    like: str = ""
    excused: dict[str, str] = field(default_factory=dict)
    for_sparse: dict[str, Any] | None = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name.rpartition(".")[2]

    @property
    def module(self) -> str:
        return self.name.rpartition(".")[0]

    def native(self) -> Any:
        return getattr(importlib.import_module(f"fastml.{self.module}"), str(self))

    def stock(self) -> Any:
        module, _, name = (self.like or self.name).rpartition(".")
        return getattr(importlib.import_module(f"sklearn.{module}"), name)

    def make(self, stock: bool = False, **params: Any) -> Any:
        """Return an unfitted estimator."""
        return (self.stock() if stock else self.native())(**(self.params | params))

    def run_large(self, X: Any, weight: Any = None) -> dict:
        weight = weight if weight is None else weight[: self.most]
        return self.run(X[: self.most], weight, **self.large)

    def run(self, X: Any, weight: Any = None, stock: bool = False, **params: Any) -> dict:
        """Fit and use it; fastml's must not fall back to scikit-learn for that."""
        with fastml.config_context(strict=not stock), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if sparse.issparse(X):
                params = (self.for_sparse or {}) | params
            if self.call is not None:
                function = self.stock() if stock else self.native()
                return self.call(function, X, sample_weight=weight, **(self.params | params))
            model = self.make(stock, **_accepted(self.stock(), params))
            return outcome(model.fit(X, **_accepted(model.fit, {"sample_weight": weight})), X)


def _accepted(function: Callable, params: dict) -> dict:
    """Leave out a seed or weights where there is no such parameter."""
    known = inspect.signature(function).parameters
    return {k: v for k, v in params.items() if k in known or k not in _OPTIONAL}


_OPTIONAL = ("random_state", "sample_weight")


def outcome(model: Any, X: Any) -> dict[str, np.ndarray]:
    """Return a fitted model's public attributes and its answers on X."""
    found = {k: v for k, v in vars(model).items() if k.endswith("_") and not k.startswith("_")}
    found |= {f"{m}()": getattr(model, m)(X) for m in METHODS if hasattr(model, m)}
    arrays = {k: v.toarray() if sparse.issparse(v) else np.asarray(v) for k, v in found.items()}
    return {k: v for k, v in arrays.items() if v.dtype.kind in "biuf"}


def _by_centers(outcome: dict) -> dict:
    """Give each row its center in place of its label: centers may coincide."""
    centers = outcome["cluster_centers_"]
    return {
        name: centers[value] if name in ("labels_", "predict()") else value
        for name, value in outcome.items()
    }


def _k_means(function, X, **params):
    names = ("cluster_centers_", "labels_", "inertia_")
    return dict(zip(names, map(np.asarray, function(X, **params)), strict=True))


def _kmeans_plusplus(function, X, **params):
    centers, indices = function(X, **params)
    centers = centers.toarray() if sparse.issparse(centers) else centers
    return {"centers": centers, "indices": indices}


def _pairs(function, X, sample_weight=None, random_state=None, **params):
    few = X.tocsr()[:64] if sparse.issparse(X) else X[:64]
    return {"pairs": function(X, few, **params), "own": function(few, **params)}


def _neighbors(estimator, X, sample_weight=None, random_state=None, **params):
    """Distances: rows may be as near as one another."""
    model = estimator(**params).fit(X)
    radius = np.quantile(model.kneighbors()[0], 0.5) * 1.001
    near, _ = model.radius_neighbors(radius=radius, sort_results=True)
    return {"kneighbors": model.kneighbors()[0], "radius_neighbors": np.concatenate(list(near))}


def _outliers(estimator, X, sample_weight=None, random_state=None, **params):
    model = estimator(**params).fit(X)
    return {"factors": model.negative_outlier_factor_}


def _of_trees(estimator, X, sample_weight=None, **params):
    """Trees on targets that rows alone do not tell."""
    n = np.shape(X)[0] if np.ndim(X) or sparse.issparse(X) else 0
    kinds = 3 if "Classifier" in estimator.__name__ else max(n, 1)
    y = np.random.default_rng(n).integers(0, kinds, n)
    model = estimator(**params).fit(X, y, sample_weight=sample_weight)
    trees = [tree.tree_ for tree in getattr(model, "estimators_", [model])]
    return {
        "threshold": np.concatenate([tree.threshold for tree in trees]),
        "feature": np.concatenate([tree.feature for tree in trees]),
        "value": np.concatenate([tree.value.ravel() for tree in trees]),
        "predict()": model.predict(X),
    }


def _on_targets(estimator, X, sample_weight=None, random_state=None, **params):
    """Targets that rows alone do not tell."""
    n = np.shape(X)[0] if np.ndim(X) or sparse.issparse(X) else 0
    y = np.random.default_rng(n).normal(size=n)
    found = outcome(estimator(**params).fit(X, y, sample_weight=sample_weight), X)
    return {name: value for name, value in found.items() if name != "n_iter_"}


def _linear(estimator, X, sample_weight=None, **params):
    """A linear model of targets that rows alone do not tell."""
    n = np.shape(X)[0] if np.ndim(X) or sparse.issparse(X) else 0
    y = np.random.default_rng(n).integers(0, 3, n)
    model = estimator(**params).fit(X, y, sample_weight=sample_weight)
    return {"coef": model.coef_, "intercept": np.asarray(model.intercept_)}


def _of_ratings(estimator, X, sample_weight=None, **params):
    """What users, the rows, would like best; all entries that are not zero are their ratings."""
    R = abs(X.copy() if sparse.issparse(X) else sparse.csr_matrix(np.asarray(X)))
    if "likelihood" in inspect.signature(estimator).parameters:
        params["likelihood"] = "gaussian"  # the one for any number
    model = estimator(**params).fit(R)
    if not hasattr(model, "recommend"):
        return {}
    _, scores = model.recommend(k=3, filter_seen=False)
    return {"users": model.user_factors_, "items": model.item_factors_, "scores": scores}


def _linear(estimator, X, sample_weight=None, **params):
    """A linear model of targets that rows alone do not tell, as far as liblinear's digits go."""
    n = np.shape(X)[0] if np.ndim(X) or sparse.issparse(X) else 0
    y = np.random.default_rng(n).integers(0, 3, n)
    model = estimator(**params).fit(X, y, sample_weight=sample_weight)
    return {name: np.float32(getattr(model, name)) for name in ("coef_", "intercept_")}


def _on_targets(estimator, X, sample_weight=None, random_state=None, **params):
    """Targets that rows alone do not tell."""
    n = np.shape(X)[0] if np.ndim(X) or sparse.issparse(X) else 0
    y = np.random.default_rng(n).normal(size=n)
    y = np.arange(n) % 2 if is_classifier(estimator()) else y
    found = outcome(estimator(**params).fit(X, y, sample_weight=sample_weight), X)
    return {name: value for name, value in found.items() if name != "n_iter_"}


def _of_machines(estimator, X, sample_weight=None, random_state=None, **params):
    """Machines on targets that rows do not tell."""
    n = np.shape(X)[0] if np.ndim(X) or sparse.issparse(X) else 0
    rng = np.random.default_rng(n)
    y = rng.integers(0, 3, n) if "SVC" in estimator.__name__ else rng.normal(size=n)
    model = estimator(**params).fit(X, y, sample_weight=sample_weight)
    decision = getattr(model, "decision_function", model.predict)(X)
    return {"predict()": model.predict(X), "decision": decision}


def _decided(outcome: dict) -> dict:
    """Which side rows are on that are not on the boundary, as support vectors are."""
    clear = abs(outcome["decision"]) > 0.0123
    return {"sides": np.sign(outcome["decision"]) * clear, "predict()": outcome["predict()"][:0]}


def _of_components(estimator, X, sample_weight=None, random_state=None, **params):
    """What does not depend on signs, nor on components without variance."""
    model = estimator(**params).fit(X)
    V = model.components_ * np.sqrt(model.explained_variance_)[:, None]
    Z = model.transform(X)[:200]
    found = {"mean": model.mean_, "components": V.T @ V, "transform()": Z @ Z.T}
    found |= {name: getattr(model, name) for name in ("explained_variance_", "noise_variance_")}
    single = getattr(X, "dtype", None) == np.float32  # of which doubles may be made
    return {k: np.asarray(v, np.float32 if single else None) for k, v in found.items()}


def _of_factors(estimator, X, sample_weight=None, random_state=None, **params):
    """What does not depend on signs."""
    model = estimator(**params).fit(X)
    Z = model.transform(X)[:200]
    found = {name: getattr(model, name) for name in ("mean_", "noise_variance_", "loglike_")}
    found |= {"covariance": model.get_covariance(), "score_samples()": model.score_samples(X)}
    return {k: np.asarray(v) for k, v in found.items()} | {"transform()": Z @ Z.T}


def _components(outcome: dict) -> dict:
    """Those whose eigenvalues are more than rounding in a matrix of ones."""
    clear = outcome["eigenvalues_"] > 1e-5
    names = ("eigenvalues_", "eigenvectors_", "transform()")
    return {name: v * clear if name in names else v for name, v in outcome.items()}


_QUICK = {"n_clusters": 3, "n_init": 2, "max_iter": 20, "random_state": 0}
_ENDLESS = {"n_clusters": 200, "n_init": 20, "max_iter": 1000, "tol": 0, "random_state": 0}


def _scaled(function, X, sample_weight=None, random_state=None, **params):
    Z = function(X, **params)
    return {"X": Z.toarray() if sparse.issparse(Z) else np.asarray(Z)}


def _parts(estimator, X, sample_weight=None, **params):
    """A factorisation of the sizes of the entries."""
    X = abs(X.copy() if sparse.issparse(X) else X)
    return outcome(estimator(**params).fit(X), X)


def _without_error(outcome: dict) -> dict:
    """What is left of X may be nothing but rounding."""
    return {k: v for k, v in outcome.items() if k != "reconstruction_err_"}


def _factors(function, X, sample_weight=None, **params):
    W, H, _ = function(abs(X.copy() if sparse.issparse(X) else X), **params)
    return {"W": W, "H": H}


_TIES = {
    "bool": "rows as far from one center as from another",
    "huge": "squared distances overflow",
}

_FEW_ROWS = ("constant", "constant_feature", "duplicates", "denormal", "wide", "csr_empty", "bool")
_SPARSE = ("csr", "csr_int64", "csc", "csr_messy", "csr_empty")
_SHUFFLED = {
    f"check_sample_weight_equivalence_on_{kind}_data": "other rows are drawn once they are shuffled"
    for kind in ("dense", "sparse")
}

SUBJECTS = [
    Subject(
        "cluster.KMeans",
        _QUICK,
        long=(
            _ENDLESS | {"algorithm": "lloyd"},
            _ENDLESS | {"algorithm": "elkan", "init": "random"},
            {"n_clusters": 3000, "n_init": 1, "max_iter": 1, "random_state": 0},
        ),
        comparable=_by_centers,
        unspecified=_TIES,
    ),
    Subject(
        "cluster.MiniBatchKMeans",
        _QUICK | {"batch_size": 32, "max_no_improvement": None, "tol": 0.0},
        long=(_ENDLESS | {"n_init": 1, "batch_size": 2048, "max_no_improvement": None},),
        large={"batch_size": 8192},
        comparable=_by_centers,
        unspecified=_TIES,
    ),
    Subject(
        "cluster.BisectingKMeans",
        _QUICK,
        long=(_ENDLESS,),
        comparable=_by_centers,
        unspecified=_TIES,
    ),
    Subject(
        "cluster.k_means",
        _QUICK,
        long=(_ENDLESS,),
        call=_k_means,
        comparable=_by_centers,
        unspecified=_TIES,
    ),
    Subject(
        "cluster.kmeans_plusplus",
        {"n_clusters": 3, "random_state": 0},
        long=({"n_clusters": 3000, "random_state": 0},),
        call=_kmeans_plusplus,
        # It checks its input and then goes on with what it was given, whatever the dtype.
        lenient=True,
        unspecified=_TIES | {"int8": "scikit-learn's distances wrap around"},
    ),
    Subject(
        "cluster.KMedians",
        _QUICK,
        long=(
            _ENDLESS | {"init": "random"},
            {"n_clusters": 3000, "max_iter": 1, "random_state": 0},
        ),
        like="cluster.KMeans",
        excused=_SHUFFLED,
    ),
    Subject(
        "cluster.KernelKMeans",
        _QUICK,
        long=(_ENDLESS, _ENDLESS | {"max_gram_mb": 0}),
        large={"max_gram_mb": 0, "max_iter": 2, "n_init": 1},
        most=2000,
        long_shape=(8_000, 20),
        like="cluster.KMeans",
        excused=_SHUFFLED,
        unspecified=dict.fromkeys(_FEW_ROWS, "clusters without rows have no center")
        | {"huge": "squares overflow", "random": "rows may coincide"},
    ),
    Subject(
        "cluster.MahalanobisKMeans",
        _QUICK,
        long=(_ENDLESS,),
        like="cluster.KMeans",
        excused=_SHUFFLED,
        unspecified=dict.fromkeys(_FEW_ROWS, "the covariance is singular")
        | dict.fromkeys(_SPARSE, "sparse rows are refused")
        | {"huge": "squares overflow", "random": "both"},
        for_sparse=None,
    ),
    *(
        Subject(
            f"recommendation.{name}",
            {"n_components": 3, "max_iter": 4, "random_state": 0},
            long=({"n_components": 60, "max_iter": 10_000, "tol": 0} | solver,),
            call=_of_ratings,
            like="decomposition.NMF",
            unspecified={"huge": "squares overflow"}
            | dict.fromkeys(("1d", "3d", "object", "string", "masked"), "no sparse matrix")
            | dict.fromkeys(("csr_messy", "csr_empty"), "duplicates, and no ratings, are errors")
            | {"random": "so they are here"},
        )
        for name, solver in (
            ("ALS", {"solver": "cholesky"}),
            ("ImplicitALS", {"solver": "cg"}),
            ("SGDFactorization", {}),
            ("GLMFactorization", {"solver": "cg"}),
        )
    ),
    Subject(
        "metrics.pairwise.rbf_kernel",
        {"gamma": 0.05},
        long=(),
        call=_pairs,
        lenient=True,  # CSR with 64-bit indices
        unspecified={
            "huge": "scikit-learn's squared distances overflow",
            "csr_messy": "scikit-learn takes norms of stored values, without adding duplicates",
        },
    ),
    Subject(
        "metrics.pairwise.polynomial_kernel", {"degree": 2}, long=(), call=_pairs, lenient=True
    ),
    Subject(
        "metrics.pairwise.pairwise_distances",
        {"metric": "manhattan"},
        long=({"metric": "minkowski", "p": 2.5},),
        long_shape=(100_000, 600),
        call=_pairs,
        lenient=True,  # CSR with 64-bit indices
    ),
    Subject(
        "neighbors.NearestNeighbors",
        {"n_neighbors": 4},
        most=6_000,
        long=({},),
        long_shape=(400_000, 20),
        call=_neighbors,
        unspecified={
            "huge": "squared distances overflow",
            "csr_messy": "scikit-learn's distances are wrong",
        },
    ),
    Subject(
        "neighbors.LocalOutlierFactor",
        {"n_neighbors": 4},
        long=({},),
        long_shape=(400_000, 20),
        call=_outliers,
        unspecified={
            "huge": "squared distances overflow",
            "csr_messy": "scikit-learn's distances are wrong",
            **dict.fromkeys(("bool", "int8", "duplicates"), "rows as near as one another"),
        },
    ),
    Subject(
        "neighbors.KernelDensity",
        {"bandwidth": 2.0},
        long=({},),
        long_shape=(400_000, 20),
        most=4000,
        unspecified={"huge": "squared distances overflow"},
        for_sparse=None,
    ),
    *(
        Subject(
            name,
            params | {"random_state": 0},
            long=long,
            long_shape=(300_000 if name.startswith("tree.") else 100_000, 20),
            call=_of_trees,
            for_sparse=None,
        )
        for name, params, long in (
            ("tree.DecisionTreeClassifier", {}, ({"random_state": 0},)),
            ("tree.DecisionTreeRegressor", {"criterion": "poisson"}, ({"random_state": 0},)),
            (
                "ensemble.RandomForestClassifier",
                {"n_estimators": 7},
                ({"n_estimators": 100, "oob_score": True},),
            ),
            ("ensemble.ExtraTreesRegressor", {"n_estimators": 7}, ({"n_estimators": 300},)),
            ("ensemble.BaggingRegressor", {"n_estimators": 7}, ({"n_estimators": 100},)),
            ("ensemble.AdaBoostClassifier", {"n_estimators": 7}, ({"n_estimators": 500},)),
        )
    ),
    Subject(
        "decomposition.TruncatedSVD",
        {"n_components": 3, "random_state": 0},
        long=({"n_components": 5, "n_iter": 10**6},),
        unspecified={
            "huge": "squares overflow",
            "longdouble": "scikit-learn multiplies in it, and decomposes in double",
        },
    ),
    Subject(
        "kernel_ridge.KernelRidge",
        {"kernel": "rbf", "gamma": 0.1},
        long=({"solver": "cholesky"}, {"solver": "cg", "tol": 1e-300, "max_iter": 10**6}),
        long_shape=(10_000, 20),
        most=1000,
        call=_on_targets,
        unspecified={
            "huge": "squared distances overflow",
            "csr_messy": "scikit-learn takes norms of stored values, without adding duplicates",
        },
    ),
    Subject(
        "kernel_logistic.KernelLogisticRegression",
        {"gamma": 0.1},
        large={"solver": "gradient", "max_gram_mb": 0},
        long=({"C": 1e4}, {"C": 1e12, "solver": "gradient", "tol": 0, "max_iter": 10**6}),
        long_shape=(8_000, 20),
        most=1500,
        call=_on_targets,
        like="svm.SVC",
        unspecified={"huge": "squared distances overflow"},
    ),
    *(
        Subject(
            f"decomposition.{name}",
            {"n_components": 2} | params,
            long=(),  # one pass, and LAPACK
            call=_of_components,
            lenient=True,  # scikit-learn slices sparse matrices that have no rows to slice
            unspecified={
                "huge": "squares overflow",
                "csr_messy": "scikit-learn takes variances without adding duplicates",
            }
            | dict.fromkeys(_FEW_ROWS, "variances that are 0 but for rounding"),
        )
        for name, params in (("PCA", {}), ("IncrementalPCA", {"batch_size": 100}))
    ),
    Subject(
        "decomposition.FactorAnalysis",
        {"n_components": 1, "svd_method": "lapack"},
        long=(),  # one pass, and LAPACK
        call=_of_factors,
        for_sparse=None,
        unspecified={
            "huge": "squares overflow",
            "longdouble": "scikit-learn transforms in it, and decomposes in double",
        }
        | dict.fromkeys(set(_FEW_ROWS) - {"csr_empty"}, "variances that are 0 but for rounding"),
    ),
    Subject(
        "kernel_erm.KernelERM",
        {"gamma": 0.1},
        long=(
            {"loss": "huber", "alpha": 1e-4},
            {"loss": "huber", "solver": "gradient", "alpha": 1e-9, "tol": 0, "max_iter": 10**6},
        ),
        long_shape=(8_000, 20),
        most=1500,
        call=_on_targets,
        like="svm.SVR",
        unspecified={"huge": "squared distances overflow"},
    ),
    Subject(
        "svm.CompatibilityClassifier",
        {"random_state": 0},
        long=({"C": 1e6, "tol": 0, "max_iter": 10**7},),
        most=3000,
        call=_linear,
        like="svm.LinearSVC",
        unspecified={"huge": "the squares of the columns overflow"},
    ),
    Subject(
        "kernel_approximation.RBFSampler",
        {"gamma": 0.1, "n_components": 30, "random_state": 0},
        long=(),  # one pass
        unspecified={"huge": "cosines of what is infinite"},
    ),
    Subject(
        "kernel_approximation.RandomFourierFeatures",
        {"n_components": 30, "random_state": 0},
        long=(),
        like="kernel_approximation.RBFSampler",
        unspecified={"huge": "cosines of what is infinite"},
    ),
    Subject(
        "decomposition.KernelPCA",
        {"n_components": 3, "kernel": "rbf", "gamma": 0.02, "random_state": 0},
        large={"eigen_solver": "power", "max_gram_mb": 0},
        long=({"n_components": 20, "kernel": "rbf", "max_gram_mb": 0, "tol": 1e-300},),
        most=1500,
        comparable=_components,
        unspecified={
            "huge": "squared distances overflow",
            "csr_messy": "scikit-learn takes norms of stored values, without adding duplicates",
        }
        | dict.fromkeys(_FEW_ROWS, "components whose eigenvalues are 0, or the same"),
    ),
    Subject(
        "random_projection.SparseRandomProjection",
        {"n_components": 5, "random_state": 0},
        long=(),  # one pass
        large={"n_components": 10},
        unspecified={"huge": "sums overflow"},
    ),
    *(
        Subject(
            f"svm.{name}",
            # Little C and no dual: otherwise liblinear is slow to converge, or stalls.
            {"dual": False, "tol": 1e-12, "max_iter": 100_000, "random_state": 0} | params,
            long=(long,),
            long_shape=(200_000, 100),
            most=4000,
            call=_linear,
            unspecified={"huge": "squares overflow", "denormal": "weights are all but zero"},
        )
        for name, params, long in (
            ("LinearSVC", {"C": 1e-3}, {"multi_class": "crammer_singer", "max_iter": 1_000_000}),
            (
                "LinearSVR",
                {"loss": "squared_epsilon_insensitive", "epsilon": 0.1},
                {"loss": "epsilon_insensitive", "dual": True},
            ),
        )
    ),
    *(
        Subject(
            f"svm.{name}",
            params,
            long=(params | {"C": 100.0} if name != "OneClassSVM" else {"nu": 0.5},),
            long_shape=(60_000, 20),
            most=2_000,
            call=_of_machines,
            comparable=_decided,
            lenient=True,  # CSR with 64-bit indices
            unspecified={"huge": "squares overflow", "csr_messy": "libsvm does not add duplicates"}
            | dict.fromkeys(_FEW_ROWS, "decisions that are 0 but for rounding"),
        )
        for name, params in (
            ("SVC", {"C": 1.5, "tol": 1e-6, "decision_function_shape": "ovo"}),
            ("SVR", {"C": 1.5, "tol": 1e-6}),
            ("OneClassSVM", {"nu": 0.3, "tol": 1e-6}),
        )
    ),
    *(
        Subject(
            f"preprocessing.{name}",
            {},
            long=(),  # they read what there is at the speed of memory
            call=_scaled if name.islower() else None,
            unspecified={"huge": "sums overflow"},
            # Of entries that are stored twice it has more than rows.
            lenient="obust" in name,
            for_sparse=for_sparse,
        )
        for name, for_sparse in {
            "StandardScaler": {"with_mean": False},
            "MinMaxScaler": None,
            "MaxAbsScaler": {},
            "RobustScaler": {"with_centering": False},
            "Normalizer": {},
            "scale": {"with_mean": False},
            "minmax_scale": None,
            "maxabs_scale": {},
            "robust_scale": {"with_centering": False},
            "normalize": {},
        }.items()
    ),
    *(
        Subject(
            f"decomposition.{name}",
            {"n_components": 3, "init": "random", "max_iter": 8, "random_state": 0},
            long=(
                {"n_components": 10, "init": "random", "max_iter": 10**6, "tol": 0} | long,
                {"n_components": 10, "init": "random", "max_iter": 10**6, "tol": 0} | other,
            ),
            call=call,
            comparable=_without_error,
            unspecified={
                "huge": "squares overflow",
                "denormal": "products are zero",
                "one_sample": "many factors have such a product",
                "csr_messy": "scikit-learn takes norms of stored values, without adding duplicates",
            },
        )
        for name, call, long, other in (
            ("NMF", _parts, {"solver": "hals"}, {"solver": "mu", "beta_loss": 1}),
            ("MiniBatchNMF", _parts, {"max_no_improvement": None}, {"max_no_improvement": None}),
            ("non_negative_factorization", _factors, {}, {"solver": "mu", "beta_loss": 0.5}),
        )
    ),
]
# Wrappers of what is above, whose own tests are those of their family.
WRAPPERS = {
    *(
        f"metrics.{module}{name}"
        for name in (
            "euclidean_distances",
            "nan_euclidean_distances",
            "pairwise_distances",
            "pairwise_distances_argmin",
            "pairwise_distances_argmin_min",
            "pairwise_distances_chunked",
            "pairwise_kernels",
        )
        for module in ("", "pairwise.")
    ),
    *(f"metrics.pairwise.{kernel}_kernel" for kernel in ("chi2", "additive_chi2", "laplacian")),
    *(f"metrics.pairwise.{kernel}_kernel" for kernel in ("linear", "sigmoid")),
    *(f"metrics.pairwise.{name}_distances" for name in ("cosine", "haversine", "manhattan")),
    "metrics.pairwise.cosine_similarity",
    *(
        f"neighbors.{kind}Neighbors{role}"
        for kind in ("K", "Radius")
        for role in ("Classifier", "Regressor", "Transformer")
    ),
    "neighbors.NearestCentroid",
    "neighbors.kneighbors_graph",
    "neighbors.radius_neighbors_graph",
    "kernel_approximation.AdditiveChi2Sampler",
    "kernel_approximation.Nystroem",
    "kernel_approximation.PolynomialCountSketch",
    "kernel_approximation.SkewedChi2Sampler",
    "random_projection.GaussianRandomProjection",
    "ensemble.AdaBoostRegressor",
    "ensemble.BaggingClassifier",
    "ensemble.ExtraTreesClassifier",
    "ensemble.IsolationForest",
    "ensemble.RandomForestRegressor",
    "ensemble.RandomTreesEmbedding",
    "svm.NuSVC",
    "svm.NuSVR",
    "tree.ExtraTreeClassifier",
    "tree.ExtraTreeRegressor",
}
REPLACEMENTS = [subject for subject in SUBJECTS if not subject.like]
ADDITIONS = [subject for subject in SUBJECTS if subject.like]
ESTIMATORS = [subject for subject in SUBJECTS if subject.call is None]


LARGE = (20_011, 20)


def data(n: int = 300, d: int = 7, dtype: Any = np.float64, seed: int = 0) -> np.ndarray:
    """Return rows in a few loose groups, away from the origin."""
    rng = np.random.default_rng(seed)
    groups = rng.normal(scale=3.0, size=(5, d))
    X = groups[rng.integers(5, size=n)] + rng.normal(size=(n, d)) + 1.0
    return X.astype(dtype)
