"""Machines with a bound C on their dual variables: warm starts along it, and no bound at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import issparse

from fastml.svm import _hyperplane
from fastml.svm._machine import Machine
from fastml.svm._problems import squared_norm

# Bounds that stand for none, in turn: the first that no variable reaches is as good as infinity.
FIRST, STEP, LAST = 1.0, 30.0, 1e13

# Steps for each row before it is asked whether there is a solution at all.
PATIENCE = 2000

# Two classes are as good as touching if their distance in feature space is less than this share of
# the rows' size there.
TOUCHING = 1e-6


class SoftMachine(Machine):
    """`C` bounds the dual variables; `_last_alphas` tells what each problem had in the last fit."""

    def _soft_solutions(
        self, values: Any, problems_at: Callable[[float], list], progress: Any
    ) -> tuple[list, list]:
        """The problems for self.C, and their solutions."""
        options = {"bias": self.solver == "smo"}
        if np.isinf(self.C):
            return self._hard_solutions(values, problems_at, progress, options)
        problems = problems_at(self.C)
        if self.warm_start and self._fits_last(problems):
            problems = _started(problems, self._last_alphas(problems), self.C / self._fastml_C)
        there = _there(problems)
        if options["bias"] and self.max_iter < 0 and _hyperplane.pays(values, there):
            solutions = self._linear_solutions(values, there, progress)
        else:
            solutions = self._solutions(values, there, progress, **options)
        self._fastml_C = self.C
        return problems, solutions

    def _linear_solutions(self, values: Any, problems: list, progress: Any) -> list:
        """By two-variable steps if few are enough, else from the hyperplanes."""
        stopped = False

        def watch(steps: int = 0, violation: float = np.inf) -> bool:
            nonlocal stopped
            stopped = stopped or (progress is not None and progress(steps, violation))
            return stopped

        told = None if progress is None else watch
        few = _hyperplane.patience(values, problems)
        solutions = self._solutions(values, problems, told, max_iter=few)
        slow = [k for k, solution in enumerate(solutions) if solution.status]
        regression = self._impl == "epsilon_svr"
        started = [_hyperplane.started(values, problems[k], regression, watch) for k in slow]
        if stopped or not slow:
            return solutions
        for k, solution in zip(slow, self._solutions(values, started, told), strict=True):
            steps = solutions[k].n_iter + solution.n_iter
            solutions[k] = solution._replace(n_iter=steps)
        return solutions

    def _fits_last(self, problems: list) -> bool:
        """Whether there is a last solution that may be one of these problems."""
        if not hasattr(self, "_fastml_C") or not hasattr(self, "support_"):
            return False
        n = max((int(p.rows.max()) for p in _there(problems)), default=0) + 1
        return n <= self.shape_fit_[0] and self._dual_coef_.shape[0] == max(
            1, len(getattr(self, "classes_", ())) - 1
        )

    def _last_coef(self) -> np.ndarray:
        """The coefficients of all rows of the last fit."""
        coef = self._dual_coef_.toarray() if issparse(self._dual_coef_) else self._dual_coef_
        full = np.zeros((len(coef), self.shape_fit_[0]))
        full[:, self.support_] = coef
        return full

    def _hard_solutions(
        self, values: Any, problems_at: Callable[[float], list], progress: Any, options: dict
    ) -> tuple[list, list]:
        """Without a bound, in one go; if that takes long, by bounds that are raised in turn."""
        problems = problems_at(np.inf)
        steps = PATIENCE * max((len(p.rows) for p in _there(problems)), default=1)
        options["max_iter"] = steps if self.max_iter < 0 else min(steps, self.max_iter)
        size = _size(values, _there(problems))
        C, alphas = FIRST, None
        solutions = self._solutions(values, _there(problems), progress, **options)
        while self.fit_status_ or _at_bound(problems, solutions):
            if any(_touching(p, s, size) for p, s in zip(_there(problems), solutions, strict=True)):
                break
            if C > LAST or (self.fit_status_ and C > FIRST):
                break
            problems = problems_at(C)
            if alphas is not None:
                problems = _started(problems, alphas, 1.0)
            solutions = self._solutions(values, _there(problems), progress, **options)
            rest = iter(solutions)
            alphas = [None if p is None else next(rest).alpha for p in problems]
            C *= STEP
        else:
            return problems, solutions
        raise ValueError(
            "C=inf asks for a hard margin, but nothing of the kernel satisfies all rows: classes "
            "are not separable in its feature space (or targets not within epsilon), or not by "
            "more than rounding. Use a finite C, or a kernel that has more features."
        )


def _at_bound(problems: list, solutions: list) -> bool:
    pairs = zip(_there(problems), solutions, strict=True)
    return any(bool((s.alpha >= p.upper).any()) for p, s in pairs)


def _there(problems: list) -> list:
    return [p for p in problems if p is not None]


def _size(values: Any, problems: list) -> float:
    """About how long rows are in feature space."""
    some = problems[0].rows[:: max(1, len(problems[0].rows) // 16)]
    one = np.ones(1)
    squares = [abs(float(values.apply(i, i, one)[0])) for i in some[:, np.newaxis]]
    return max(squares) ** 0.5


def _touching(problem: Any, solution: Any, size: float) -> bool:
    """Whether points of the two convex hulls, which the solution weighs, all but coincide."""
    apart = 2 * max(squared_norm(problem, solution), 0.0) ** 0.5
    return apart <= TOUCHING * size * float(solution.alpha.sum())


def _started(problems: list, alphas: list[np.ndarray | None], scale: float) -> list:
    """The problems with feasible starts: the alphas, scaled into the box and balanced."""
    return [
        problem if alpha is None else problem._replace(start=_feasible(problem, alpha * scale))
        for problem, alpha in zip(problems, alphas, strict=True)
    ]


def _feasible(problem: Any, alpha: np.ndarray) -> np.ndarray:
    start = np.minimum(alpha, problem.upper)
    positive = problem.signs > 0
    above, below = start[positive].sum(), start[~positive].sum()
    if above > below:
        start[positive] *= below / above
    elif below > above:
        start[~positive] *= above / below
    return start
