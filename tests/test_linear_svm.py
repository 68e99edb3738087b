"""Linear support vector machines: kernels against plain twins, estimators against stock ones."""

import warnings

import numpy as np
import pytest
import sklearn.svm as stock
from fastml._native.rows import Rows
from scipy import sparse
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

import fastml
from fastml._native import linear_svm as native
from fastml.svm import LinearSVC, LinearSVR
from fastml.svm._linear_solvers import Machine, method_for

KINDS = {
    "hinge": (False, False),
    "squared_hinge": (False, True),
    "epsilon": (True, False),
    "squared_epsilon": (True, True),
}


def data(n, d, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    score = X @ rng.normal(size=d) / np.sqrt(d) + 0.5 * rng.normal(size=n)
    return X, score, rng.uniform(0.2, 2, n)


def sparse_data(X):
    return sparse.csr_matrix(np.where(abs(X) > 1, X, 0))


def primal_naive(X, b, C, w, *, bias, epsilon, regression, squared, lasso=False):
    e = b - X @ w[:-1] - bias * w[-1]
    v = np.maximum(abs(e) - epsilon if regression else b * e, 0)
    norm = abs(w).sum() if lasso else w @ w / 2
    return norm + C @ (v**2 if squared else v)


def optimum_naive(X, b, C, *, bias, epsilon, regression, squared):
    """The dual's optimum by a general solver of problems with bounds."""
    n = len(b)
    signs = np.array([[1.0], [-1.0]]) if regression else b[None, :1] * 0 + 1
    Z = np.concatenate([s * np.c_[X, np.full(n, bias)] for s in signs])
    if not regression:
        Z = b[:, None] * Z
    linear = np.concatenate([epsilon - s * b for s in signs]) if regression else -np.ones(n)
    cost = np.tile(C, len(signs))
    curve = 1 / (2 * cost) if squared else 0 * cost

    def objective(alpha):
        w = alpha @ Z
        value = w @ w / 2 + linear @ alpha + curve @ alpha**2 / 2
        return value, Z @ w + linear + curve * alpha

    bounds = [(0, None if squared else c) for c in cost]
    options = {"maxiter": 20_000, "maxfun": 10**6, "ftol": 1e-15, "gtol": 1e-9}
    found = minimize(objective, 0 * cost, jac=True, bounds=bounds, options=options)
    return -found.fun


def solved(method, X, b, C, threads=1, tol=1e-9, K=None, **problem):
    bias, epsilon = problem["bias"], problem["epsilon"]
    kind = problem["regression"], problem["squared"]
    solver = native.solver(method, Rows(X), bias, b, C, epsilon, *kind, tol, 100_000, 0, K)
    while not solver.done:
        native.advance([solver], False, threads)
    w = np.empty(X.shape[1] + 1)
    solver.coef(w)
    return w, solver


def methods(squared, dense):
    yield "newton" if squared else "augmented"
    yield "descent"
    if dense:
        yield "gram_descent"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n", "d"), [(1, 1), (61, 7), (40, 27)])
def test_every_method_finds_the_optimum(n, d, kind, dense, dtype):
    X, score, C = data(n, d)
    regression, squared = KINDS[kind]
    b = score if regression else np.where(score > 0, 1.0, -1.0)
    X = (X if dense else sparse_data(X)).astype(dtype)
    full = X.astype(np.float64) if dense else X.toarray().astype(np.float64)
    problem = {"bias": 1.5, "regression": regression, "squared": squared}
    problem["epsilon"] = 0.1 if regression else 0.0
    best = optimum_naive(full, b, C, **problem)
    for method in methods(squared, dense):
        K = None
        if method == "gram_descent":
            K = (X @ X.T + 1.5**2).astype(np.float32)
        w, solver = solved(method, X, b, C, K=K, tol=1e-7, **problem)
        primal = primal_naive(full, b, C, w, **problem)
        assert solver.converged
        assert solver.primal == pytest.approx(primal, rel=1e-9, abs=1e-12)
        assert primal == pytest.approx(best, rel=2e-5, abs=1e-7)
        assert -1e-9 * primal <= solver.gap <= 1e-4 * primal + 1e-9
        assert primal - best <= solver.gap + 1e-5 * primal


@pytest.mark.parametrize("dense", [True, False])
def test_lasso_finds_the_optimum(dense):
    X, score, C = data(200, 20)
    b = np.where(score > 0, 1.0, -1.0)
    X = X if dense else sparse_data(X)
    problem = {"bias": 1.0, "epsilon": 0.0, "regression": False, "squared": True}
    w, solver = solved("lasso", X, b, 0.05 * C, tol=1e-12, **problem)
    full = X if dense else X.toarray()
    e = np.maximum(1 - b * (full @ w[:-1] + w[-1]), 0)
    slope = np.r_[full.T @ (0.1 * C * b * e), (0.1 * C * b * e).sum()]
    assert solver.converged and (w == 0).any() and (w != 0).any()
    assert abs(slope).max() <= 1 + 1e-5
    np.testing.assert_allclose(slope[w != 0], np.sign(w[w != 0]), atol=1e-5)
    value = primal_naive(full, b, 0.05 * C, w, lasso=True, **problem)
    assert solver.primal == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("method", ["newton", "augmented", "lasso", "descent"])
def test_threads_change_nothing(method, dtype):
    X, score, C = data(6000, 23)
    b = np.where(score > 0, 1.0, -1.0)
    problem = {"bias": 1.0, "epsilon": 0.0, "regression": False, "squared": method != "augmented"}
    X = X.astype(dtype)
    for rows in (X, sparse_data(X)):
        one, two = (solved(method, rows, b, C, threads, 1e-6, **problem)[0] for threads in (1, 2))
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [1, 3])
def test_passes(k, dtype):
    X = data(1003, 13)[0].astype(dtype)
    W, offsets = np.random.default_rng(1).normal(size=(k, 13)), np.arange(k, dtype=float)
    for rows in (X, sparse_data(X)):
        out, u = np.empty((1003, k)), np.empty(14)
        native.scores(Rows(rows), W, offsets, out, 2)
        np.testing.assert_allclose(out, rows @ W.T + offsets, rtol=1e-12, atol=1e-12)
        a = np.linspace(-1, 1, 1003)
        native.combine(Rows(rows), 2.0, a, u, 2)
        np.testing.assert_allclose(u, [*(rows.T @ a), 2 * a.sum()], rtol=1e-12, atol=1e-11)


