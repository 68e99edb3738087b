"""Methods that reduce over rows, as four functions.

The same four serve rows in memory, chunks of a file, mini-batches and, one day, many machines:
only who calls `map` on what differs. A part is small, whatever the number of rows behind it; parts
are merged in the order of their blocks, never in that of their arrival, so the result does not
depend on who computed what, or when.
"""

from collections.abc import Iterable
from typing import Any, Protocol, TypeVar

Block = TypeVar("Block", contravariant=True)
Part = TypeVar("Part")
State = TypeVar("State")


class Reduction(Protocol[Block, Part, State]):
    """An iteration over rows: the next state from the last one and all rows."""

    def init(self, meta: Any, seed: Any) -> State:
        """The first state."""

    def map(self, block: Block, state: State) -> Part:
        """What a block of rows contributes. Here are the kernels, and the threads."""

    def merge(self, a: Part, b: Part) -> Part:
        """What two neighbouring blocks contribute, `a` being the first."""

    def update(self, part: Part, state: State) -> tuple[State, bool]:
        """The next state from what all rows contribute, and whether it is the last."""


def reduce_blocks(
    reduction: Reduction[Block, Part, State], blocks: Iterable[Block], state: State
) -> Part:
    """Map every block and merge neighbours in a tree, whose shape is given by their number.

    At most one part for each level of the tree is alive, so `blocks` may be a long stream.
    """
    waiting: list[tuple[int, Part]] = []  # (level, part), levels falling
    for block in blocks:
        level, part = 0, reduction.map(block, state)
        while waiting and waiting[-1][0] == level:
            part = reduction.merge(waiting.pop()[1], part)
            level += 1
        waiting.append((level, part))
    if not waiting:
        raise ValueError("there are no blocks to reduce")
    part = waiting.pop()[1]
    while waiting:
        part = reduction.merge(waiting.pop()[1], part)
    return part
