"""The dual of kernel machines: against a plain solver, conditions of optimality and libsvm."""

import os
import subprocess
import sys
import time

import numpy as np
import pytest
from scipy import sparse
from sklearn import svm as stock
from sklearn.datasets import make_classification
from sklearn.metrics.pairwise import pairwise_kernels

from fastml._native import smo

TOL = 1e-3
KERNELS = {"linear": {}, "rbf": {}, "poly": {"coef0": 1.0, "degree": 3}, "sigmoid": {"coef0": 0.1}}


def groups(n, d=10, noise=0.1, seed=0, dtype=np.float64):
    X, y = make_classification(
        n, d, n_informative=min(d, 5), n_redundant=0, flip_y=noise, random_state=seed
    )
    return X.astype(dtype), np.where(y > 0, 1, -1).astype(np.int8)


def gram(X, kernel="rbf", gamma=0.1, coef0=0.0, degree=3):
    given = {"linear": (), "rbf": ("gamma",), "sigmoid": ("gamma", "coef0")}
    params = {"gamma": gamma, "coef0": coef0, "degree": degree}
    names = given.get(kernel, tuple(params))
    X = X.toarray() if sparse.issparse(X) else X
    return pairwise_kernels(X.astype(float), metric=kernel, **{k: params[k] for k in names})


def classifier(signs, C=1.0):
    m = len(signs)
    return smo.Problem(np.arange(m), signs, -np.ones(m), np.full(m, float(C)))


def regressor(y, C=1.0, epsilon=0.1):
    n = len(y)
    signs = np.repeat(np.array([1, -1], np.int8), n)
    linear = np.concatenate([epsilon - y, epsilon + y])
    return smo.Problem(np.tile(np.arange(n), 2), signs, linear, np.full(2 * n, float(C)))


def nu_classifier(signs, nu):
    start = np.zeros(len(signs))
    for sign in (1, -1):
        left = nu * len(signs) / 2
        for s in np.flatnonzero(signs == sign):
            start[s] = min(1.0, left)
            left -= start[s]
    return smo.Problem(
        np.arange(len(signs)), signs, np.zeros(len(signs)), np.ones(len(signs)), start
    )


def one_class(n, nu):
    start = np.clip(nu * n - np.arange(n), 0, 1)
    return smo.Problem(np.arange(n), np.ones(n, np.int8), np.zeros(n), np.ones(n), start)


def violation(K, problem, alpha, nu=False, bias=True):
    """The largest violation of the conditions of optimality, from the definition."""
    beta = problem.signs * alpha
    force = -(problem.signs * problem.linear + K[np.ix_(problem.rows, problem.rows)] @ beta)
    up = np.where(problem.signs > 0, alpha < problem.upper, alpha > 0)
    down = np.where(problem.signs > 0, alpha > 0, alpha < problem.upper)
    if not bias:
        return max(force[up].max(initial=0), 0) - min(force[down].min(initial=0), 0)
    parts = (problem.signs > 0, problem.signs < 0) if nu else (True,)
    highest = [force[up & part].max(initial=-np.inf) for part in parts]
    lowest = [force[down & part].min(initial=np.inf) for part in parts]
    return max(high - low for high, low in zip(highest, lowest, strict=True))


def objective(K, problem, alpha):
    beta = problem.signs * alpha
    Kb = K[np.ix_(problem.rows, problem.rows)] @ beta
    return beta @ Kb / 2 + problem.linear @ alpha