def as_machine(**changes):
    defaults = {"squared": True, "regression": False, "epsilon": 0.0, "bias": 1.0}
    rest = {"lasso": False, "tol": 1e-4, "max_iter": 1000, "seed": 0}
    return Machine(**(defaults | rest | changes))


def test_the_method_follows_the_shape():
    assert method_for(as_machine(), np.empty((1000, 10))) == "newton"
    assert method_for(as_machine(squared=False), np.empty((1000, 10))) == "augmented"
    assert method_for(as_machine(), np.empty((100, 1000))) == "gram_descent"
    assert method_for(as_machine(), sparse.csr_matrix((100, 1000))) == "descent"


SVC_PARAMS = [
    {},
    {"loss": "hinge", "C": 0.1},
    {"penalty": "l1", "dual": False, "C": 0.3},
    {"fit_intercept": False, "class_weight": "balanced"},
    {"intercept_scaling": 10.0, "class_weight": {0: 3.0}, "dual": True},
    {"multi_class": "crammer_singer", "C": 0.1},
]


def both(name, X, y, weight=None, tol=1e-9, **params):
    params = {"tol": tol, "max_iter": 1_000_000, "random_state": 0} | params
    with fastml.config_context(strict=True):
        ours = getattr(fastml.svm, name)(**params).fit(X, y, sample_weight=weight)
    theirs = getattr(stock, name)(**params).fit(X, y, sample_weight=weight)
    for attribute in ("coef_", "intercept_"):
        mine, other = getattr(ours, attribute), getattr(theirs, attribute)
        assert np.shape(mine) == np.shape(other) and type(mine) is type(other)
        assert np.asarray(mine).dtype == np.asarray(other).dtype
    assert type(ours.n_iter_) is int and type(ours.dual_gap_) is float
    return ours, theirs


