"""Rows that need not be vectors: strings and sets, which some kernels take."""

from typing import Any

# How they are validated.
OBJECTS: dict[str, Any] = {"ensure_2d": False, "dtype": None}


def takes_objects(kernel: Any) -> bool:
    """Whether it is a kernel object for such rows."""
    return not getattr(kernel, "requires_vector_input", True)
