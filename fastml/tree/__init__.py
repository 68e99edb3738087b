"""Decision trees: what fastml replaces in `sklearn.tree`, and more."""

from fastml._runtime.modules import fall_through
from fastml.tree._categorical import CategoricalTreeClassifier, CategoricalTreeRegressor
from fastml.tree._classes import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    ExtraTreeRegressor,
)
from fastml.tree._pruning import reduced_error_prune

__all__ = [
    "CategoricalTreeClassifier",
    "CategoricalTreeRegressor",
    "DecisionTreeClassifier",
    "DecisionTreeRegressor",
    "ExtraTreeClassifier",
    "ExtraTreeRegressor",
    "reduced_error_prune",
]

fall_through(__name__)
