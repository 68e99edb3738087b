"""Rows that need not be vectors: strings and sets, which some kernels take."""

from typing import Any

# How they are validated.
OBJECTS: dict[str, Any] = {"ensure_2d": False, "dtype": None}


def rows_for(kernel: Any) -> dict[str, Any]:
    """How rows for a kernel are validated: objects, or vectors that may be sparse."""
    return OBJECTS if takes_objects(kernel) else {"accept_sparse": "csr"}


def takes_objects(kernel: Any) -> bool:
    """Whether it is a kernel object for such rows."""
    return not getattr(kernel, "requires_vector_input", True)
