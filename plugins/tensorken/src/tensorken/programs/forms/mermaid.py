"""Mermaid: a program as a flowchart in the language that many Markdown viewers draw."""

from __future__ import annotations

from tensorken.programs.forms.diagram import diagrams
from tensorken_core.program.program import Program

SHAPES = {"input": '(["{}"])', "constant": '[("{}")]', "equation": '["{}"]', "result": '[["{}"]]'}

_ENTITIES = {c: f"#{ord(c)};" for c in '#"&<>`\\;'}
"""Escapes for characters that would end a label, or that Markdown or HTML would interpret."""


def mermaid(program: Program) -> str:
    """The text of a flowchart; each program that an op runs is a subgraph, and a dotted arrow leads to it."""
    all_diagrams = diagrams(program)
    lines = ["flowchart TD"]
    for diagram in all_diagrams:
        lines.append(f'    subgraph {diagram.name}["{_label(diagram.title)}"]')
        lines += [f"        {n.name}{SHAPES[n.kind].format(_label(*n.lines))}" for n in diagram.nodes]
        lines += [f"        {start} --> {end}" for start, end in diagram.arrows]
        lines.append("    end")
    lines += [f"    {start} -.-> {end}" for diagram in all_diagrams for start, end in diagram.runs]
    return "\n".join(lines) + "\n"


def _label(*lines: str) -> str:
    return "<br/>".join(["".join([_ENTITIES.get(c, c) for c in line]).replace("\n", " ") for line in lines])
