"""SVC, NuSVC, SVR, NuSVR and OneClassSVM."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn import svm as stock
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import _num_samples

from fastml._runtime.callbacks import fit_context
from fastml._runtime.dispatch import accelerated
from fastml._runtime.docs import documented_by
from fastml.svm import _problems
from fastml.svm._classifier import Classifier
from fastml.svm._machine import Machine, are_plain
from fastml.svm._options import with_options
from fastml.svm._problems import assemble_one
from fastml.svm._soft import SoftMachine

ON_THE_BOUNDARY = 1e-9
_OPTIONS: dict[str, list] = {"solver": [StrOptions({"smo", "sdca"})], "warm_start": ["boolean"]}


@with_options(solver="smo", warm_start=False)
@documented_by(stock.SVC)
class SVC(SoftMachine, Classifier, stock.SVC):
    """C-support vector classification.

    The dual is solved to the precision `tol` in scikit-learn's sense. Beyond scikit-learn's,
    `kernel` may be a kernel object of `fastml.gaussian_process.kernels` or a `fastml.jit.kernel`,
    and with ``C=numpy.inf`` the margin is hard.

    Parameters
    ----------
    solver : {"smo", "sdca"}, default="smo"
        "sdca" leaves out the intercept, and with it the constraint that ties the dual variables
        together: they are improved one or two at a time, those that gain most first, where
        stochastic dual coordinate ascent, which gave the name, draws them.

    warm_start : bool, default=False
        Whether to start from the solution of the last fit, which must have been on the same rows,
        with another `C`.

    Attributes
    ----------
    dual_gap_ : ndarray of shape (n_classes * (n_classes - 1) // 2,)
        What the primal objective of each pair may be above its minimum, at most.

    kkt_violation_ : ndarray of shape (n_classes * (n_classes - 1) // 2,)
        How far each pair is from the conditions for an optimum, in the sense of `tol`.

    margin_ : ndarray of shape (n_classes * (n_classes - 1) // 2,)
        The distance of each pair's hyperplane to where its decision is 1, in feature space.

    Examples
    --------
    >>> import numpy as np
    >>> from fastml.svm import SVC
    >>> X = np.array([[-1.0, -1.0], [-2.0, -1.0], [1.0, 1.0], [2.0, 1.0]])
    >>> y = np.array([1, 1, 2, 2])
    >>> SVC().fit(X, y).predict([[-0.8, -1]])
    array([1])
    >>> hard = SVC(kernel="linear", C=np.inf).fit(X, y)
    >>> hard.margin_.round(3), hard.slacks(X, y).max().round(2)
    (array([1.414]), np.float64(0.0))
    """

    _parameter_constraints: ClassVar[dict] = {**stock.SVC._parameter_constraints, **_OPTIONS}

    def _check_weights(self, y, w):
        super()._check_weights(y, w)
        if w is not None and not (w > 0).all() and len(np.unique(y[w > 0])) == 1:
            raise ValueError(
                "Invalid input - all samples with positive weights belong to the same class."
            )

    def _problem(self, members, i, j, C):
        C_i, C_j = C * self.class_weight_[i], C * self.class_weight_[j]
        return _problems.c_classification(members, members[i], members[j], C_i, C_j)


@documented_by(stock.NuSVC)
class NuSVC(Classifier, stock.NuSVC):
    """Support vector classification with a bound on the share of errors in place of `C`.

    Attributes
    ----------
    dual_gap_ : ndarray of shape (n_classes * (n_classes - 1) // 2,)
        What the primal objective of each pair may be above its minimum, at most.

    kkt_violation_ : ndarray of shape (n_classes * (n_classes - 1) // 2,)
        How far each pair is from the conditions for an optimum, in the sense of `tol`.

    margin_ : ndarray of shape (n_classes * (n_classes - 1) // 2,)
        The distance of each pair's hyperplane to where its decision is 1, in feature space.

    Examples
    --------
    >>> import numpy as np
    >>> from fastml.svm import NuSVC
    >>> X = np.array([[-1.0, -1.0], [-2.0, -1.0], [1.0, 1.0], [2.0, 1.0]])
    >>> NuSVC(nu=0.4).fit(X, [1, 1, 2, 2]).predict([[-0.8, -1]])
    array([1])
    """

    def _check_weights(self, y, w):
        codes = y.astype(np.intp)
        sums = np.bincount(codes, w, minlength=len(self.classes_)).astype(np.float64)
        least, most = sums.min(), sums.max()
        if self.nu * (least + most) / 2 > least:
            raise ValueError("specified nu is infeasible")
        super()._check_weights(y, w)

    def _problem(self, members, i, j, C):
        return _problems.nu_classification(members, members[i], members[j], self.nu)


class Regressor(Machine):
    """One machine for a target, or for the rows alone."""

    def _validate_targets(self, y):
        if are_plain(y, len(y)):
            return y.astype(np.float64, copy=False)
        return super()._validate_targets(y)

    def _solve(self, values, y, w, seed, progress):
        rows = np.arange(len(y)) if w is None else np.flatnonzero(w > 0)
        weights = np.ones(len(rows)) if w is None else w[rows]
        self._probA = self._probB = np.empty(0)
        problem, found = self._found(values, rows, y[rows], weights, progress)
        coefficients = found.alpha * problem.signs
        if len(coefficients) > len(rows):
            coefficients = coefficients[: len(rows)] + coefficients[len(rows) :]
        self._num_iter = np.array([found.n_iter], dtype=np.intc)
        self.n_iter_ = self._num_iter.item()
        self.dual_gap_, self.kkt_violation_, _ = _problems.certificate(problem, found)
        return assemble_one(rows, coefficients, np.array([-found.rho]))

    def _found(self, values, rows, y, weights, progress) -> Any:
        problem = self._problem(rows, y, weights)
        return problem, self._solutions(values, [problem], progress, nu=self._impl == "nu_svr")[0]

    @accelerated
    def predict(self, X):
        """The target of each row."""
        return self._decisions(X).ravel()

    def slacks(self, X, y):
        """How far the targets of rows are from the decision, beyond the tube's width."""
        far = abs(np.asarray(y, dtype=np.float64) - self.predict(X))
        return np.maximum(far - self._width(), 0.0)


@with_options(solver="smo", warm_start=False)
@documented_by(stock.SVR)
class SVR(SoftMachine, Regressor, stock.SVR):
    """Epsilon-support vector regression.

    Beyond scikit-learn's, `kernel` may be a kernel object of `fastml.gaussian_process.kernels` or
    a `fastml.jit.kernel`, and with ``C=numpy.inf`` no target may be farther than `epsilon`.

    Parameters
    ----------
    solver : {"smo", "sdca"}, default="smo"
        "sdca" leaves out the intercept, and with it the constraint that ties the dual variables
        together: they are improved one or two at a time, those that gain most first, where
        stochastic dual coordinate ascent, which gave the name, draws them.

    warm_start : bool, default=False
        Whether to start from the solution of the last fit, which must have been on the same rows,
        with another `C`.

    Attributes
    ----------
    dual_gap_ : float
        What the primal objective may be above its minimum, at most.

    kkt_violation_ : float
        How far the solution is from the conditions for an optimum, in the sense of `tol`.

    Examples
    --------
    >>> import numpy as np
    >>> from fastml.svm import SVR
    >>> X = np.arange(10.0).reshape(-1, 1)
    >>> model = SVR(kernel="linear", C=10, epsilon=0.5).fit(X, 2 * X[:, 0])
    >>> bool(abs(model.predict(X) - 2 * X[:, 0]).max() < 0.51)
    True
    """

    _parameter_constraints: ClassVar[dict] = {**stock.SVR._parameter_constraints, **_OPTIONS}

    def _problem(self, rows, y, upper):
        return _problems.epsilon_regression(rows, y, upper, self.epsilon)

    def _found(self, values, rows, y, weights, progress):
        def at(C: float) -> list:
            return [self._problem(rows, y, C * weights)]

        problems, solutions = self._soft_solutions(values, at, progress)
        return problems[0], solutions[0]

    def _last_alphas(self, problems):
        coef = self._last_coef()[0, problems[0].rows]
        return [np.maximum(coef * problems[0].signs, 0)]

    def _width(self) -> float:
        return self.epsilon


@documented_by(stock.NuSVR)
class NuSVR(Regressor, stock.NuSVR):
    """Support vector regression whose tube is as wide as a share of errors allows.

    Attributes
    ----------
    dual_gap_ : float
        What the primal objective may be above its minimum, at most.

    kkt_violation_ : float
        How far the solution is from the conditions for an optimum, in the sense of `tol`.

    epsilon_ : float
        The width of the tube, to either side.

    Examples
    --------
    >>> import numpy as np
    >>> from fastml.svm import NuSVR
    >>> X = np.arange(10.0).reshape(-1, 1)
    >>> model = NuSVR(kernel="linear", C=10, nu=0.1).fit(X, 2 * X[:, 0])
    >>> bool(abs(model.predict(X) - 2 * X[:, 0]).max() < 1)
    True
    """

    def _problem(self, rows, y, weights):
        return _problems.nu_regression(rows, y, self.C * weights, self.nu)

    def _found(self, values, rows, y, weights, progress):
        problem, found = super()._found(values, rows, y, weights, progress)
        self.epsilon_ = max(-found.r, 0.0)
        return problem, found

    def _width(self) -> float:
        return self.epsilon_


@documented_by(stock.OneClassSVM)
class OneClassSVM(Regressor, stock.OneClassSVM):
    """Where a distribution has its bulk: what is outside is an outlier.

    Attributes
    ----------
    dual_gap_ : float
        What the primal objective may be above its minimum, at most.

    kkt_violation_ : float
        How far the solution is from the conditions for an optimum, in the sense of `tol`.

    Examples
    --------
    >>> from fastml.svm import OneClassSVM
    >>> X = [[0], [0.44], [0.45], [0.46], [1]]
    >>> OneClassSVM(gamma="auto").fit(X).predict(X)
    array([-1,  1,  1,  1, -1])
    """

    @accelerated
    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Find where the rows are dense."""
        self._fit(X, np.ones(_num_samples(X)), sample_weight)
        self.offset_ = -self._intercept_
        return self

    def _problem(self, rows, y, weights):
        return _problems.one_class(rows, weights, self.nu)

    def _found(self, values, rows, y, weights, progress):
        problem, found = super()._found(values, rows, y, weights, progress)
        # A support vector that the boundary goes through is inside, however sums are rounded.
        return problem, found._replace(rho=found.rho - ON_THE_BOUNDARY * abs(found.rho))

    @accelerated
    def decision_function(self, X):
        """Signed distances to the boundary, positive inside."""
        return self._decisions(X).ravel()

    @accelerated
    def predict(self, X):
        """1 for rows inside, -1 for outliers."""
        return np.where(self._decisions(X)[:, 0] > 0, 1, -1).astype(np.intp)

    def slacks(self, X, y=None):
        """How far rows are outside."""
        return np.maximum(-self.decision_function(X), 0.0)
