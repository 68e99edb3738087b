"""Linear algebra of large matrices by products alone, and of small ones by what they span."""

from fastml.linalg._bases import (
    Basis,
    Definiteness,
    column_space,
    definiteness,
    null_space,
    orthonormalize,
    pseudo_inverse,
    rank,
)
from fastml.linalg._eigenpairs import eigenpairs
from fastml.linalg._krylov import Eigenpairs
from fastml.linalg._truncated import SingularTriplets, truncated_svd

__all__ = [
    "Basis",
    "Definiteness",
    "Eigenpairs",
    "SingularTriplets",
    "column_space",
    "definiteness",
    "eigenpairs",
    "null_space",
    "orthonormalize",
    "pseudo_inverse",
    "rank",
    "truncated_svd",
]
