"""Epilogues: ops after a Fourier transform that its last kernel computes: products with numbers, and movement."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tensorken.kernels.element_indices import ElementIndex
from tensorken_core.program.program import Equation, Literal, Program, Variable
from tensorken_wgpu.wgsl.writer import Writer


@dataclass(frozen=True, eq=False, slots=True)
class Transform(Equation):
    """A Fourier transform and its epilogues; its results are those of the last ops.

    Attributes:
        epilogues: for each result the ops after the transform.
    """

    epilogues: tuple[tuple[Equation, ...], ...] = ()


def with_epilogues(program: Program, has_epilogues: Callable[[Equation], bool]) -> Program:
    """The program with the ops after transforms as their epilogues, if no other op uses what they are computed from.

    Args:
        program: the program.
        has_epilogues: whether an equation is a transform that may have epilogues.
    """
    found = [e for e in program.equations if has_epilogues(e)]
    users: dict[Variable, list[Equation]] = {}
    for e in program.equations if found else ():
        for v in e.operands:
            users.setdefault(v, []).append(e)
    outputs = frozenset(program.outputs)
    replacements: dict[Equation, Transform] = {}
    absorbed: set[Equation] = set()
    for e in found:
        epilogues = [_epilogue(v, users, outputs) for v in e.results]
        if any(epilogues):
            results = [
                chain[-1].results[0] if chain else v for v, chain in zip(e.results, epilogues, strict=True)
            ]
            replacements[e] = Transform(
                e.op, e.operands, e.params, tuple(results), e.origin, e.scope, tuple(epilogues)
            )
            absorbed.update(*epilogues)
    if not replacements:
        return program
    equations = [replacements.get(e, e) for e in program.equations if e not in absorbed]
    return program.changed(equations=tuple(equations))


def _epilogue(
    v: Variable, users: dict[Variable, list[Equation]], outputs: frozenset[Variable]
) -> tuple[Equation, ...]:
    chain: list[Equation] = []
    while v not in outputs and len(users.get(v, ())) == 1:
        (user,) = users[v]
        others = [x for x in user.operands if x is not v]
        if user.op.name not in ("mul", "permute", "reshape") or not all(
            [isinstance(x, Literal) for x in others]
        ):
            break
        chain.append(user)
        (v,) = user.results
    return tuple(chain)


def run_epilogue(
    writer: Writer, epilogue: Sequence[Equation], element: str, index: ElementIndex
) -> tuple[str, ElementIndex]:
    """An element of the last result of an epilogue, and its index, for an element of the transform and its index."""
    for e in epilogue:
        (v,) = e.results
        if e.op.name == "permute":
            index = index.of_array(v.shape, [index.indices[axis] for axis in e.params[0]])
        elif e.op.name == "reshape":
            index = index.before_reshape(v.shape)
        else:
            operands: list[Any] = [
                writer.constant(x.value, x.dtype) if isinstance(x, Literal) else element for x in e.operands
            ]
            element = writer.bind(writer.op(e.op, operands, v.dtype), v.dtype)
    return element, index
