"""Ensembles: what fastml replaces in `sklearn.ensemble`, and more."""

from fastml._runtime.modules import fall_through
from fastml.ensemble._bagging import BaggingClassifier, BaggingRegressor, IsolationForest
from fastml.ensemble._categorical import CategoricalForestClassifier, CategoricalForestRegressor
from fastml.ensemble._forest import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    RandomTreesEmbedding,
)
from fastml.ensemble._weight_boosting import AdaBoostClassifier, AdaBoostRegressor

__all__ = [
    "AdaBoostClassifier",
    "AdaBoostRegressor",
    "BaggingClassifier",
    "BaggingRegressor",
    "CategoricalForestClassifier",
    "CategoricalForestRegressor",
    "ExtraTreesClassifier",
    "ExtraTreesRegressor",
    "IsolationForest",
    "RandomForestClassifier",
    "RandomForestRegressor",
    "RandomTreesEmbedding",
]

fall_through(__name__)
