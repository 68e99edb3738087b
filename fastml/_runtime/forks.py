"""Forks that wait for BLAS.

OpenBLAS does not survive a fork while another thread is in one of its routines: in the child, locks
stay held by a thread that is not there. What calls it without the GIL, as NumPy does, is done
`unforked`; kernels of ours need none of this.
"""

from __future__ import annotations

import os
import threading
from contextlib import ContextDecorator


class _Guard:
    """Sections that any number of threads are in, or one thread that forks."""

    def __init__(self) -> None:
        self.changed = threading.Condition(threading.Lock())
        self.inside: dict[int, int] = {}  # sections that a thread is in, one in the other
        self.forking = 0

    def enter(self) -> None:
        me = threading.get_ident()
        with self.changed:
            # A thread that is in a section already has to go on, lest the fork wait for it forever.
            self.changed.wait_for(lambda: not self.forking or me in self.inside)
            self.inside[me] = self.inside.get(me, 0) + 1

    def leave(self) -> None:
        me = threading.get_ident()
        with self.changed:
            self.inside[me] -= 1
            if not self.inside[me]:
                del self.inside[me]
                self.changed.notify_all()

    def before(self) -> None:
        me = threading.get_ident()
        self.changed.acquire()
        self.forking += 1
        self.changed.wait_for(lambda: not self.inside.keys() - {me})

    def after_in_parent(self) -> None:
        self.forking -= 1
        self.changed.notify_all()
        self.changed.release()


_guard = _Guard()


def _after_in_child() -> None:
    global _guard
    me, inside = threading.get_ident(), _guard.inside
    _guard = _Guard()
    if me in inside:
        _guard.inside[me] = inside[me]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=lambda: _guard.before(),
        after_in_parent=lambda: _guard.after_in_parent(),
        after_in_child=_after_in_child,
    )


class unforked(ContextDecorator):
    """While in it, or in a function that it decorates, forks of other threads wait."""

    def __enter__(self) -> None:
        _guard.enter()

    def __exit__(self, *_: object) -> None:
        _guard.leave()
