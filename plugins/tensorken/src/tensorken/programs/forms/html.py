"""HTML: a program as a table of its equations, for notebooks; the colours follow the page."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from html import escape

from tensorken.programs.forms.text import constant, params, returned, source_text, summary, type_of
from tensorken.programs.names import Names, all_programs, unique_names
from tensorken_core.program.program import Equation, Literal, Program, Variable

MAX_ROWS = 300
"""The largest number of equations that are shown; of a longer program, the first and last half of this number."""

_STYLE = """
.tk-program { color-scheme: light dark; font: 13px/1.5 ui-monospace, Menlo, Consolas, monospace;
  --tk-name: light-dark(#0b57d0, #8ab4f8); --tk-op: light-dark(#8a3ffc, #c8a2ff);
  --tk-faint: light-dark(#5f6368, #9aa0a6);
  --tk-line: light-dark(#dadce0, #3c4043); --tk-hit: light-dark(#fff3c4, #4a3f12); margin: .5em 0; overflow-x: auto; }
.tk-program table { border-collapse: collapse; margin: .25em 0 .75em; font: inherit; }
.tk-program td, .tk-program th { text-align: left; padding: 1px 12px 1px 0; white-space: pre; border: 0;
  background: none; vertical-align: top; }
.tk-program thead th { color: var(--tk-faint); font-weight: normal; border-bottom: 1px solid var(--tk-line); }
.tk-program tr:hover, .tk-program tr:target { background: var(--tk-hit); }
.tk-program a { color: var(--tk-name); text-decoration: none; }
.tk-program a:hover { text-decoration: underline; }
.tk-program b { color: var(--tk-name); font-weight: 600; }
.tk-program i { color: var(--tk-op); font-style: normal; }
.tk-program .tk-faint { color: var(--tk-faint); }
.tk-program td.tk-wide { white-space: pre-wrap; max-width: 60ch; }
[data-jp-theme-light="true"] .tk-program, [data-theme="light"] .tk-program { color-scheme: light; }
[data-jp-theme-light="false"] .tk-program, [data-theme="dark"] .tk-program { color-scheme: dark; }
"""


def html(program: Program) -> str:
    """HTML with its own style and no external resources; each name links to the row that defines it."""
    programs = all_programs(program)
    titles_of = unique_names(programs)
    key = f"tk{zlib.crc32(str(program).encode()):x}"  # one document may show several programs
    parts = [
        f"<details{' open' if p is program else ''}><summary><b>{escape(titles_of[p])}</b>"
        f' <span class="tk-faint">{escape(summary(p).partition(": ")[2].rstrip(">"))}</span></summary>'
        f"{_table(p, titles_of, f'{key}-{i}')}</details>"
        for i, p in enumerate(programs)
    ]
    return f'<div class="tk-program"><style>{_STYLE}</style>{"".join(parts)}</div>'


def _table(program: Program, titles_of: Mapping[Program, str], key: str) -> str:
    names = Names(program)
    rows = ["".join(_rows(program, titles_of, names, key))]
    head = "".join([f"<th>{title}</th>" for title in ("value", "type", "is", "from")])
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _rows(program: Program, titles_of: Mapping[Program, str], names: Names, key: str) -> Iterator[str]:
    row_numbers: dict[Variable, int] = {}

    def defined(variables: Sequence[Variable], definition: str, line: str = "") -> str:
        for v in variables:
            row_numbers.setdefault(v, len(row_numbers))
        anchors = "".join([f'<a id="{key}-{row_numbers[v]}"></a>' for v in variables[1:]])
        row_id = f' id="{key}-{row_numbers[variables[0]]}"' if variables else ""
        titles_ = ", ".join([f"<b>{escape(names[v])}</b>" for v in variables])
        types = "\n".join([type_of(v) for v in variables])
        return (
            f"<tr{row_id}><td>{anchors}{titles_}</td><td class='tk-faint'>{types}</td>"
            f"<td class='tk-wide'>{definition}</td><td class='tk-faint'>{escape(line)}</td></tr>"
        )

    def used(v: Variable) -> str:
        if isinstance(v, Literal) or v not in row_numbers:
            return escape(names[v])
        return f'<a href="#{key}-{row_numbers[v]}">{escape(names[v])}</a>'

    def call_html(equation: Equation) -> str:
        arguments = [*map(used, equation.operands), *map(escape, params(equation, titles_of))]
        return f"<i>{escape(equation.op.name)}</i>({', '.join(arguments)})"

    for v in program.inputs:
        yield defined([v], '<span class="tk-faint">input</span>')
    for v, x in program.constants.items():
        yield defined([v], f'<span class="tk-faint">{escape(constant(x))}</span>')
    count = len(program.equations)
    previous_line = ""
    for i, equation in enumerate(program.equations):
        if count > MAX_ROWS and MAX_ROWS // 2 <= i < count - MAX_ROWS // 2:
            if i == MAX_ROWS // 2:
                yield f"<tr><td colspan=4 class='tk-faint'>{count - MAX_ROWS} more: print(program) shows all</td></tr>"
            for v in equation.results:
                names[v]  # so that later names are the names in the text form
            continue
        line = source_text(equation)
        yield defined(equation.results, call_html(equation), line if line != previous_line else "")
        previous_line = line
    yield f'<tr><td><i>return</i></td><td colspan=3 class="tk-wide">{escape(returned(program, names))}</td></tr>'