def solve_naive(K, problem, nu=False, bias=True, tol=1e-6):
    """Steps with the pair that violates most."""
    signs, m = problem.signs.astype(float), len(problem.signs)
    alpha = np.zeros(m) if problem.start is None else problem.start.copy()
    K = K[np.ix_(problem.rows, problem.rows)]
    for _ in range(200_000):
        force = -(signs * problem.linear + K @ (signs * alpha))
        up = np.where(signs > 0, alpha < problem.upper, alpha > 0)
        down = np.where(signs > 0, alpha > 0, alpha < problem.upper)
        best = None
        for part in (signs > 0, signs < 0) if nu else (np.full(m, True),):
            high = np.where(up & part, force, -np.inf)
            low = np.where(down & part, force, np.inf)
            i, j = high.argmax(), low.argmin()
            if best is None or high[i] - low[j] > best[0]:
                best = high[i] - low[j], i, j
        if not bias:
            size = np.maximum(np.where(up, force, 0), np.where(down, -force, 0))
            i = size.argmax()
            if size[i] <= tol:
                return alpha
            step = signs[i] * force[i] / K[i, i]
            alpha[i] = np.clip(alpha[i] + step, 0, problem.upper[i])
            continue
        gap, i, j = best
        if gap <= tol:
            return alpha
        step = gap / max(K[i, i] + K[j, j] - 2 * K[i, j], 1e-12)
        room_i = problem.upper[i] - alpha[i] if signs[i] > 0 else alpha[i]
        room_j = alpha[j] if signs[j] > 0 else problem.upper[j] - alpha[j]
        step = min(step, room_i, room_j)
        alpha[i] += signs[i] * step
        alpha[j] -= signs[j] * step
        alpha[[i, j]] = np.clip(alpha[[i, j]], 0, problem.upper[[i, j]])
    raise AssertionError("no convergence")


def check(K, problem, solution, nu=False, bias=True, tol=TOL, constraint=1e-10):
    alpha = solution.alpha
    assert solution.status == 0
    assert (alpha >= 0).all()
    assert (alpha <= problem.upper).all()
    gap = violation(K, problem, alpha, nu, bias)
    scale = max(1, abs(K).max())
    assert gap <= 1.1 * tol
    np.testing.assert_allclose(solution.gap, max(gap, 0), atol=1e-3 * tol * scale)
    expected = objective(K, problem, alpha)
    np.testing.assert_allclose(solution.objective, expected, rtol=1e-9, atol=1e-9)
    Kb = K[np.ix_(problem.rows, problem.rows)] @ (problem.signs * alpha)
    gradient = problem.signs * Kb + problem.linear
    np.testing.assert_allclose(solution.gradient, gradient, rtol=1e-6, atol=1e-6 * scale)
    start = np.zeros(len(alpha)) if problem.start is None else problem.start
    if bias:
        atol = constraint * max(1, alpha.sum())
        np.testing.assert_allclose(problem.signs @ alpha, problem.signs @ start, atol=atol)
        if nu:
            np.testing.assert_allclose(alpha.sum(), start.sum(), atol=atol)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("n", [2, 17, 120])
def test_matches_naive(n, kernel, dtype):
    X, signs = groups(n, dtype=dtype)
    K = gram(X, kernel, **KERNELS[kernel])
    problem = classifier(signs, C=0.5)
    rows = smo.Rows(X, kernel, gamma=0.1, **KERNELS[kernel])
    (solution,) = smo.solve(rows, [problem], tol=TOL)
    check(K, problem, solution)
    if kernel == "sigmoid":
        return  # not convex
    expected = objective(K, problem, solve_naive(K, problem))
    np.testing.assert_allclose(solution.objective, expected, rtol=1e-4)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("what", ["svc", "svr", "nu", "one"])
@pytest.mark.parametrize("n", [60, 900])
def test_every_problem(n, what, bias):
    X, signs = groups(n)
    K = gram(X)
    problem = {
        "svc": lambda: classifier(signs, 3.0),
        "svr": lambda: regressor(X[:, 0] ** 2, 2.0),
        "nu": lambda: nu_classifier(signs, 0.4),
        "one": lambda: one_class(n, 0.3),
    }[what]()
    if what in ("nu", "one") and not bias:
        pytest.skip("nu needs its constraint")
    nu = what == "nu"
    for threads in (1, 2):
        rows = smo.Rows(X, "rbf", gamma=0.1, n_threads=threads)
        (solution,) = smo.solve(rows, [problem], nu=nu, bias=bias, tol=TOL, n_threads=threads)
        check(K, problem, solution, nu, bias)
    if n == 60:
        expected = objective(K, problem, solve_naive(K, problem, nu, bias))
        np.testing.assert_allclose(solution.objective, expected, rtol=1e-4)


