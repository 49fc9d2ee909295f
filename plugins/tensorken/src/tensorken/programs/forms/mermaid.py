"""Mermaid: a program as a flowchart in the language that Markdown viewers draw."""

from __future__ import annotations

from tensorken.programs.forms.diagram import diagrams
from tensorken_core.program.program import Program

SHAPES = {"input": '(["{}"])', "constant": '[("{}")]', "equation": '["{}"]', "result": '[["{}"]]'}

_ENTITIES = {c: f"#{ord(c)};" for c in '#"&<>`\\;'}
"""What would end a label, or be read as Markdown or HTML in it."""


def mermaid(program: Program) -> str:
    """The text of a flowchart; each program that an op runs is a frame of its own, with a dotted arrow to it."""
    drawn = diagrams(program)
    lines = ["flowchart TD"]
    for picture in drawn:
        lines.append(f'    subgraph {picture.name}["{_label(picture.title)}"]')
        lines += [f"        {n.name}{SHAPES[n.kind].format(_label(*n.lines))}" for n in picture.nodes]
        lines += [f"        {start} --> {end}" for start, end in picture.arrows]
        lines.append("    end")
    lines += [f"    {start} -.-> {end}" for picture in drawn for start, end in picture.runs]
    return "\n".join(lines) + "\n"


def _label(*lines: str) -> str:
    return "<br/>".join(["".join([_ENTITIES.get(c, c) for c in line]).replace("\n", " ") for line in lines])
