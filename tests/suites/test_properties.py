"""Whatever the shape, dtype, layout and weights: the stock class's results and errors."""

import numpy as np
import pytest
from scipy import sparse

hypothesis = pytest.importorskip("hypothesis")
from hypothesis import HealthCheck, given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from suites.harness import check_addition, compare_with_stock  # noqa: E402
from suites.registry import ADDITIONS, REPLACEMENTS  # noqa: E402


def _strided(X):
    return np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3]


def _readonly(X):
    X = X.copy()
    X.flags.writeable = False
    return X


LAYOUTS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "strided": _strided,
    "reversed": lambda X: X[::-1, ::-1],
    "readonly": _readonly,
    "csr": sparse.csr_matrix,
    "csr_array": sparse.csr_array,
    "csc": sparse.csc_matrix,
    "coo": sparse.coo_matrix,
}


def _zero_some(weight, rng):
    weight[rng.random(len(weight)) < 0.3] = 0.0
    return weight


WEIGHTS = {
    "none": lambda n, rng: None,
    "ones": lambda n, rng: np.ones(n),
    "random": lambda n, rng: rng.random(n),
    "single": lambda n, rng: rng.random(n).astype(np.float32),
    "zeros": lambda n, rng: _zero_some(rng.random(n), rng),
    "integers": lambda n, rng: rng.integers(1, 5, n),
    "list": lambda n, rng: rng.random(n).tolist(),
    "scalar": lambda n, rng: 2.5,
    "wrong length": lambda n, rng: np.ones(n + 1),
}


@st.composite
def inputs(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, d = draw(st.integers(1, 120)), draw(st.integers(1, 40))
    dtype = draw(st.sampled_from([np.float64, np.float64, np.float32, np.float32, np.int64]))
    # Not so far from the origin that scikit-learn's distances lose their digits.
    X = rng.normal(draw(st.sampled_from([0.0, 3.0])), size=(n, d))
    scale = draw(st.sampled_from([1.0, 1e-3, 100.0]))
    if draw(st.booleans()):
        X[:, rng.random(d) < 0.3] = draw(st.sampled_from([0.0, 1.0]))
    X *= scale
    if np.issubdtype(dtype, np.integer):
        # Distinct enough to leave no ties for rounding to decide.
        X *= 1e6
    X = LAYOUTS[draw(st.sampled_from(sorted(LAYOUTS)))](X.astype(dtype))
    return X, WEIGHTS[draw(st.sampled_from(sorted(WEIGHTS)))](n, rng)


def _settings(examples, **options):
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large]
    return settings(
        max_examples=examples, deadline=None, database=None, suppress_health_check=checks, **options
    )


@pytest.mark.parametrize("subject", REPLACEMENTS, ids=str)
def test_same_as_scikit_learn(subject):
    @_settings(60, derandomize=True)
    @given(inputs())
    def check(drawn):
        compare_with_stock(subject, *drawn)

    check()


@pytest.mark.slow
@pytest.mark.parametrize("subject", REPLACEMENTS, ids=str)
def test_same_as_scikit_learn_at_length(subject):
    @_settings(5000)
    @given(inputs())
    def check(drawn):
        compare_with_stock(subject, *drawn)

    check()


@pytest.mark.parametrize("subject", ADDITIONS, ids=str)
def test_additions(subject):
    @_settings(60, derandomize=True)
    @given(inputs())
    def check(drawn):
        check_addition(subject, *drawn, kind="random")

    check()