def dense_and_sparse(X):
    X = np.where(abs(X) < 0.7, 0, X)
    return X, sparse.csr_matrix(X)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("n", [100, 900])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_kind_of_rows(n, kernel, dtype):
    X, signs = groups(n, dtype=dtype)
    X, sparse_X = dense_and_sparse(X)
    params = {"gamma": 0.1, **KERNELS[kernel]}
    K = gram(X, kernel, **params)
    K32 = K.astype(np.float32)
    problem = classifier(signs, C=0.5)
    kinds = [
        smo.Rows(X, kernel, **params),
        smo.Rows(sparse_X, kernel, **params),
        smo.Rows.of_gram(K),
        smo.Rows.of_gram(np.asfortranarray(K)),
        smo.Rows.of_gram(K[::-1, ::-1][::-1, ::-1]),
        smo.Rows.of_gram(K32),
        smo.Rows.of_function(n, lambda ids: K[ids], K.diagonal()),
    ]
    for k, rows in enumerate(kinds):
        (solution,) = smo.solve(rows, [problem], tol=TOL)
        check(K32.astype(float) if k == 5 else K, problem, solution)


def test_same_as_libsvm():
    for n, C in ((500, 1.0), (1500, 50.0)):
        X, signs = groups(n, 20)
        K = gram(X, gamma=0.05)
        problem = classifier(signs, C)
        (solution,) = smo.solve(smo.Rows(X, "rbf", gamma=0.05), [problem], tol=TOL)
        check(K, problem, solution)
        model = stock.SVC(C=C, gamma=0.05, tol=TOL).fit(X, signs)
        alpha = np.zeros(n)
        alpha[model.support_] = abs(model.dual_coef_[0])
        np.testing.assert_allclose(solution.objective, objective(K, problem, alpha), rtol=1e-4)
        np.testing.assert_allclose(-solution.rho, model.intercept_[0], atol=2e-3)


def test_nu_and_one_class_offsets_are_libsvms():
    X, signs = groups(300)
    K = gram(X)
    rows = smo.Rows(X, "rbf", gamma=0.1)
    (solution,) = smo.solve(rows, [nu_classifier(signs, 0.4)], nu=True, tol=1e-5)
    model = stock.NuSVC(nu=0.4, gamma=0.1, tol=1e-5).fit(X, signs)
    f = (K @ (signs * solution.alpha) - solution.rho) / solution.r
    np.testing.assert_allclose(f, model.decision_function(X), atol=1e-3)
    (solution,) = smo.solve(rows, [one_class(300, 0.3)], tol=1e-5)
    model = stock.OneClassSVM(nu=0.3, gamma=0.1, tol=1e-5).fit(X)
    f = K @ solution.alpha - solution.rho
    np.testing.assert_allclose(f, model.decision_function(X), atol=1e-3)


@pytest.mark.parametrize("cache_size", [0, 0.5, 200])
@pytest.mark.parametrize("shrinking", [True, False])
def test_small_caches(cache_size, shrinking):
    X, signs = groups(1500)
    problem = classifier(signs, 10.0)
    rows = smo.Rows(X, "rbf", gamma=0.1)
    (solution,) = smo.solve(rows, [problem], cache_size=cache_size, shrinking=shrinking, tol=TOL)
    check(gram(X), problem, solution)


@pytest.mark.parametrize("cache_size", [0.1, 200])
def test_several_problems(cache_size):
    X, _ = groups(900)
    y = np.sort(np.random.default_rng(0).integers(0, 4, 900))
    X[:, 0] += 2 * y
    problems = []
    for a in range(4):
        for b in range(a):
            members = np.flatnonzero((y == a) | (y == b))
            signs = np.where(y[members] == a, 1, -1).astype(np.int8)
            ones = np.ones(len(members))
            problems.append(smo.Problem(members, signs, -ones, 2 * ones))
    K, found = gram(X), []
    for threads in (1, 2):
        rows = smo.Rows(X, "rbf", gamma=0.1, n_threads=threads)
        solutions = smo.solve(rows, problems, cache_size=cache_size, n_threads=threads, tol=TOL)
        for problem, solution in zip(problems, solutions, strict=True):
            check(K, problem, solution)
        found.append(solutions)
    for one, two in zip(*found, strict=True):
        np.testing.assert_array_equal(one.alpha, two.alpha)
        assert one.n_iter == two.n_iter


