"""Attention: contractions of weights over keys that become one kernel each, with no array over pairs in memory.

In a program `softmax(q @ k.T * scale + mask) @ v` is a contraction over features, elementwise ops, a maximum, a sum,
and a contraction over the keys.  This module finds the last contraction, follows its operand back to the contraction
over features, and replaces it by an equation whose operands are the values in memory that its kernel reads.  The
equations between the two contractions are dropped, if nothing else needs them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from tensorken.kernels.elements import NotComputedHere
from tensorken.kernels.keeping import unmoved
from tensorken.programs.passes.dead_code import without_dead_code
from tensorken_core.language.op import Op
from tensorken_core.program.program import Equation, Program, Variable
from tensorken_wgpu.attention.gradients import sums_over_keys
from tensorken_wgpu.attention.indices import CONTRACTION, Attention, AttentionIndices, Symbols
from tensorken_wgpu.attention.kernels import AttentionBlock, AttentionKernel
from tensorken_wgpu.attention.patterns import Finding
from tensorken_wgpu.kernels.kernel import Choice, Kernel, with_vectors
from tensorken_wgpu.wgsl.dtypes import size_of

if TYPE_CHECKING:
    from tensorken_wgpu.wgsl.target import Target

MAX_ACCUMULATORS = 64
"""The most numbers of the result that an invocation should hold in registers."""

MAX_CANDIDATES = 3
"""The most candidates that are written and measured."""

BLOCKS = (
    AttentionBlock(8, 8, 8),
    AttentionBlock(4, 16, 8),
    AttentionBlock(4, 8, 8, holds_rows=True),
    AttentionBlock(4, 8, 8),
    AttentionBlock(4, 4, 8),
)
"""The candidates, those for many rows first."""


def _no_shape(*_: Any) -> Any:
    raise NotImplementedError("an attention occurs only in a program that is lowered")


ATTENTION = Op("attention", None, _no_shape, _no_shape, ("data",), results=None)
"""A contraction of weights that its kernel computes; the operands are the values in memory that the kernel reads."""


def with_attentions(program: Program, target: Target) -> tuple[Program, Mapping[Equation, list[Kernel]]]:
    """The program with attentions in place of contractions of weights, and the kernels of each attention."""
    none: dict[Equation, list[Kernel]] = {}
    if target.is_software or sum([e.op.name == CONTRACTION for e in program.equations]) < 2:
        return program, none
    finding = Finding(program, target)
    found = [*finding.attentions()]
    while found:
        sums = [e for a in found for e in sums_over_keys(a, finding.producers)]
        producers = {**finding.producers, **{v: e for e in sums for v in e.results}}
        summed = {v for e in sums for v in e.operands}
        for written in (finding.with_epilogues(found, summed), found):
            written = [_with_sources(a, producers) for a in written]
            replaced = _replaced(program, written, sums)
            if replaced is not None:
                break
        else:
            return program, none
        rewritten, equations = replaced
        alive = {v for e in rewritten.equations for v in e.results}
        used = {*rewritten.outputs, *[v for e in rewritten.equations for v in e.operands]}
        kept = [a for a in found if alive.isdisjoint([score.equation.results[0] for score in a.scores])]
        kept = [replace(a, is_stored=a.is_stored and not used.isdisjoint(a.statistics)) for a in kept]
        if kept == found:
            writing = _Writing(producers, target)
            kernels = {e: writing.kernels(a) for a, e in zip(written, equations, strict=True)}
            kept = [a for a, e in zip(found, equations, strict=True) if kernels[e]]
            if kept == found:
                return rewritten, kernels
        found = kept
    return program, none


def _with_sources(attention: Attention, producers: Mapping[Variable, Equation]) -> Attention:
    """The attention with sources that no move computes: a sum over the keys may have become a moved value."""
    return replace(
        attention, sources=tuple(dict.fromkeys([unmoved(v, producers) for v in attention.sources]))
    )


# ---- rewriting ---------------------------------------------------------------------------------------------------


def _replaced(
    program: Program, found: Sequence[Attention], others: Sequence[Equation]
) -> tuple[Program, list[Equation]] | None:
    """The program with these attentions and other equations, and the equations of the attentions; None if one of these
    needs itself.
    """
    equations = [
        Equation(ATTENTION, a.sources, (), a.results, a.equation.origin, a.equation.scope) for a in found
    ]
    new = [*equations, *others]
    results = {v for e in new for v in e.results}
    ordered = _ordered([*[e for e in program.equations if results.isdisjoint(e.results)], *new])
    if ordered is None:
        return None
    return without_dead_code(program.changed(equations=ordered)), equations


def _ordered(equations: Sequence[Equation]) -> tuple[Equation, ...] | None:
    """The equations, each after those that it needs; None if one needs itself."""
    producers = {v: e for e in equations for v in e.results}
    ordered: dict[Equation, None] = {}
    for first in equations:
        path: dict[Equation, Iterator[Variable]] = {}
        if first not in ordered:
            path[first] = iter(first.operands)
        while path:
            e, operands = next(reversed(path.items()))
            needed = next((x for v in operands if (x := producers.get(v)) and x not in ordered), None)
            if needed is None:
                ordered[e] = None
                del path[e]
            elif needed in path:
                return None
            else:
                path[needed] = iter(needed.operands)
    return tuple(ordered)


# ---- kernels -----------------------------------------------------------------------------------------------------


class _Writing:
    """Writes the kernels of a program's attentions; equal ones, such as those of equal layers, are written once.

    Args:
        producers: for each computed value its equation.
        target: the device.
    """

    def __init__(self, producers: Mapping[Variable, Equation], target: Target) -> None:
        self._producers = producers
        self._target = target
        self._written: dict[object, tuple[Sequence[Variable], list[Kernel]]] = {}

    def kernels(self, attention: Attention) -> list[Kernel]:
        """The kernel, with its equivalents; none if no block fits, or a value is needed that it does not compute."""
        key, variables = self._form(attention)
        written = self._written.get(key)
        if written is None:
            written = self._written[key] = variables, self._new(attention)
        others, kernels = written
        inside = dict.fromkeys([self._producers[v] for v in attention.inside])
        equations = (*inside, attention.equation, *attention.epilogue)
        return [_with_variables(k, dict(zip(others, variables, strict=True)), equations) for k in kernels]

    def _form(self, attention: Attention) -> tuple[object, Sequence[Variable]]:
        """Equal for attentions with equal kernels, except for their variables; and the variables, in the same order."""
        numbers: dict[Variable, int] = {}
        pending = [*attention.results]
        while pending:
            v = pending.pop()
            if v not in numbers:
                numbers[v] = len(numbers)
                pending += self._operands(attention, v)
        form = []
        for v in numbers:
            operands = [numbers[x] for x in self._operands(attention, v)]
            e = self._producers[v] if operands else None
            op = (
                (e.op.name, repr(e.params))
                if e
                else (v in attention.sources, repr(getattr(v, "value", None)))
            )
            form.append((v.shape, v.dtype.name, op, tuple(operands)))
        return (tuple(form), attention.of_weights, attention.is_known, attention.is_stored), [*numbers]

    def _operands(self, attention: Attention, v: Variable) -> Sequence[Variable]:
        e = None if v in attention.sources else self._producers.get(v)
        return e.operands if e else ()

    def _new(self, attention: Attention) -> list[Kernel]:
        producers, target = self._producers, self._target
        values = (*attention.sources, attention.results[0])
        candidates = {}
        for block in _blocks(attention, producers, target):
            try:
                make = partial(AttentionKernel, attention, producers, block, target)
                candidates[str(block)] = with_vectors(make, values)
            except NotComputedHere:
                return []
        kernels = [*candidates.values()]
        bound = [v for kernel in kernels[:1] for v in (*kernel.reads, *kernel.writes)]
        if len(kernels) < 2 or any([len(target.windows(size_of(v))) > 1 for v in bound]):
            return kernels[:1]
        return [replace(kernels[0], choice=Choice(_tuning_key(attention, producers), candidates))]


def _with_variables(
    kernel: Kernel, variables: Mapping[Variable, Variable], equations: tuple[Equation, ...]
) -> Kernel:
    """A kernel for other variables."""
    choice = kernel.choice and Choice(
        kernel.choice.key,
        {name: _with_variables(k, variables, equations) for name, k in kernel.choice.kernels.items()},
    )
    reads, writes = (tuple([variables[v] for v in values]) for values in (kernel.reads, kernel.writes))
    return replace(kernel, reads=reads, writes=writes, equations=equations, choice=choice)


def _blocks(
    attention: Attention, producers: Mapping[Variable, Equation], target: Target
) -> list[AttentionBlock]:
    """The candidates, the likely fastest first."""
    indices = AttentionIndices(attention, producers, Symbols())
    rows, columns = indices.size(indices.rows), indices.size(indices.columns)
    fitting = [b for b in BLOCKS if b.shared_bytes(attention, columns) <= target.workgroup_memory]
    possible = [b for b in fitting if b.accumulators(columns) <= MAX_ACCUMULATORS] or fitting[-1:]
    busy = [
        b
        for b in possible
        if indices.size("batch") * -(-rows // b.all_rows) * b.workgroup_size >= target.busy_invocations // 8
    ]
    return [*busy, *[b for b in reversed(possible) if b not in busy]][:MAX_CANDIDATES]


def _tuning_key(attention: Attention, producers: Mapping[Variable, Equation]) -> str:
    """The key of attentions for which the same block is assumed to be the fastest."""
    indices = AttentionIndices(attention, producers, Symbols())
    sizes = {
        "batch": indices.size("batch"),
        "rows": indices.size(indices.rows),
        "keys": indices.size("inner"),
    }
    return ", ".join(
        [
            f"{'derivative of ' if attention.is_known else ''}attention {attention.equation.results[0].dtype.name}",
            *[f"{name} {1 << size.bit_length() - 1}" for name, size in sizes.items()],
            *[f"features {score.features}" for score in attention.scores],
            f"columns {indices.size(indices.columns)}",
        ]
    )
