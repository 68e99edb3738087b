"""Where the trees of one fit are raised: what they share, and the batch that grows at once.

scikit-learn's own loops fit the ensembles: they check the data, draw seeds and bootstraps, and fit
tree after tree. A tree that is given a nursery does not grow in its turn: it is planted with its
weights, and grows together with others, in parallel and on the same coded columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from joblib import parallel_config
from joblib.parallel import SequentialBackend, ThreadingBackend, get_active_backend
from scipy.sparse import issparse
from sklearn.tree._tree import Tree
from sklearn.utils import check_random_state

from fastml._native import trees as native
from fastml.tree._levels import LevelTree
from fastml.tree._targets import Limits, Targets, whole

# Weights of waiting trees take up to so many bytes, or those of a few trees for each thread.
_BATCH_BYTES, _TREES_PER_THREAD = 1 << 24, 3
_VALUES_PER_THREAD = 1 << 13  # fewer are done before another thread is awake
_SEEDS = np.iinfo(np.int32).max


class Nursery:
    """Grows trees that differ in their seeds and weights alone.

    Parameters
    ----------
    n_threads : int

    owner : estimator, default=None
        The ensemble whose trees they are.

    patient : bool
        Whether planted trees wait until there is a batch of them.

    on_grown : callable, default=None
        Called with each tree that has grown; the rest is given up when it returns True.
    """

    def __init__(
        self,
        n_threads: int,
        owner: Any = None,
        patient: bool = False,
        on_grown: Callable[[Any], bool] | None = None,
    ) -> None:
        self.n_threads, self.owner = n_threads, owner
        self.patient, self._on_grown = patient, on_grown
        self.closed = False
        self._template: Any = None
        self._given: Any = None
        self._checked: Any = None
        self._queries: Any = None
        self._targets: Targets | None = None
        self._columns: Any = None
        self._setting: Any = None
        self._seedlings: list[Any] = []
        self._seeds: list[int] = []
        self._weights: list[np.ndarray | None] = []
        self._whole: Any = None
        # How many rows each tree draws with its own seed as it grows, None: it is given weights.
        self.draws: int | None = None
        self._draw: Any = None
        self._take: Callable[[], Any] | None = None

    def seedling(self, make: Callable[[], Any], random_state: Any) -> Any:
        """An unfitted tree like that of `make`, seeded as scikit-learn's ensembles do."""
        if self._template is None:
            self._template = make()
        tree = object.__new__(type(self._template))
        vars(tree).update(vars(self._template), _fastml_nursery=self)
        if random_state is not None:
            tree.random_state = check_random_state(random_state).randint(_SEEDS)
        return tree

    def will_draw(self, X: Any, y: Any, drawn: Callable[[], np.ndarray]) -> None:
        """The next tree grows on rows of X and y: those that `drawn` tells by then."""
        self.shares(X)
        self._draw = (X, y, drawn)

    def beside(self, tree: Any) -> Nursery:
        """One for a tree that grows on other data."""
        other = Nursery(self.n_threads, owner=self.owner)
        if self._draw is not None and tree.splitter == "best" and not issparse(self._draw[0]):
            other._take = partial(self._taken, tree, *self._draw)
        self._draw = None
        return other

    def _taken(self, tree: Any, X: Any, y: Any, drawn: Callable[[], np.ndarray]) -> Any:
        columns = self.columns(self.checked(tree, X, y)[0], ranks=True)
        return columns.take(drawn(), n_threads=self._threads(X.size))

    def shares(self, X: Any) -> bool:
        """Whether X is the data of this nursery, which is that of its first tree."""
        if self._given is None:
            self._given = X
        return self._given is X

    def checked(self, tree: Any, X: Any, y: Any) -> tuple[Any, Any, np.ndarray | None]:
        """The rows, the targets and which features miss values; checked once."""
        if self._checked is None or self._checked[0] is not y:
            self._checked = (y, tree._checked(X, y))
        return self._checked[1]

    def queries(self, X: Any, check: Callable[[], Any]) -> Any:
        """What `check` makes of X; worked out once if X is the data of the nursery."""
        if self._given is not X:
            return check()
        if self._checked is not None and isinstance(self._checked[1][0], np.ndarray):
            return self._checked[1][0]
        if self._queries is None:
            self._queries = check()
        return self._queries

    def columns(self, X: Any, ranks: bool, levels: np.ndarray | None = None) -> Any:
        """The columns of X, coded as splits by rank or at random want them."""
        if self._columns is None or self._columns[0] is not X or self._columns[1] != ranks:
            coded = self._coded(X, ranks, levels) if self._take is None else self._take()
            self._columns = (X, ranks, coded)
        return self._columns[2]

    def _coded(self, X: Any, ranks: bool, levels: np.ndarray | None) -> Any:
        if issparse(X):
            if X.indices.dtype != np.intc or X.indptr.dtype != np.intc:
                raise ValueError("No support for np.int64 index based sparse matrices")
            if not X.has_canonical_format:
                X = X.copy()
                X.sum_duplicates()
        return native.Columns(X, ranks=ranks, n_threads=self._threads(X.size), levels=levels)

    def targets(self, y: Any, classification: bool) -> Targets:
        if self._targets is None or self._targets.given is not y:
            self._targets = Targets(y, classification)
        return self._targets

    def plant(
        self, tree: Any, seed: int, weights: np.ndarray | None, limits: Limits, soil: tuple
    ) -> None:
        """Have a tree grow in `soil`: columns, targets, criterion and constraints."""
        if self.closed:
            return
        setting = (limits, *soil)
        if self._seedlings and not _same(setting, self._setting):
            self.grow()
        self._setting = setting
        if self._whole is None or self._whole[0] is not weights:
            self._whole = (weights, weights if weights is None else whole(weights))
        self._weights.append(self._whole[1])
        self._seedlings.append(tree)
        self._seeds.append(seed)
        is_full = weights is not None and len(self._seedlings) >= self._batch(len(weights))
        if is_full or not self.patient:
            self.grow()

    def _threads(self, values: int) -> int:
        """How many threads so many values are worth."""
        return 1 if values < _VALUES_PER_THREAD else self.n_threads

    def _batch(self, n: int) -> int:
        return max(_TREES_PER_THREAD * self.n_threads, _BATCH_BYTES // (4 * n))

    def grow(self) -> None:
        """Grow all that has been planted."""
        if not self._seedlings:
            return
        limits, columns, targets, criterion, constraints = self._setting
        seedlings, seeds, weights = self._seedlings, self._seeds, self._weights
        self._seedlings, self._seeds, self._weights, self._whole = [], [], [], None
        garden = native.Garden(
            columns,
            targets.values,
            _stacked(weights),
            np.array(seeds, dtype=np.int64),
            bootstraps=None if self.draws is None else [tree.random_state for tree in seedlings],
            draws=self.draws or 0,
            criterion=criterion,
            n_classes=targets.n_classes,
            monotonic_cst=constraints,
            n_threads=self._threads(len(seeds) * columns.n * columns.d),
            **limits._asdict(),
        )
        widths = targets.n_classes
        if widths is None:
            widths = np.ones(targets.values.shape[1], dtype=np.intp)
        gathered = partial(self._gathered, widths, criterion, columns)
        ahead: dict[int, tuple] = {}  # of trees before them
        for number in range(len(seedlings)):
            while number not in ahead:
                ahead.update(garden.harvest(gathered))
            self._take_in(seedlings[number], columns, *ahead.pop(number))
            if self._on_grown is not None and self._on_grown(seedlings[number]):
                self.closed = True
                return

    @staticmethod
    def _gathered(
        widths: np.ndarray,
        criterion: str | int,
        columns: Any,
        nodes: np.ndarray,
        values: np.ndarray,
        depth: int,
        levels: np.ndarray | None = None,
    ) -> tuple[Tree, np.ndarray | None]:
        """What the garden shows of a tree for a moment, for good."""
        if not isinstance(criterion, str) and np.isnan(nodes["impurity"][0]):
            raise ValueError("the criterion raises, or is not a number, for all rows together")
        tree = Tree(columns.d, widths, len(widths))
        state = {"max_depth": depth, "node_count": len(nodes), "nodes": nodes, "values": values}
        tree.__setstate__(state)
        return tree, None if levels is None else levels.copy()

    @staticmethod
    def _take_in(tree: Any, columns: Any, grown: Tree, levels: np.ndarray | None) -> None:
        tree.tree_ = grown
        if tree.ccp_alpha > 0:
            tree._prune_tree()
        if levels is not None:
            tree.tree_ = LevelTree.pruned(tree.tree_, grown, levels, columns.levels)


def _stacked(weights: list[Any]) -> np.ndarray | None:
    """The weights of trees, one row for each, or one for all; those given are let go."""
    first = weights[0]
    if all(each is first for each in weights):
        return first if first is None else np.ascontiguousarray(first).reshape(1, -1)
    stacked = np.empty((len(weights), len(first)), np.result_type(*{w.dtype for w in weights}))
    for i in range(len(weights)):
        stacked[i], weights[i] = weights[i], None
    return stacked


def _same(a: tuple, b: tuple) -> bool:
    """Whether two settings are one: limits and names by value, the rest by identity."""
    limits, columns, targets, criterion, constraints = a
    return (
        limits == b[0]
        and columns is b[1]
        and targets is b[2]
        and criterion == b[3]
        and np.array_equal(constraints, b[4])
    )


@contextmanager
def raising(ensemble: Any, **options: Any) -> Iterator[Nursery | None]:
    """Have the trees that `ensemble` makes inside the block grow in one nursery.

    Not if the user chose where joblib runs things: there each tree is on its own.
    """
    if not isinstance(
        get_active_backend(prefer="threads")[0], ThreadingBackend | SequentialBackend
    ):
        yield None
        return
    nursery = Nursery(owner=ensemble, **options)
    ensemble._fastml_nursery = nursery
    try:
        # The threads are the kernel's, and Ctrl-C reaches the main thread only.
        with parallel_config(backend="sequential"):
            yield nursery
            nursery.grow()
    finally:
        del ensemble._fastml_nursery
        estimators = getattr(ensemble, "estimators_", [])
        estimators[:] = [tree for tree in estimators if "tree_" in vars(tree)]
        for tree in estimators:
            vars(tree).pop("_fastml_nursery", None)
