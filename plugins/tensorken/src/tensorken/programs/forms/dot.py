"""Dot: a program as a Graphviz graph."""

from __future__ import annotations

from tensorken.programs.forms.diagram import diagrams
from tensorken_core.program.program import Program

STYLES = {
    "input": "shape=box, style=rounded",
    "constant": "shape=cylinder",
    "equation": "shape=box",
    "result": "shape=box, peripheries=2",
}


def dot(program: Program) -> str:
    """The text of a directed graph; each program that an op runs is a cluster, and a dotted arrow leads to it."""
    all_diagrams = diagrams(program)
    lines = [f"digraph {_quoted(program.name)} {{", "    compound=true;", '    node [fontname="monospace"];']
    for diagram in all_diagrams:
        lines.append(f"    subgraph cluster_{diagram.name} {{")
        lines.append(f"        label={_quoted(diagram.title)};")
        lines += [f"        {n.name} [{STYLES[n.kind]}, label={_quoted(*n.lines)}];" for n in diagram.nodes]
        lines += [f"        {start} -> {end};" for start, end in diagram.arrows]
        lines.append("    }")
    first = {diagram.name: diagram.nodes[0].name for diagram in all_diagrams}
    lines += [
        f"    {start} -> {first[end]} [style=dotted, lhead=cluster_{end}];"
        for diagram in all_diagrams
        for start, end in diagram.runs
    ]
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(*lines: str) -> str:
    r"""A dot string: backslashes and quotation marks are escaped, and lines are joined by `\n`."""
    escaped = [line.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ") for line in lines]
    return '"' + "\\n".join(escaped) + '"'