@pytest.mark.parametrize("params", SVC_PARAMS)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(("n", "d", "dense"), [(120, 6, True), (120, 6, False), (30, 300, True)])
def test_classifier_equals_the_stock_one(n, d, dense, n_classes, params):
    X, score, weight = data(n, d)
    y = np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))
    X = X if dense else sparse_data(X)
    ours, theirs = both("LinearSVC", X, y, weight, tol=1e-7, **params)
    np.testing.assert_array_equal(ours.classes_, theirs.classes_)
    scale = abs(theirs.coef_).max()
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-4 * scale)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=2e-3 * scale)
    assert (ours.predict(X) == theirs.predict(X)).mean() > 0.98


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
@pytest.mark.parametrize("epsilon", [0.0, 0.3])
@pytest.mark.parametrize(("n", "d", "dense"), [(120, 6, True), (120, 6, False), (30, 300, True)])
def test_regressor_equals_the_stock_one(n, d, dense, epsilon, loss):
    X, y, weight = data(n, d)
    X = X if dense else sparse_data(X)
    ours, theirs = both("LinearSVR", X, y, weight, loss=loss, epsilon=epsilon, C=0.2, tol=1e-7)
    scale = abs(theirs.coef_).max()
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-3 * scale)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=5e-3)


def test_lasso_chooses_columns():
    X, score, _ = data(80, 1000)
    ours, theirs = both("LinearSVC", X, score > 0, penalty="l1", dual=False, tol=1e-8, C=0.5)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)


def test_single_precision_is_not_copied_and_close():
    X, score, _ = data(400, 9)
    y = score > 0
    single = LinearSVC(tol=1e-8).fit(X.astype(np.float32), y)
    assert single.coef_.dtype == np.float64
    np.testing.assert_allclose(single.coef_, LinearSVC(tol=1e-8).fit(X, y).coef_, rtol=1e-4)


def test_unscaled_and_duplicated_columns_converge():
    X, score, _ = data(500, 6)
    X = np.c_[X * 10.0 ** np.arange(-3, 3), X[:, 0], np.zeros(500)]
    for loss in ("hinge", "squared_hinge"):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = LinearSVC(loss=loss, C=100.0).fit(X, score > 0)
        assert model.dual_gap_ < 1e-2 and model.score(X, score > 0) > 0.7


def test_rows_without_weight_do_not_count():
    X, score, _ = data(90, 4)
    y, weight = (score > 0).astype(int), np.arange(90) % 3.0
    ours = LinearSVC(loss="hinge", tol=1e-8).fit(X, y, sample_weight=weight)
    kept = LinearSVC(loss="hinge", tol=1e-8).fit(X[weight > 0], y[weight > 0], weight[weight > 0])
    np.testing.assert_array_equal(ours.coef_, kept.coef_)
    with pytest.raises(ValueError, match="weight"):
        LinearSVC().fit(X, y, sample_weight=-np.ones(90))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dense", [True, False])