def test_same_bits_for_any_number_of_threads():
    X, signs = groups(3000, 20)
    for kernel, C in (("rbf", 10.0), ("linear", 0.1)):
        found = []
        for threads in (1, 2, 3):
            rows = smo.Rows(X, kernel, gamma=0.1, n_threads=threads)
            found.append(smo.solve(rows, [classifier(signs, C)], n_threads=threads, tol=TOL)[0])
        for other in found[1:]:
            np.testing.assert_array_equal(found[0].alpha, other.alpha)
            np.testing.assert_array_equal(found[0].gradient, other.gradient)
            assert found[0][1:7] == other[1:7]


def test_weights_and_bounds():
    X, signs = groups(800)
    upper = np.random.default_rng(0).random(800) * 3
    upper[::7] = 0
    upper[3] = np.inf
    problem = classifier(signs)._replace(upper=upper)
    (solution,) = smo.solve(smo.Rows(X, "rbf", gamma=0.1), [problem], tol=TOL)
    check(gram(X), problem, solution)
    assert (solution.alpha[::7] == 0).all()


def test_hard_margin():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 3))
    signs = np.where(X[:, 0] > 0, 1, -1).astype(np.int8)
    X[:, 0] += 0.5 * signs
    problem = classifier(signs, np.inf)
    for kernel in ("linear", "rbf"):
        (solution,) = smo.solve(smo.Rows(X, kernel, gamma=0.1), [problem], tol=TOL)
        check(gram(X, kernel), problem, solution)


@pytest.mark.parametrize("n", [700, 1250])
def test_ill_conditioned(n):
    X, signs = groups(n, 20, noise=0.2)
    X[:, 1] = X[:, 0] + 1e-5 * X[:, 1]
    problem = classifier(signs, 300.0)
    for kernel, params in (("linear", {}), ("poly", {"coef0": 1.0, "degree": 2})):
        rows = smo.Rows(X, kernel, gamma=0.1, **params)
        limit = {"max_iter": 100_000} if kernel == "poly" else {}
        (solution,) = smo.solve(rows, [problem], tol=TOL, **limit)
        K = gram(X, kernel, **params)
        if solution.status == 0:
            check(K, problem, solution)
        else:
            assert kernel == "poly"


def test_warm_start():
    X, signs = groups(1200)
    rows = smo.Rows(X, "rbf", gamma=0.1)
    (first,) = smo.solve(rows, [classifier(signs, 1.0)], tol=TOL)
    problem = classifier(signs, 2.0)._replace(start=2 * first.alpha)
    (warm,) = smo.solve(rows, [problem], tol=TOL)
    (cold,) = smo.solve(rows, [classifier(signs, 2.0)], tol=TOL)
    check(gram(X), problem, warm)
    assert warm.n_iter < cold.n_iter
    np.testing.assert_allclose(warm.objective, cold.objective, rtol=1e-5)


@pytest.mark.parametrize("max_iter", [0, 1, 7, 1000])
def test_max_iter(max_iter):
    X, signs = groups(1500)
    rows, problem = smo.Rows(X, "rbf", gamma=0.1), classifier(signs, 10.0)
    (solution,) = smo.solve(rows, [problem], max_iter=max_iter, tol=TOL)
    assert solution.status == 1
    assert solution.n_iter == max_iter
    gap = violation(gram(X), problem, solution.alpha)
    np.testing.assert_allclose(solution.gap, gap, rtol=1e-6)


