"""Sums under a condition, in a form that LLVM vectorises.

Of ``if c: s += e`` LLVM makes a choice between ``s`` and ``s + e``, which it takes for a sum only
where it may forget about NaN. So it gets ``s += e if c else -0.0``: adding negative zero changes
nothing, and `e` is still not computed where `c` is false.
"""

from __future__ import annotations

import operator
from typing import Any

from numba import types
from numba.core import ir, ir_utils
from numba.core.analysis import compute_cfg_from_blocks
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.typed_passes import PreLowerStripPhis

# What changes nothing, not even the sign of a zero.
_NEUTRAL = {
    operator.iadd: -0.0,
    operator.add: -0.0,
    operator.isub: 0.0,
    operator.sub: 0.0,
    operator.imul: 1.0,
    operator.mul: 1.0,
}


class MaskingCompiler(CompilerBase):  # type: ignore[misc]
    """Numba's, with conditional sums made unconditional."""

    def define_pipelines(self) -> list[Any]:
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.add_pass_after(_MaskSums, PreLowerStripPhis)
        passes.finalize()
        return [passes]


@register_pass(mutates_CFG=True, analysis_only=False)
class _MaskSums(FunctionPass):  # type: ignore[misc]
    _name = "fastml_mask_sums"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        blocks = state.func_ir.blocks
        changed = False
        for label in list(blocks):
            changed = _mask(state, blocks, label) or changed
        if changed:
            state.func_ir._definitions = ir_utils.build_definitions(blocks)
        return changed


def _mask(state: Any, blocks: dict[int, Any], label: int) -> bool:
    """Move the sums of a block that a condition may skip behind it, into a block of their own."""
    body, cfg = blocks[label], compute_cfg_from_blocks(blocks)
    before = [source for source, _ in cfg.predecessors(label)]
    if len(before) != 1 or not isinstance(body.terminator, ir.Jump):
        return False
    head, after = blocks[before[0]], body.terminator.target
    branch = head.terminator
    if not isinstance(branch, ir.Branch) or {branch.truebr, branch.falsebr} != {label, after}:
        return False
    sums = [found for last in body.body if (found := _sum(state, head, body, last)) is not None]
    if not sums:
        return False
    behind = max(blocks) + 1
    joint = ir.Block(body.scope, body.loc)
    for chain, signature in sums:
        _move(state, head, body, joint, chain, signature)
    joint.append(ir.Jump(after, body.loc))
    body.body[-1] = ir.Jump(behind, body.loc)
    yes, no = (behind if t == after else t for t in (branch.truebr, branch.falsebr))
    head.body[-1] = ir.Branch(branch.cond, yes, no, branch.loc)
    blocks[behind] = joint
    return True


def _sum(state: Any, head: Any, body: Any, last: Any) -> tuple[list[Any], Any] | None:
    """The assignments up to `last`, if they make ``t = s + e`` of what is ``t = s`` without them.

    With the signature of the operation, in the type of `s`.
    """
    if not isinstance(last, ir.Assign) or not isinstance(last.value, ir.Var):
        return None
    chain = [last]
    while isinstance(chain[0].value, ir.Var):
        made = [a for a in _assignments(body) if a.target.name == chain[0].value.name]
        if len(made) != 1 or _uses(state, made[0].target.name) != 1:
            return None
        chain.insert(0, made[0])
    value = chain[0].value
    if not isinstance(value, ir.Expr) or value.op not in ("binop", "inplace_binop"):
        return None
    skipped = [a for a in _assignments(head) if a.target.name == last.target.name]
    lost = {a.target.name for a in _assignments(body)}
    if value.fn not in _NEUTRAL or not skipped or value.lhs.name in lost:
        return None
    follow = head.body[head.body.index(skipped[-1]) :]
    if not isinstance(skipped[-1].value, ir.Var) or skipped[-1].value.name != value.lhs.name:
        return None
    if any(isinstance(s, ir.Assign) and s.target.name == value.lhs.name for s in follow):
        return None
    if len([a for a in _assignments(body) if a.target.name == last.target.name]) != 1:
        return None
    return _typed(state, chain, value)


def _typed(state: Any, chain: list[Any], value: Any) -> tuple[list[Any], Any] | None:
    kind = state.typemap[chain[0].target.name]
    term = state.typemap[value.rhs.name]
    if not isinstance(kind, types.Float) or state.typemap[value.lhs.name] != kind:
        return None
    if not isinstance(term, types.Float | types.Integer):
        return None
    signature = state.typingctx.resolve_function_type(value.fn, (kind, kind), {})
    return (chain, signature) if signature.return_type == kind else None


def _move(state: Any, head: Any, body: Any, joint: Any, chain: list[Any], signature: Any) -> None:
    value, loc = chain[0].value, chain[0].loc
    name = f"$masked.{chain[0].target.name}"
    term = ir.Var(body.scope, name, loc)
    state.typemap[name] = signature.return_type
    head.insert_before_terminator(ir.Assign(ir.Const(_NEUTRAL[value.fn], loc), term, loc))
    body.body[body.body.index(chain[0])] = ir.Assign(value.rhs, term, loc)
    body.body = [statement for statement in body.body if statement not in chain]
    value.rhs = term
    state.calltypes.pop(value)  # it takes none twice
    state.calltypes[value] = signature
    for statement in chain:
        joint.append(statement)


def _assignments(block: Any) -> list[Any]:
    return [statement for statement in block.body if isinstance(statement, ir.Assign)]


def _uses(state: Any, name: str) -> int:
    """In how many statements a variable is read."""
    found = 0
    for block in state.func_ir.blocks.values():
        for statement in block.body:
            names = [v.name for v in statement.list_vars()]
            written = isinstance(statement, ir.Assign) and statement.target.name == name
            found += names.count(name) - written
    return found
