"""SVG: a program as a picture, in which values flow downwards."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from html import escape
from itertools import pairwise

from tensorken.programs.forms.diagram import Diagram, DiagramNode, diagrams
from tensorken.programs.forms.layers import Point, layout
from tensorken.programs.forms.text import summary
from tensorken_core.errors import ArgumentError
from tensorken_core.host.discovery import did_you_mean
from tensorken_core.program.program import Program

CHARACTER = 7.25
"""The width of a character, in pixels: labels are in a font of fixed width."""

LINE = 16.0
PADDING = 9.0
MARGIN = 16.0
HEAD = 6.0

_STYLE = """
.tk-svg text { font: 12px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #1d2733; }
.tk-svg .tk-label { text-anchor: middle; }
.tk-svg .tk-type { font-size: 11px; fill: #55626f; }
.tk-svg .tk-title { font-weight: bold; }
.tk-svg .tk-ground { fill: #ffffff; stroke: #d5dbe1; }
.tk-svg .tk-node { stroke: #5b6b7b; fill: #e4edf8; }
.tk-svg .tk-input { fill: #e3f1de; }
.tk-svg .tk-constant { fill: #f3eee1; }
.tk-svg .tk-result { fill: #ffffff; stroke-width: 2; }
.tk-svg .tk-marked { fill: #fbe0cc; }
.tk-svg .tk-arrow { fill: none; stroke: #5b6b7b; stroke-width: 1.2; }
.tk-svg .tk-head { fill: #5b6b7b; stroke: none; }
@media (prefers-color-scheme: dark) {
.tk-svg text { fill: #e6eaef; }
.tk-svg .tk-type { fill: #a5b1bd; }
.tk-svg .tk-ground { fill: #14181d; stroke: #3a4550; }
.tk-svg .tk-node { stroke: #8b9aa9; fill: #1f3145; }
.tk-svg .tk-input { fill: #21391c; }
.tk-svg .tk-constant { fill: #3a3424; }
.tk-svg .tk-result { fill: #14181d; }
.tk-svg .tk-marked { fill: #55321a; }
.tk-svg .tk-arrow { stroke: #8b9aa9; }
.tk-svg .tk-head { fill: #8b9aa9; }
}
"""


def svg(program: Program, mark: Collection[str]) -> str:
    """A picture with its own style and no external resources; programs that its ops run are drawn below it."""
    all_diagrams = diagrams(program)
    _check(program, mark, [name for node in all_diagrams[0].nodes for name in node.defines])
    parts: list[str] = []
    width, height = 0.0, MARGIN
    for i, diagram in enumerate(all_diagrams):
        if len(all_diagrams) > 1:
            height += LINE
            parts.append(
                f'<text class="tk-title" x="{MARGIN}" y="{height:.1f}">{escape(diagram.title)}</text>'
            )
            height += LINE
        drawn, right, below = _drawn(diagram, mark if i == 0 else (), MARGIN, height)
        parts += drawn
        width, height = max(width, right + MARGIN), below + MARGIN
    size = f'viewBox="0 0 {width:.1f} {height:.1f}" width="{width:.0f}" height="{height:.0f}"'
    ground = (
        f'<rect class="tk-ground" x="0.5" y="0.5" width="{width - 1:.1f}" height="{height - 1:.1f}" rx="8"/>'
    )
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="tk-svg" role="img" {size}>',
        f"<title>{escape(summary(program).strip('<>'))}</title>",
        f"<style>{_STYLE}</style>",
    ]
    return "\n".join([*head, ground, *parts, "</svg>", ""])


def _check(program: Program, mark: Collection[str], known: Sequence[str]) -> None:
    for name in mark:
        if name not in known:
            raise ArgumentError(
                f"to_svg: mark has {name!r}, and {program.name} has no such variable{did_you_mean(name, known)}"
            )


def _drawn(
    diagram: Diagram, mark: Collection[str], left: float, top: float
) -> tuple[list[str], float, float]:
    """The elements of a diagram, and its right and lower edge."""
    sizes = {
        n.name: (max(map(len, n.lines)) * CHARACTER + 2 * PADDING, len(n.lines) * LINE + PADDING)
        for n in diagram.nodes
    }
    marked = set(mark)
    placed = layout(sizes, diagram.arrows)
    parts = [_arrow([(left + x, top + y) for x, y in path]) for path in placed.paths]
    for node in diagram.nodes:
        x, y = placed.centers[node.name]
        parts.append(
            _box(node, sizes[node.name], (left + x, top + y), marked=not marked.isdisjoint(node.defines))
        )
    return parts, left + placed.width, top + placed.height


def _box(node: DiagramNode, size: Point, center: Point, *, marked: bool) -> str:
    (width, height), (x, y) = size, center
    style = f"tk-node tk-{node.kind}{' tk-marked' if marked else ''}"
    radius = height / 2 if node.kind == "input" else 4
    corner = f'x="{x - width / 2:.1f}" y="{y - height / 2:.1f}"'
    box = f'<rect class="{style}" {corner} width="{width:.1f}" height="{height:.1f}" rx="{radius:.1f}"/>'
    first = y - (len(node.lines) - 1) * LINE / 2 + 4
    classes = ["tk-label", *["tk-label tk-type"] * (len(node.lines) - 1)]
    texts = [
        f'<text class="{c}" x="{x:.1f}" y="{first + i * LINE:.1f}">{escape(line)}</text>'
        for i, (c, line) in enumerate(zip(classes, node.lines, strict=True))
    ]
    return "".join([box, *texts])


def _arrow(points: Sequence[Point]) -> str:
    """A smooth line through the points, vertical at each, with a head at its end."""
    (x, y), (last, bottom) = points[0], points[-1]
    steps = [f"M{x:.1f} {y:.1f}"]
    ends = [*points[1:-1], (last, bottom - HEAD)]
    for (x0, y0), (x1, y1) in pairwise([points[0], *ends]):
        middle = (y0 + y1) / 2
        steps.append(
            f"L{x1:.1f} {y1:.1f}"
            if x0 == x1
            else f"C{x0:.1f} {middle:.1f} {x1:.1f} {middle:.1f} {x1:.1f} {y1:.1f}"
        )
    head = f"M{last:.1f} {bottom:.1f}l{-HEAD / 2} {-HEAD}h{HEAD}z"
    return f'<path class="tk-arrow" d="{"".join(steps)}"/><path class="tk-head" d="{head}"/>'
