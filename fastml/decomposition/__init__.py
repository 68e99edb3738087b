"""Decompositions: fastml's part of `sklearn.decomposition`; other names are scikit-learn's."""

from fastml._runtime.modules import fall_through
from fastml.decomposition._factor_analysis import FactorAnalysis
from fastml.decomposition._incremental_pca import IncrementalPCA
from fastml.decomposition._kernel_pca import KernelPCA
from fastml.decomposition._minibatch_nmf import MiniBatchNMF
from fastml.decomposition._nmf import NMF, non_negative_factorization
from fastml.decomposition._pca import PCA
from fastml.decomposition._truncated_svd import TruncatedSVD

__all__ = [
    "NMF",
    "PCA",
    "FactorAnalysis",
    "IncrementalPCA",
    "KernelPCA",
    "MiniBatchNMF",
    "TruncatedSVD",
    "non_negative_factorization",
]

fall_through(__name__)