def test_halves_of_rows_find_the_optimum(kind, dense):
    """Rows that have little in common are descended by halves; on one thread as on two."""
    rng = np.random.default_rng(0)
    n, d = (131, 1_001) if dense else (1_501, 4_000)
    X = rng.normal(size=(n, d)) if dense else sparse.random(n, d, 0.02, "csr", rng=rng)
    X = X if dense else sparse.csr_matrix((X.data - 0.5, X.indices, X.indptr), X.shape)
    regression, squared = KINDS[kind]
    b = X @ rng.normal(size=d) + rng.normal(size=n)
    b = b if regression else np.where(b > 0, 1.0, -1.0)
    C = rng.uniform(0.2, 2, n)
    problem = {"bias": 0.1, "regression": regression, "squared": squared}
    problem["epsilon"] = 0.1 if regression else 0.0
    w, solver = solved("descent", X, b, C, 1, 1e-8, **problem)
    assert solver.converged and (solver.halves or solver.n_iter > 32)
    primal = primal_naive(X, b, C, w, **problem)
    assert solver.primal == pytest.approx(primal, rel=1e-9)
    assert -1e-9 * primal <= solver.gap <= 1e-6 * primal
    same, _ = solved("descent", X, b, C, 2, 1e-8, **problem)
    np.testing.assert_array_equal(same, w)


NARROWED = {
    "plain": {},
    "small C": {"C": 1e-6},
    "large C": {"C": 1e3},
    "bound": {"C": 1e-3, "epsilon": 50.0},
    "tube": {"epsilon": 0.5},
    "sorted": {"order": True},
    "twins": {"copies": 5},
    "no bias": {"bias": 0.0},
    "apart": {"gap": 3.0},
    "rare": {"shift": 2.0},
    "rare, small C": {"shift": 2.0, "C": 0.01},
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("regression", [False, True])
@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("case", NARROWED)
def test_rows_near_their_hinges_tell_the_optimum(case, dense, regression, dtype):
    """Many rows are solved by few at a time; descent on all of them ends at the same objective."""
    more = {"C": 1.0, "epsilon": 0.0, "bias": 1.0, "order": False, "copies": 1, "gap": 0.0}
    more |= {"shift": 0.0} | NARROWED[case]
    X, score, C = data(3_333 // more["copies"], 7)
    X[:, 0] += more["gap"] * np.sign(score)
    at = np.argsort(score) if more["order"] else np.arange(len(X))
    at = np.tile(at, more["copies"])
    X, score, C = X[at], score[at], more["C"] * C[at]
    b = score if regression else np.where(score > more["shift"], 1.0, -1.0)
    X = (X if dense else sparse_data(X)).astype(dtype)
    problem = {"bias": more["bias"], "regression": regression, "squared": False}
    problem["epsilon"] = more["epsilon"] if regression else 0.0
    w, solver = solved("augmented", X, b, C, 1, 1e-8, **problem)
    full = (X if dense else X.toarray()).astype(np.float64)
    primal = primal_naive(full, b, C, w, **problem)
    assert solver.converged
    assert solver.primal == pytest.approx(primal, rel=1e-9, abs=1e-12)
    assert -1e-12 * primal <= solver.gap <= 1e-8 * primal
    # The gap is what weak duality says it is: no weights are better by more.
    rng = np.random.default_rng(0)
    for size in (1e-1, 1e-2, 1e-3, 1e-4):
        other = w + size * abs(w).max() * rng.normal(size=8)
        assert primal_naive(full, b, C, other, **problem) >= primal - solver.gap - 1e-12 * primal
    if case in ("plain", "tube", "sorted"):
        best = solved("descent", X, b, C, 1, 1e-5, **problem)[1]
        assert primal == pytest.approx(best.primal, rel=1e-4)
        assert best.primal >= primal - solver.gap - 1e-12 * primal
    same, _ = solved("augmented", X, b, C, 2, 1e-8, **problem)
    np.testing.assert_array_equal(same, w)


def test_few_rows_at_a_time_stop_where_all_do():
    X, score, _ = data(4_000, 5)
    for max_iter in (0, 3, 12):
        with pytest.warns(ConvergenceWarning):
            model = LinearSVC(loss="hinge", max_iter=max_iter).fit(X, score > 0)
        assert model.n_iter_ == max_iter
        b = np.where(score > 0, 1.0, -1.0)
        w = np.append(model.coef_, model.intercept_)
        problem = {"bias": 1.0, "epsilon": 0.0, "regression": False, "squared": False}
        primal = primal_naive(X, b, np.ones(4_000), w, **problem)
        best = LinearSVC(loss="hinge", tol=1e-6).fit(X, score > 0)
        w = np.append(best.coef_, best.intercept_)
        least = primal_naive(X, b, np.ones(4_000), w, **problem)
        assert primal - least <= model.dual_gap_ * (1 + 1e-9)


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64])
def test_whole_numbers_are_classes(dtype):
    X, score, _ = data(900, 4)
    y = np.array([-100, 3, 100], dtype)[np.digitize(score, [-0.5, 0.5])]
    ours, theirs = both("LinearSVC", X, y, tol=1e-6)
    np.testing.assert_array_equal(ours.classes_, theirs.classes_)
    assert ours.classes_.dtype == theirs.classes_.dtype
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-3)


