"""Graphs: what `to_mermaid` and `to_dot` draw: a node for each input, constant, equation and result, and the arrows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tensorken.programs.forms.text import constant, params, returned, type_of
from tensorken.programs.names import Names, titles, within
from tensorken_core.program.program import Equation, Literal, Program, Variable


@dataclass(frozen=True, slots=True)
class DiagramNode:
    """A box.

    Attributes:
        name: unique in the graph: a letter and a number.
        kind: input, constant, equation or result.
        lines: what stands in it.
    """

    name: str
    kind: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Diagram:
    """One program: its nodes, the arrows between them by name, and the arrows to the programs that its ops run."""

    name: str
    title: str
    nodes: tuple[DiagramNode, ...]
    arrows: tuple[tuple[str, str], ...]
    runs: tuple[tuple[str, str], ...]


def diagrams(program: Program) -> list[Diagram]:
    """The program and those within it."""
    programs = within(program)
    titled = titles(programs)
    places = {p: f"p{i}" for i, p in enumerate(programs)}
    return [_picture(p, place, titled, places) for p, place in places.items()]


def _picture(
    program: Program, place: str, called: Mapping[Program, str], places: Mapping[Program, str]
) -> Diagram:
    names = Names(program)
    nodes: list[DiagramNode] = []
    arrows: list[tuple[str, str]] = []
    runs: list[tuple[str, str]] = []
    source: dict[Variable, str] = {}

    def node(kind: str, *lines: str) -> str:
        nodes.append(DiagramNode(f"{place}n{len(nodes)}", kind, lines))
        return nodes[-1].name

    for v in program.inputs:
        source[v] = node("input", names[v], type_of(v))
    for v, x in program.constants.items():
        source[v] = node("constant", f"{names[v]} = {constant(x)}", type_of(v))
    for equation in program.equations:
        here = node(
            "equation", _written(equation, names, called), ", ".join([type_of(v) for v in equation.results])
        )
        arrows += [(source[v], here) for v in dict.fromkeys(equation.operands) if v in source]
        runs += [(here, places[p]) for p in equation.params if isinstance(p, Program)]
        source.update(dict.fromkeys(equation.results, here))
    end = node("result", f"return {returned(program, names)}")
    arrows += [(source[v], end) for v in dict.fromkeys(program.outputs) if v in source]
    return Diagram(place, called[program], tuple(nodes), tuple(arrows), tuple(runs))


def _written(equation: Equation, names: Names, called: Mapping[Program, str]) -> str:
    """`d = mul(c, 2.0)`; of many operands only the literals, as arrows show the others."""
    given = [names[v] for v in equation.operands]
    if len(given) > 4:
        given = [repr(v.value) for v in equation.operands if isinstance(v, Literal)] + ["..."]
    results = ", ".join([names[v] for v in equation.results])
    return f"{results} = {equation.op.name}({', '.join([*given, *params(equation, called)])})"
