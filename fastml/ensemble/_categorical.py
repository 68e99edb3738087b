"""Random forests with categorical features."""

from __future__ import annotations

from fastml._runtime.callbacks import fit_context
from fastml.ensemble._forest import RandomForestClassifier, RandomForestRegressor
from fastml.tree._categorical import Categorical, categorical_constraints


class CategoricalForestClassifier(Categorical, RandomForestClassifier):
    """A random forest classifier whose trees split categorical features into two sets of levels.

    See `fastml.tree.CategoricalTreeClassifier`. Without categorical features the forest is
    scikit-learn's.

    Parameters
    ----------
    n_estimators, max_depth, min_samples_split, min_samples_leaf, min_weight_fraction_leaf, \
max_features, max_leaf_nodes, min_impurity_decrease, bootstrap, oob_score, n_jobs, random_state, \
warm_start, class_weight, ccp_alpha, max_samples
        As those of `RandomForestClassifier`. Weights of classes have to be whole numbers; with
        `warm_start` the levels have to be those of the first fit.

    criterion, categorical_features
        As those of `fastml.tree.CategoricalTreeClassifier`.

    Examples
    --------
    >>> from fastml.ensemble import CategoricalForestClassifier
    >>> X, y = [["red"], ["green"], ["blue"], ["blue"]] * 9, [0, 1, 0, 0] * 9
    >>> forest = CategoricalForestClassifier(10, categorical_features=[0], random_state=0)
    >>> forest.fit(X, y).predict([["green"], ["red"]])
    array([1, 0])
    """

    _parameter_constraints = categorical_constraints(
        RandomForestClassifier._parameter_constraints, "gini", "entropy", "log_loss"
    )

    def __init__(
        self,
        n_estimators=100,
        *,
        criterion="gini",
        max_depth=None,
        min_samples_split=2,
        min_samples_leaf=1,
        min_weight_fraction_leaf=0.0,
        max_features="sqrt",
        max_leaf_nodes=None,
        min_impurity_decrease=0.0,
        bootstrap=True,
        oob_score=False,
        n_jobs=None,
        random_state=None,
        warm_start=False,
        class_weight=None,
        ccp_alpha=0.0,
        max_samples=None,
        categorical_features="from_dtype",
    ):
        super().__init__(
            n_estimators,
            criterion=criterion,
            max_depth=max_depth,
            min_samples_split=min_samples_split,
            min_samples_leaf=min_samples_leaf,
            min_weight_fraction_leaf=min_weight_fraction_leaf,
            max_features=max_features,
            max_leaf_nodes=max_leaf_nodes,
            min_impurity_decrease=min_impurity_decrease,
            bootstrap=bootstrap,
            oob_score=oob_score,
            n_jobs=n_jobs,
            random_state=random_state,
            warm_start=warm_start,
            class_weight=class_weight,
            ccp_alpha=ccp_alpha,
            max_samples=max_samples,
        )
        self.categorical_features = categorical_features

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None):
        """Build a forest of trees from the training set (`X`, `y`)."""
        return self._fit_encoded(super().fit, X, y, sample_weight)


class CategoricalForestRegressor(Categorical, RandomForestRegressor):
    """A random forest regressor whose trees split categorical features into two sets of levels.

    See `fastml.tree.CategoricalTreeRegressor`. Without categorical features the forest is
    scikit-learn's.

    Parameters
    ----------
    n_estimators, max_depth, min_samples_split, min_samples_leaf, min_weight_fraction_leaf, \
max_features, max_leaf_nodes, min_impurity_decrease, bootstrap, oob_score, n_jobs, random_state, \
warm_start, ccp_alpha, max_samples
        As those of `RandomForestRegressor`; with `warm_start` the levels have to be those of the
        first fit.

    criterion, categorical_features
        As those of `fastml.tree.CategoricalTreeRegressor`.

    Examples
    --------
    >>> from fastml.ensemble import CategoricalForestRegressor
    >>> X, y = [["red"], ["green"], ["blue"], ["blue"]] * 9, [1, 5, 1, 1] * 9
    >>> forest = CategoricalForestRegressor(10, categorical_features=[0], random_state=0)
    >>> forest.fit(X, y).predict([["green"], ["red"]])
    array([5., 1.])
    """

    _parameter_constraints = categorical_constraints(
        RandomForestRegressor._parameter_constraints, "squared_error"
    )

    def __init__(
        self,
        n_estimators=100,
        *,
        criterion="squared_error",
        max_depth=None,
        min_samples_split=2,
        min_samples_leaf=1,
        min_weight_fraction_leaf=0.0,
        max_features=1.0,
        max_leaf_nodes=None,
        min_impurity_decrease=0.0,
        bootstrap=True,
        oob_score=False,
        n_jobs=None,
        random_state=None,
        warm_start=False,
        ccp_alpha=0.0,
        max_samples=None,
        categorical_features="from_dtype",
    ):
        super().__init__(
            n_estimators,
            criterion=criterion,
            max_depth=max_depth,
            min_samples_split=min_samples_split,
            min_samples_leaf=min_samples_leaf,
            min_weight_fraction_leaf=min_weight_fraction_leaf,
            max_features=max_features,
            max_leaf_nodes=max_leaf_nodes,
            min_impurity_decrease=min_impurity_decrease,
            bootstrap=bootstrap,
            oob_score=oob_score,
            n_jobs=n_jobs,
            random_state=random_state,
            warm_start=warm_start,
            ccp_alpha=ccp_alpha,
            max_samples=max_samples,
        )
        self.categorical_features = categorical_features

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None):
        """Build a forest of trees from the training set (`X`, `y`)."""
        return self._fit_encoded(super().fit, X, y, sample_weight)
