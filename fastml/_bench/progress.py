"""A progress bar for a terminal; elsewhere it is silent."""

from __future__ import annotations

import shutil
import sys
from typing import Self

WIDTH = 24


class Progress:
    """One line at the bottom, rewritten in place."""

    def __init__(self, total: int) -> None:
        self.total, self.done = total, 0
        self.visible = sys.stderr.isatty()

    def show(self, message: str) -> None:
        filled = WIDTH * self.done // self.total
        bar = "█" * filled + "░" * (WIDTH - filled)
        self._rewrite(f"{bar} {self.done}/{self.total}  {message}")

    def step(self) -> None:
        self.done += 1
        self._rewrite("")

    def _rewrite(self, line: str) -> None:
        if self.visible:
            width = shutil.get_terminal_size().columns - 1
            sys.stderr.write(f"\r{line[:width]}\x1b[K")
            sys.stderr.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._rewrite("")
