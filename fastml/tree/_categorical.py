"""Decision trees with categorical features."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.tree._tree import ccp_pruning_path
from sklearn.utils import Bunch
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from fastml._runtime.callbacks import fit_context
from fastml._runtime.whole import whole_or_not_at_all
from fastml.tree._classes import DecisionTreeClassifier, DecisionTreeRegressor
from fastml.tree._levels import Encoder, LevelTree


class Categorical:
    """`fit` and rows of models with categorical features; it goes before the class it is about."""

    def _encode(self, X: Any) -> np.ndarray:
        """The rows as numbers; the levels are those of X."""
        encoder = Encoder(X, self.categorical_features)  # type: ignore[attr-defined]
        if getattr(self, "warm_start", False) and hasattr(self, "estimators_"):
            encoder.check_levels_of(self._encoder)
        self._encoder = encoder
        self.is_categorical_ = self._encoder.is_categorical
        self.categories_ = self._encoder.categories
        self._n_levels = self._encoder.n_levels if self.is_categorical_.any() else None
        return self._encoder.transform(self, X, reset=True)

    def _fit_encoded(self, fit: Any, X: Any, *args: Any) -> Any:
        """Call `fit` of the class after this; names of features are those of X."""
        with whole_or_not_at_all(self):  # levels must not be numbered otherwise than trees have it
            fit(self._encode(X), *args)
            self._encoder.transform(self, X[:1], reset=True)
        return self

    def _validate_X_predict(self, X: Any, check_input: bool = True) -> np.ndarray:
        check_is_fitted(self)
        return self._encoder.transform(self, X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.sparse = False
        tags.target_tags.multi_output = False
        return tags


def categorical_constraints(constraints: dict, *criteria: str) -> dict:
    """The parameter constraints of the class, with these criteria alone."""
    return constraints | {
        "criterion": [StrOptions(set(criteria))],
        "categorical_features": ["array-like", StrOptions({"from_dtype"}), None],
    }


class CategoricalTree(Categorical):
    """What a single one has besides."""

    def cost_complexity_pruning_path(self, X: Any, y: Any, sample_weight: Any = None) -> Bunch:
        """Compute the path of minimal cost-complexity pruning: its alphas and impurities."""
        grown = clone(self).set_params(ccp_alpha=0.0).fit(X, y, sample_weight).tree_  # type: ignore[attr-defined]
        return Bunch(**ccp_pruning_path(grown.stock if isinstance(grown, LevelTree) else grown))


class CategoricalTreeClassifier(CategoricalTree, DecisionTreeClassifier):
    """A decision tree classifier that splits categorical features into two sets of levels.

    Of two classes, the best of all such splits is found: levels are put in the order of their share
    of the second class, and one of the splits along it is the best (Breiman et al., 1984). Of more
    classes, the orders by the share of each are tried, which need not find the best. Without
    categorical features the tree is scikit-learn's.

    The tree has level sets, `tree_.level_sets`, and no counterpart in scikit-learn.

    Parameters
    ----------
    criterion : {"gini", "entropy", "log_loss"}, default="gini"
        What splits are scored by.

    max_depth, min_samples_split, min_samples_leaf, min_weight_fraction_leaf, max_features, \
random_state, max_leaf_nodes, min_impurity_decrease, class_weight, ccp_alpha
        As those of `DecisionTreeClassifier`. Weights of rows and classes have to be whole numbers.

    categorical_features : array-like of bool, int or str, "from_dtype" or None, \
