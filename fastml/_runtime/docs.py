"""Docstrings of classes and functions that extend scikit-learn's."""

import inspect
import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any, TypeVar

T = TypeVar("T")

_TITLE = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.MULTILINE)


def documented_by(stock: Any) -> Callable[[T], T]:
    """Put the stock sections on parameters, returns and attributes into our docstring.

    Ours says what is ours and shows an example; the parameters are those of the scikit-learn
    that is installed, and so is their description. Those that ours has beside them come last.
    """

    def decorate(ours: T) -> T:
        head, *rest = _sections(ours)
        more = {title: body for section in rest for title, body in [_titled(section)]}
        theirs = [
            section + (f"\n\n{more.pop(title)}" if title in more else "")
            for section in _sections(stock)[1:]
            if (title := _titled(section)[0]) in ("Parameters", "Returns", "Attributes")
        ]
        rest = [section for section in rest if _titled(section)[0] in more]
        ours.__doc__ = "\n\n".join([head, *theirs, *rest])
        return ours

    return decorate


def _titled(section: str) -> tuple[str, str]:
    title, _, body = section.partition("\n")
    return title, body.partition("\n")[2]


def _sections(documented: Any) -> list[str]:
    text = inspect.cleandoc(documented.__doc__ or "")
    starts = [0, *(match.start() for match in _TITLE.finditer(text)), len(text)]
    return [text[a:b].strip() for a, b in pairwise(starts)]
