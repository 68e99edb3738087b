"""Preprocessing: what fastml replaces in `sklearn.preprocessing`; the rest is scikit-learn's."""

from fastml._runtime.modules import fall_through
from fastml.preprocessing._normalizer import Normalizer, normalize
from fastml.preprocessing._range import MaxAbsScaler, MinMaxScaler, maxabs_scale, minmax_scale
from fastml.preprocessing._robust import RobustScaler, robust_scale
from fastml.preprocessing._standard import StandardScaler, scale

__all__ = [
    "MaxAbsScaler",
    "MinMaxScaler",
    "Normalizer",
    "RobustScaler",
    "StandardScaler",
    "maxabs_scale",
    "minmax_scale",
    "normalize",
    "robust_scale",
    "scale",
]

fall_through(__name__)
