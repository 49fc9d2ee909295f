"""Create a page of the site from an example: its prose, code and output.

An example is a Python file. The page starts with its docstring. A comment `# ---- text ---` starts a part. A
function that prints a title (a line underlined with dashes) is a section, with its docstring as prose. Everything
else is code.
"""

from __future__ import annotations

import ast
import itertools
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

_PART = re.compile(r"^# ---- (.*?) -+$")
_TITLE = re.compile(r"^(?P<title>\S.*)\n(?P<line>-+)$", re.MULTILINE)


def page(example: Path, printed: str | None = None, figure: str = "") -> str:
    """The page of an example as Markdown.

    Args:
        example: the file.
        printed: its output; if None, it is run.
        figure: an image, as Markdown.
    """
    source = example.read_text(encoding="utf-8")
    printed = output_of(example) if printed is None else printed
    outputs = sections(printed)
    about = ast.get_docstring(ast.parse(source)) or ""
    parts = [_prose(about)]
    if outputs:
        heading = printed.partition("\n")[0]
        parts += _pieces(source, outputs)
    else:
        heading = re.split(r"[,:.]", about, maxsplit=1)[0]
        parts += [_fenced("python", _without_docstring(source)), "It prints:", _fenced("text", printed)]
        if figure:
            parts.append("The function `draw` makes the figure above on a `matplotlib.figure.Figure`.")
    if figure:
        parts.insert(1, figure)
    return "\n\n".join([f"# {heading}", *parts]) + "\n"


def output_of(example: Path) -> str:
    """The output of an example on the default backend."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TENSORKEN_")}
    command = [sys.executable, "-W", "error", str(example)]
    environment["PYTHONIOENCODING"] = "utf-8"
    process = subprocess.run(command, env=environment, stdout=subprocess.PIPE, encoding="utf-8", check=True)
    return process.stdout


def sections(printed: str) -> dict[str, str]:
    """The output under each title."""
    titles = [m for m in _TITLE.finditer(printed) if len(m["title"]) == len(m["line"])]
    ends = [*(m.start() for m in titles[1:]), len(printed)][: len(titles)]
    return {m["title"]: printed[m.end() : end].strip("\n") for m, end in zip(titles, ends, strict=True)}


def _pieces(source: str, outputs: dict[str, str]) -> Iterator[str]:
    """The blocks of the page: for each part, its code and sections."""
    lines = source.splitlines()
    docstring, *statements = ast.parse(source).body
    code: list[str] = []
    last = _end(docstring)
    for statement in statements:
        lines_above, own_lines = lines[last : _start(statement)], lines[_start(statement) : _end(statement)]
        last = _end(statement)
        for line in lines_above:
            part = _PART.match(line)
            if part:
                yield from _flushed(code)
                yield f"## {part[1].capitalize()}"
            else:
                code.append(line)
        if isinstance(statement, ast.FunctionDef) and any(_title_of(inner) for inner in statement.body):
            yield from _flushed(code)
            yield from _sections_of(statement, lines, outputs)
        elif not _is_for_output(statement):
            code += own_lines
    yield from _flushed(code)


def _sections_of(function: ast.FunctionDef, lines: list[str], outputs: dict[str, str]) -> Iterator[str]:
    """A section for each title that a function prints; the first has the docstring as prose."""
    prose = _prose(ast.get_docstring(function) or "")
    last = _end(function.body[0])
    chunk: list[str] = []
    shown: list[list[str]] = []
    title = ""
    for statement in function.body[1:]:
        lines_above = [line.strip() for line in lines[last : _start(statement)]]
        if _title_of(statement):
            if title:
                yield from _shown(chunk, shown, outputs[title])
            title = _title_of(statement)
            yield f"### {title}"
            yield from filter(None, (prose, _comment(lines_above)))
            prose, chunk, shown = "", [], []
        elif _is_call(statement, "show"):
            shown.append([_comment(lines_above), str(len(statement.value.args))])  # type: ignore[attr-defined]
        else:
            chunk += lines[last : _end(statement)]
        last = _end(statement)
    yield from _shown(chunk, shown, outputs[title])


def _shown(chunk: list[str], shown: list[list[str]], output: str) -> Iterator[str]:
    """The code and output of a section; or the lines that `show` evaluated, with their values."""
    if not shown:
        yield from _flushed(chunk)
        yield _fenced("text", output)
        return
    values = iter(re.split(r"^(?=>>> )", output, flags=re.MULTILINE)[1:])
    for comment, count in shown:
        if comment:
            yield comment
        yield _fenced("pycon", "".join(itertools.islice(values, int(count))))


def _title_of(statement: ast.stmt) -> str:
    """The title that a statement prints, or an empty string."""
    if not _is_call(statement, "title"):
        return ""
    return str(ast.literal_eval(statement.value.args[0]))  # type: ignore[attr-defined]


def _is_call(statement: ast.stmt, name: str) -> bool:
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == name


def _is_for_output(statement: ast.stmt) -> bool:
    """Whether a statement is only for printing or drawing, and left out of the page."""
    match statement:
        case ast.FunctionDef(name="title" | "show" | "draw" | "main") | ast.If() | ast.Expr():
            return True
        case ast.ImportFrom(module="__future__"):
            return True
        case ast.AnnAssign(target=ast.Name(id="NAMES")):
            return True
    return False


def _start(statement: ast.stmt) -> int:
    """The index of a statement's first line, including decorators."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(decorator.lineno for decorator in decorators)]) - 1


def _end(statement: ast.stmt) -> int:
    """The index after a statement's last line."""
    return statement.lineno if statement.end_lineno is None else statement.end_lineno


def _comment(lines: list[str]) -> str:
    """The text of a comment's lines."""
    return " ".join(line.lstrip("# ") for line in lines if line)


def _flushed(code: list[str]) -> Iterator[str]:
    """The collected code as a block, if any; empties the list."""
    text = textwrap.dedent("\n".join(code)).strip("\n")
    code.clear()
    if text:
        yield _fenced("python", text)


def _without_docstring(source: str) -> str:
    return "\n".join(source.splitlines()[_end(ast.parse(source).body[0]) :]).strip("\n")


def _prose(docstring: str) -> str:
    """A docstring as Markdown; indented lines are commands."""
    return re.sub(r"\n\n((?: {4}.*\n?)+)", lambda m: "\n\n" + _command(m[1]), docstring)


def _command(indented: str) -> str:
    lines = [line.strip() for line in indented.splitlines() if line.strip()]
    return _fenced("sh", "\n".join(f"$ {line}" for line in lines)) + "\n"


def _fenced(language: str, text: str) -> str:
    return f"```{language}\n{text.rstrip()}\n```"
