"""Classification by one machine for each pair of classes."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.svm._base import BaseSVC
from sklearn.utils.metaestimators import available_if

from fastml._native import decision as native
from fastml._runtime.dispatch import accelerated
from fastml.svm import _platt
from fastml.svm._machine import Machine, are_plain
from fastml.svm._problems import Fitted, Members, assemble_pairs, certificate, members_of


class Classifier(Machine):
    """Its problems are made by `_problem`, of two classes each."""

    def _validate_targets(self, y):
        if self.class_weight is None and are_plain(y, len(y)) and y.dtype.kind in "bi":
            classes, codes = np.unique(y, return_inverse=True)
            if 1 < len(classes) <= len(y) // 2:  # scikit-learn warns of more
                self.classes_, self.class_weight_ = classes, np.ones(len(classes))
                return codes
        return super()._validate_targets(y)

    def _solve(self, values, y, w, seed, progress):
        members = members_of(y.astype(np.intp), len(self.classes_), w)
        folds: list = []

        def at(C: float) -> list:
            nonlocal folds
            problems = [self._pair(members, i, j, C) for i, j in _pairs(members)]
            if seed is not None:
                folds = _platt.folds_of(problems, seed, self.nu if self._is_nu() else None)
            return [*problems, *(fold.problem for fold in folds)]

        problems, solutions = self._soft_solutions(values, at, progress)
        found = list(_matched(problems, solutions))
        pairs = found[: len(found) - len(folds)]
        fitted = self._assembled(members, pairs)
        self._probA = self._probB = np.empty(0)
        if seed is not None:
            scaled = [self._scaled(p, s) for p, s in found[len(pairs) :] if p is not None]
            A, B = _platt.sigmoids(values, [p for p, _ in pairs], folds, scaled)
            self._probA, self._probB = A, B
        return fitted

    def _soft_solutions(self, values: Any, problems_at: Any, progress: Any) -> tuple[list, list]:
        """Of machines without C; see SoftMachine."""
        problems = problems_at(0.0)
        there = [p for p in problems if p is not None]
        return problems, self._solutions(values, there, progress, nu=True)

    def _is_nu(self) -> bool:
        return self._impl == "nu_svc"

    def _pair(self, members: Members, i: int, j: int, C: float) -> Any:
        """None if one of the classes has no rows, as all of them weigh nothing."""
        a, b = members[i], members[j]
        if a.stop == a.start or b.stop == b.start:
            return None
        return self._problem(members, i, j, C)

    def _problem(self, members: Members, i: int, j: int, C: float) -> Any:
        raise NotImplementedError

    def _scaled(self, problem: Any, found: Any) -> tuple[np.ndarray, float]:
        """Coefficients and rho; of a ν-machine in the units in which its margin is 1."""
        r = np.float64(found.r if self._is_nu() else 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):  # 0: fit will say that it is no use
            return found.alpha * problem.signs / r, found.rho / r

    def _assembled(self, members: Members, pairs: list) -> Fitted:
        coefficients: list[np.ndarray | None] = []
        intercept, n_iter, certificates = [], [], []
        for (i, _), (problem, found) in zip(_pairs(members), pairs, strict=True):
            if problem is None:  # a class that has rows wins against one that has none
                a = members[i]
                coefficients.append(None)
                intercept.append(1.0 if a.stop > a.start else -1.0)
                n_iter.append(0)
                certificates.append((0.0, 0.0, np.inf))
                continue
            coef, rho = self._scaled(problem, found)
            coefficients.append(coef)
            intercept.append(-rho)
            n_iter.append(found.n_iter)
            gap, violation, margin = certificate(problem, found)
            r = np.float64(found.r if self._is_nu() else 1.0)
            with np.errstate(all="ignore"):  # where r is all but zero, or too large
                certificates.append((gap / r**2 if r else gap, violation, margin * r))
        self.n_iter_ = self._num_iter = np.array(n_iter, dtype=np.intc)
        self.dual_gap_, self.kkt_violation_, self.margin_ = np.array(certificates).T.copy()
        return assemble_pairs(members, coefficients, np.array(intercept))

    def _last_alphas(self, problems: list) -> list[np.ndarray | None]:
        coef = self._last_coef()
        alphas: list[np.ndarray | None] = [None] * len(problems)  # those of folds come after
        for p, (i, j) in enumerate(combinations(range(len(self.classes_)), 2)):
            problem = problems[p]
            if problem is None:
                continue
            found = np.where(problem.signs > 0, coef[j - 1, problem.rows], coef[i, problem.rows])
            alphas[p] = np.maximum(found * problem.signs, 0)
        return alphas

    @accelerated
    def decision_function(self, X):
        """The decision of each pair of classes, or votes with ties broken by their sums."""
        decisions = self._decisions(X)
        k = len(self.classes_)
        if k == 2:
            return -decisions.ravel()
        if self.decision_function_shape == "ovo":
            return decisions
        out = np.empty((len(decisions), k))
        native.one_against_rest(decisions, out)
        return out

    @accelerated
    def predict(self, X):
        """The class of each row."""
        ties = self.break_ties
        if ties and self.decision_function_shape == "ovo" and hasattr(self, "classes_"):
            raise ValueError("break_ties must be False when decision_function_shape is 'ovo'")
        decisions = self._decisions(X)
        k = len(self.classes_)
        if k == 2:
            return self.classes_.take((~(decisions[:, 0] > 0)).astype(np.intp))
        if ties:
            votes = np.empty((len(decisions), k))
            native.one_against_rest(decisions, votes)
            return self.classes_.take(votes.argmax(axis=1))
        winner = np.empty(len(decisions), np.intp)
        native.winners(decisions, k, winner)
        return self.classes_.take(winner)

    @available_if(BaseSVC._check_proba)
    @accelerated
    def predict_proba(self, X):
        """The probability of each class, by Platt's sigmoids of the pairs' decisions."""
        decisions = self._decisions(X)
        if self._probA.size == 0 or self._probB.size == 0:
            raise NotFittedError(
                "predict_proba is not available when fitted with probability=False"
            )
        pairs = _platt.probabilities(decisions, self._probA, self._probB)
        out = np.empty((len(pairs), len(self.classes_)))
        native.couple(pairs, out)
        return out

    def slacks(self, X, y):
        """By how much each pair's machine misses the margin at rows of its two classes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows, of the fit or others.

        y : array-like of shape (n_samples,)
            Their classes.

        Returns
        -------
        slacks : ndarray of shape (n_samples, n_classes * (n_classes - 1) // 2)
            ``max(0, 1 - decision)``, with the sign that favours the row's class; 0 for a pair that
            the class does not belong to.
        """
        decisions, y = self._decisions(X), np.asarray(y)
        slacks = np.zeros_like(decisions)
        for p, (i, j) in enumerate(combinations(self.classes_, 2)):
            first, second = y == i, y == j
            slacks[first, p] = np.maximum(1 - decisions[first, p], 0)
            slacks[second, p] = np.maximum(1 + decisions[second, p], 0)
        return slacks


def _pairs(members: Members) -> list[tuple[int, int]]:
    return list(combinations(range(len(members.starts) - 1), 2))


def _matched(problems: list, solutions: list) -> Any:
    """Each problem with its solution; None where there is no problem."""
    rest = iter(solutions)
    return ((p, None if p is None else next(rest)) for p in problems)
