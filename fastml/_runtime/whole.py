"""Fits that fail: a model is to be what it was before, not half of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def whole_or_not_at_all(model: Any) -> Iterator[None]:
    """Leave a model's attributes as they were if what is done here raises."""
    before = dict(vars(model))
    try:
        yield
    except BaseException:
        vars(model).clear()
        vars(model).update(before)
        raise