default="from_dtype"
        Which features are categorical: a mask, indices or names; or those of a data frame, pandas'
        or polars', whose dtype is. At most 256 levels each, missing values among them; a level that
        was not there when fitting counts as missing, and where nothing was missing it follows the
        larger child.

    Attributes
    ----------
    tree_ : LevelTree
        What scikit-learn's `Tree` has, and `level_sets`: the numbers of the levels that go left.

    is_categorical_ : ndarray of shape (n_features,)

    categories_ : list of ndarray, or of None for numbers
        The levels of each feature by number. Missing values have the number after the last.

    Examples
    --------
    >>> from fastml.tree import CategoricalTreeClassifier
    >>> X, y = [["red"], ["green"], ["blue"], ["blue"]], [0, 1, 0, 0]
    >>> tree = CategoricalTreeClassifier(categorical_features=[0]).fit(X, y)
    >>> tree.predict([["green"], ["red"]])
    array([1, 0])
    >>> tree.categories_[0][tree.tree_.level_sets[0]]
    array(['blue', 'red'], dtype=object)
    """

    _parameter_constraints = categorical_constraints(
        DecisionTreeClassifier._parameter_constraints, "gini", "entropy", "log_loss"
    )

    def __init__(
        self,
        *,
        criterion="gini",
        max_depth=None,
        min_samples_split=2,
        min_samples_leaf=1,
        min_weight_fraction_leaf=0.0,
        max_features=None,
        random_state=None,
        max_leaf_nodes=None,
        min_impurity_decrease=0.0,
        class_weight=None,
        ccp_alpha=0.0,
        categorical_features="from_dtype",
    ):
        super().__init__(
            criterion=criterion,
            max_depth=max_depth,
            min_samples_split=min_samples_split,
            min_samples_leaf=min_samples_leaf,
            min_weight_fraction_leaf=min_weight_fraction_leaf,
            max_features=max_features,
            random_state=random_state,
            max_leaf_nodes=max_leaf_nodes,
            min_impurity_decrease=min_impurity_decrease,
            class_weight=class_weight,
            ccp_alpha=ccp_alpha,
        )
        self.categorical_features = categorical_features

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None):
        """Build the tree from the training set (`X`, `y`)."""
        return self._fit_encoded(self._fit, X, y, sample_weight)


class CategoricalTreeRegressor(CategoricalTree, DecisionTreeRegressor):
    """A decision tree regressor that splits categorical features into two sets of levels.

    The best of all such splits is found: levels are put in the order of their means, and one of the
    splits along it is the best (Breiman et al., 1984). Without categorical features the tree is
    scikit-learn's.

    The tree has level sets, `tree_.level_sets`, and no counterpart in scikit-learn.

    Parameters
    ----------
    criterion : {"squared_error"}, default="squared_error"
        What splits are scored by.

    max_depth, min_samples_split, min_samples_leaf, min_weight_fraction_leaf, max_features, \
random_state, max_leaf_nodes, min_impurity_decrease, ccp_alpha
        As those of `DecisionTreeRegressor`.

    categorical_features : array-like of bool, int or str, "from_dtype" or None, \
default="from_dtype"
        As that of `CategoricalTreeClassifier`.

    Examples
    --------
    >>> from fastml.tree import CategoricalTreeRegressor
    >>> X, y = [["red"], ["green"], ["blue"], ["blue"]], [1, 5, 1, 1]
    >>> tree = CategoricalTreeRegressor(categorical_features=[0]).fit(X, y)
    >>> tree.predict([["green"], ["red"]])
    array([5., 1.])
    """

    _parameter_constraints = categorical_constraints(
        DecisionTreeRegressor._parameter_constraints, "squared_error"
    )

    def __init__(
        self,
        *,
        criterion="squared_error",
        max_depth=None,
        min_samples_split=2,
        min_samples_leaf=1,
        min_weight_fraction_leaf=0.0,
        max_features=None,
        random_state=None,
        max_leaf_nodes=None,
        min_impurity_decrease=0.0,
        ccp_alpha=0.0,
        categorical_features="from_dtype",
    ):
        super().__init__(
            criterion=criterion,
            max_depth=max_depth,
            min_samples_split=min_samples_split,
            min_samples_leaf=min_samples_leaf,
            min_weight_fraction_leaf=min_weight_fraction_leaf,
            max_features=max_features,
            random_state=random_state,
            max_leaf_nodes=max_leaf_nodes,
            min_impurity_decrease=min_impurity_decrease,
            ccp_alpha=ccp_alpha,
        )
        self.categorical_features = categorical_features

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None):
        """Build the tree from the training set (`X`, `y`)."""
        return self._fit_encoded(self._fit, X, y, sample_weight)