def test_rows_that_share_their_mean_stay_together():
    X, score, C = data(300, 1_500)
    b = np.where(score > 0, 1.0, -1.0)
    problem = {"bias": 1.0, "epsilon": 0.0, "regression": False, "squared": True}
    assert not solved("descent", X + 1, b, C, 2, 1e-3, **problem)[1].halves
    assert solved("descent", X, b, C, 2, 1e-3, **problem)[1].halves


def test_many_halved_problems_are_the_same_on_any_number_of_threads():
    rng = np.random.default_rng(0)
    X = sparse.random(1_200, 3_000, 0.03, "csr", rng=rng)
    X.data -= 0.5
    y = (X @ rng.normal(size=(3_000, 5))).argmax(axis=1)
    fits = []
    for threads in (1, 2, 5):
        with fastml.config_context(threads=threads):
            fits.append(LinearSVC(C=0.5, random_state=0).fit(X, y).coef_)
    for coef in fits[1:]:
        np.testing.assert_array_equal(coef, fits[0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_repeats_are_found(dtype):
    rng = np.random.default_rng(0)
    for _ in range(50):
        lengths = rng.integers(0, 4, size=7)
        indptr = np.r_[0, lengths.cumsum()].astype(np.int32)
        indices = rng.integers(9, size=indptr[-1]).astype(np.int32)
        X = sparse.csr_matrix((np.ones(len(indices), dtype), indices, indptr), (7, 9))
        rows = np.split(indices, indptr[1:-1])
        assert native.repeats(Rows(X)) == any(len(set(row)) < len(row) for row in rows)


def test_the_order_of_entries_is_of_no_account():
    X, score, _ = data(60, 200)
    X = sparse_data(X)
    turned = X.copy()
    for i in range(60):
        row = slice(X.indptr[i], X.indptr[i + 1])
        turned.indices[row] = X.indices[row][::-1]
        turned.data[row] = X.data[row][::-1]
    turned.has_sorted_indices = False
    before = turned.indices.copy()
    a, b = (LinearSVC(tol=1e-8).fit(rows, score > 0) for rows in (X, turned))
    np.testing.assert_allclose(a.coef_, b.coef_, atol=1e-6)
    np.testing.assert_array_equal(turned.indices, before)


def test_duplicate_entries_are_added():
    X = sparse.csr_matrix(([1.0, 2, -1, 3], [0, 0, 1, 0], [0, 2, 3, 4]), shape=(3, 2))
    twice = LinearSVC(dual=True).fit(X, [0, 1, 0])
    assert X.nnz == 4
    once = LinearSVC().fit(X.toarray(), [0, 1, 0])
    np.testing.assert_allclose(twice.coef_, once.coef_, rtol=1e-4)


def test_warns_when_it_stops_early():
    X, score, _ = data(200, 20)
    for params in ({"loss": "hinge"}, {"multi_class": "crammer_singer"}, {}):
        with pytest.warns(ConvergenceWarning, match="increase the number of iterations"):
            model = LinearSVC(max_iter=2, **params).fit(X, score > 0)
        assert model.n_iter_ == 2
    with pytest.warns(ConvergenceWarning):
        assert not LinearSVR(max_iter=0).fit(X, score).coef_.any()


@pytest.mark.parametrize("d", [5, 300])
def test_warns_where_sums_overflow(d):
    X, y = 1e300 * np.random.default_rng(0).normal(size=(60, d)), np.arange(60) % 2
    with pytest.warns(ConvergenceWarning), np.errstate(all="ignore"):
        LinearSVC(penalty="l1", dual=False).fit(X, y)


def test_refuses_what_scikit_learn_refuses():
    X, score, _ = data(20, 3)
    with pytest.raises(ValueError, match="epsilon"):
        LinearSVR(epsilon=-1).fit(X, score)
    with pytest.raises(ValueError, match="Unsupported set of arguments"):
        LinearSVC(penalty="l1", loss="hinge").fit(X, score > 0)
    with pytest.raises(ValueError, match="at least 2 classes"):
        LinearSVC().fit(X, np.ones(20))


def test_converts_to_stock_and_back():
    X, score, _ = data(50, 3)
    model = LinearSVC().fit(X, score > 0)
    theirs = fastml.to_sklearn(model)
    assert type(theirs) is stock.LinearSVC and not hasattr(theirs, "dual_gap_")
    back = fastml.from_sklearn(theirs)
    np.testing.assert_array_equal(back.predict(X), model.predict(X))


def test_callbacks_follow_and_stop():
    class Stop:
        rounds = 0

        def setup(self, estimator, context):
            pass

        on_fit_task_begin = teardown = setup

        def on_fit_task_end(self, estimator, context, *, fitted_estimator):
            if context.task_name == "round":
                self.rounds += 1
                assert fitted_estimator.coef_.shape == (1, 20)
            return self.rounds == 2

    X, score, _ = data(300, 20)
    stop = Stop()
    with pytest.warns(ConvergenceWarning):
        LinearSVC(loss="hinge").set_callbacks(stop).fit(X, score > 0)
    assert stop.rounds == 2


def test_verbose(capsys):
    X, score, _ = data(50, 3)
    LinearSVC(verbose=1).fit(X, score > 0)
    assert "newton" in capsys.readouterr().out


@pytest.mark.parametrize("seed", [2, 3])
def test_tubes_that_nearly_all_targets_are_in(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(4152, 25))
    f = X @ rng.normal(size=25)
    y = f / f.std() + 0.05 * rng.normal(size=4152)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model = LinearSVR(C=27, epsilon=0.5).fit(X, y)
    w = np.append(model.coef_, model.intercept_)
    objective = w @ w / 2 + 27 * np.maximum(abs(y - model.predict(X)) - 0.5, 0).sum()
    assert model.dual_gap_ <= 1e-6 * objective


def test_sparse_targets_end_by_the_gap():
    """Steps back to zero gain less beyond it: a guess that is too large never looks at the gap."""
    rng = np.random.default_rng(0)
    n, d = 400, 500
    at = (rng.random(n * 20) ** 3 * d).astype(int)
    X = sparse.csr_matrix((np.ones(n * 20), (np.repeat(np.arange(n), 20), at)), shape=(n, d))
    y = 3 * (X @ rng.normal(size=d)) + rng.normal(size=n)
    model = LinearSVR(C=10, epsilon=0.1, random_state=0, max_iter=400).fit(X, y)
    assert model.n_iter_ < 400
    w = np.append(model.coef_, model.intercept_)
    loss = np.maximum(0, abs(y - X @ model.coef_ - model.intercept_) - 0.1).sum()
    assert model.dual_gap_ <= 1e-4 * (w @ w / 2 + 10 * loss)
