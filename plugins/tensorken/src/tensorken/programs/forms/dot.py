"""Dot: a program as a graph in the language of Graphviz."""

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
    """The text of a directed graph; each program that an op runs is a frame of its own, with a dotted arrow to it."""
    drawn = diagrams(program)
    lines = [f"digraph {_quoted(program.name)} {{", "    compound=true;", '    node [fontname="monospace"];']
    for picture in drawn:
        lines.append(f"    subgraph cluster_{picture.name} {{")
        lines.append(f"        label={_quoted(picture.title)};")
        lines += [f"        {n.name} [{STYLES[n.kind]}, label={_quoted(*n.lines)}];" for n in picture.nodes]
        lines += [f"        {start} -> {end};" for start, end in picture.arrows]
        lines.append("    }")
    first = {picture.name: picture.nodes[0].name for picture in drawn}
    lines += [
        f"    {start} -> {first[end]} [style=dotted, lhead=cluster_{end}];"
        for picture in drawn
        for start, end in picture.runs
    ]
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(*lines: str) -> str:
    r"""A string of dot, in which a backslash and a quotation mark are escaped, and lines are joined by `\n`."""
    escaped = [line.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ") for line in lines]
    return '"' + "\\n".join(escaped) + '"'
