"""Diagrams, the nodes and arrows of `to_svg`, `to_mermaid` and `to_dot`: inputs, constants, equations and results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tensorken.programs.forms.text import constant, params, returned, type_of
from tensorken.programs.names import Names, all_programs, unique_names
from tensorken_core.program.program import Equation, Literal, Program, Variable


@dataclass(frozen=True, slots=True)
class DiagramNode:
    """A node of a diagram.

    Attributes:
        name: unique in the diagram: a letter and a number.
        kind: input, constant, equation or result.
        lines: the lines of its label.
        defines: the names of the variables that it defines.
    """

    name: str
    kind: str
    lines: tuple[str, ...]
    defines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Diagram:
    """One program: its nodes, arrows between nodes by name, and arrows from nodes to the programs that their ops
    run.
    """

    name: str
    title: str
    nodes: tuple[DiagramNode, ...]
    arrows: tuple[tuple[str, str], ...]
    runs: tuple[tuple[str, str], ...]


def diagrams(program: Program) -> list[Diagram]:
    """The diagrams of a program and of its inner programs."""
    programs = all_programs(program)
    titles_of = unique_names(programs)
    prefixes = {p: f"p{i}" for i, p in enumerate(programs)}
    return [_diagram(p, prefix, titles_of, prefixes) for p, prefix in prefixes.items()]


def _diagram(
    program: Program, prefix: str, titles_of: Mapping[Program, str], prefixes: Mapping[Program, str]
) -> Diagram:
    names = Names(program)
    nodes: list[DiagramNode] = []
    arrows: list[tuple[str, str]] = []
    runs: list[tuple[str, str]] = []
    source: dict[Variable, str] = {}

    def node(kind: str, variables: Iterable[Variable], *lines: str) -> str:
        defines = tuple([names[v] for v in variables])
        nodes.append(DiagramNode(f"{prefix}n{len(nodes)}", kind, lines, defines))
        return nodes[-1].name

    for v in program.inputs:
        source[v] = node("input", [v], names[v], type_of(v))
    for v, x in program.constants.items():
        source[v] = node("constant", [v], f"{names[v]} = {constant(x)}", type_of(v))
    for equation in program.equations:
        types = ", ".join([type_of(v) for v in equation.results])
        box = node("equation", equation.results, _label(equation, names, titles_of), types)
        arrows += [(source[v], box) for v in dict.fromkeys(equation.operands) if v in source]
        runs += [(box, prefixes[p]) for p in equation.params if isinstance(p, Program)]
        source.update(dict.fromkeys(equation.results, box))
    result_box = node("result", [], f"return {returned(program, names)}")
    arrows += [(source[v], result_box) for v in dict.fromkeys(program.outputs) if v in source]
    return Diagram(prefix, titles_of[program], tuple(nodes), tuple(arrows), tuple(runs))


def _label(equation: Equation, names: Names, titles_of: Mapping[Program, str]) -> str:
    """A label such as `d = mul(c, 2.0)`; of many operands only literals are listed; arrows show the others."""
    arguments = [names[v] for v in equation.operands]
    if len(arguments) > 4:
        arguments = [repr(v.value) for v in equation.operands if isinstance(v, Literal)] + ["..."]
    results = ", ".join([names[v] for v in equation.results])
    application = f"{equation.op.name}({', '.join([*arguments, *params(equation, titles_of)])})"
    return f"{results} = {application}" if results else application