def hostile(kind):
    rng = np.random.default_rng(0)
    X, signs = groups(700, 8)
    if kind == "one row":
        return X[:1], signs[:1]
    if kind == "duplicates":
        return X[rng.integers(0, 20, 700)], signs
    if kind == "constant":
        return np.ones_like(X), signs
    if kind == "zeros":
        return np.zeros_like(X), signs
    if kind == "denormal":
        return X * 1e-310, signs
    if kind == "tiny":
        return X * 1e-30, signs
    if kind == "huge":
        return X * 1e100, signs
    if kind == "overflow":
        return X * 1e200, signs
    if kind == "unscaled":
        return X * np.logspace(-6, 6, 8), signs
    if kind == "offset":
        return X + 1e6, signs
    raise ValueError(kind)


KINDS = ["one row", "duplicates", "constant", "zeros", "denormal", "tiny", "huge", "overflow"]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("kind", [*KINDS, "unscaled", "offset"])
def test_hostile_data_end(kind, kernel):
    X, signs = hostile(kind)
    problem = classifier(signs, 10.0)
    rows = smo.Rows(X, kernel, gamma=0.1, **KERNELS[kernel])
    (solution,) = smo.solve(rows, [problem], max_iter=20_000, tol=TOL)
    assert solution.status in (0, 1, 2)
    assert solution.n_iter <= 20_000
    assert (solution.alpha >= 0).all()
    assert (solution.alpha <= 10).all()
    if kernel == "rbf" and len(X) > 1:
        with np.errstate(all="ignore"):
            K = gram(X - 1e6 if kind == "offset" else X)
        if solution.status == 0 and np.isfinite(K).all():
            check(K, problem, solution)


def test_progress_and_interrupts():
    X, signs = groups(2000, 20, noise=0.3)
    rows, problem = smo.Rows(X, "rbf", gamma=0.01), classifier(signs, 1e5)
    told = []

    def progress(steps, gap):
        told.append((steps, gap))
        if len(told) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        smo.solve(rows, [problem], tol=1e-14, progress=progress)
    assert len(told) == 3
    assert told[0][0] < told[2][0]


def test_ctrl_c_ends_problems_that_are_solved_side_by_side():
    X, signs = groups(6000, 20, noise=0.3)
    rows, problem = smo.Rows(X, "rbf", gamma=0.5), classifier(signs, 1000.0)

    def progress(steps, gap):
        raise KeyboardInterrupt

    room = {"cache_size": 500}  # each thread has the rows that it asks for
    before = time.process_time()
    with pytest.raises(KeyboardInterrupt):
        smo.solve(rows, 4 * [problem], tol=1e-14, progress=progress, n_threads=2, **room)
    assert time.process_time() - before < 5


def test_progress_may_end_it():
    X, signs = groups(2000, 20, noise=0.3)
    rows, problem = smo.Rows(X, "rbf", gamma=0.01), classifier(signs, 1e5)
    K = gram(X, gamma=0.01)
    for solution in smo.solve(rows, 2 * [problem], tol=1e-14, progress=lambda steps, gap: True):
        assert solution.status == 1
        gap = violation(K, problem, solution.alpha)
        np.testing.assert_allclose(solution.gap, gap, rtol=1e-3, atol=1e-6)


def test_errors_of_functions_come_through():
    def rows(ids):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        smo.solve(smo.Rows.of_function(5, rows), [one_class(5, 0.5)], tol=TOL)


CODE = """
import numpy as np
from tests.test_smo import check, classifier, gram, groups, smo, TOL
X, signs = groups(1000)
for kernel in ("rbf", "linear"):
    for dtype in (np.float32, np.float64):
        problem = classifier(signs, 5.0)
        rows = smo.Rows(X.astype(dtype), kernel, gamma=0.1)
        (solution,) = smo.solve(rows, [problem], tol=TOL)
        check(gram(X.astype(dtype), kernel), problem, solution)
"""


@pytest.mark.parametrize("isa", ["baseline", "avx2"])
def test_every_instruction_set(isa):
    environment = {**os.environ, "FASTML_ISA": isa}
    subprocess.run([sys.executable, "-c", CODE], check=True, env=environment)
