"""Decision trees: what fastml replaces in `sklearn.tree`, and more."""

from fastml._runtime.modules import fall_through
from fastml.tree._classes import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    ExtraTreeRegressor,
)

__all__ = [
    "DecisionTreeClassifier",
    "DecisionTreeRegressor",
    "ExtraTreeClassifier",
    "ExtraTreeRegressor",
]

fall_through(__name__)
