"""Sites: all mutants of a module, and the code of one of them."""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import CodeType

from oracles.mutation.changes import further_changes
from tensorken_conformance.selftest.source_changes import changes, replaced

NOT_RUN = ("annotation", "returns", "decorator_list", "type_params", "pattern", "exc", "cause", "msg")
"""The fields of nodes that compute nothing, or only the message of an error."""

SHOWN = ("__repr__", "__str__")
"""Methods whose results are for people."""

MARK = "__mutant_runs__"
"""The built-in function that a mutated node calls; it returns None."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of a module.

    Attributes:
        module: the name of the module.
        function: the qualified name of the function, the method, or the value of a class or of the module.
        position: the number of the node within it, which does not depend on lines.
        kind: the change, such as `Add-to-Sub`.
        line: the line in the file.
    """

    module: str
    function: str
    position: int
    kind: str
    line: int

    @property
    def id(self) -> str:
        """Such as `tensorken_numpy.sums:sum_of_rows:12:Add-to-Sub`."""
        return f"{self.module}:{self.function}:{self.position}:{self.kind}"

    @property
    def key(self) -> str:
        """The id; of a mutant that is held out a digest of it."""
        return hashlib.sha256(self.id.encode()).hexdigest() if self.is_held_out else self.id

    @property
    def is_held_out(self) -> bool:
        """Whether it belongs to the half that nobody looks at while laws are written."""
        return hashlib.sha256(self.id.encode()).digest()[0] % 2 == 1


def mutants_of(module: str, source: str) -> list[Mutant]:
    r"""All mutants of a module, in the order of its source.

    >>> [mutant.id for mutant in mutants_of("m", "def f(x):\n    return x + 1")]
    ['m:f:4:Add-to-Sub', 'm:f:8:1-to-2', 'm:f:8:1-to-0']
    """
    return [
        Mutant(module, function, position, kind, getattr(node, "lineno", 0))
        for function, position, node in nodes(ast.parse(source))
        for kind in kinds(node)
    ]


def kinds(node: ast.AST) -> list[str]:
    """The kinds of the changes of a node, each once; none of a node that is assigned to."""
    if isinstance(getattr(node, "ctx", None), ast.Store | ast.Del):
        return []
    return list(dict.fromkeys(kind for change in (changes, further_changes) for kind, _ in change(node)))


def nodes(tree: ast.Module) -> Iterator[tuple[str, int, ast.AST]]:
    """The nodes that compute something, each with the name of its part and its number there."""
    seen: Counter[str] = Counter()
    for name, part in parts("", tree.body):
        seen[name] += 1
        unique = name if seen[name] == 1 else f"{name}#{seen[name]}"
        for position, node in enumerate(inside(part)):
            yield unique, position, node


def parts(prefix: str, body: list[ast.stmt]) -> Iterator[tuple[str, ast.stmt]]:
    """The functions, methods and other statements of a module or a class, with their names."""
    for node in body:
        match node:
            case ast.ClassDef(name=name, body=members):
                yield from parts(f"{prefix}{name}.", members)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                if name not in SHOWN:
                    yield prefix + name, node
            case ast.Import() | ast.ImportFrom():
                pass
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                pass
            case ast.Assign(targets=[target, *_]):
                yield prefix + ast.unparse(target), node
            case ast.AnnAssign(target=target) if node.value is not None:
                yield prefix + ast.unparse(target), node
            case ast.Expr(value=ast.Constant()):
                pass
            case _:
                yield f"{prefix}<{type(node).__name__.lower()}>", node


def inside(part: ast.AST) -> Iterator[ast.AST]:
    """A node and all nodes in it, the outer before the inner ones."""
    if isinstance(part, ast.Assert | ast.Raise | ast.Import | ast.ImportFrom):
        return
    if isinstance(part, ast.keyword) and part.arg == "strict":
        return
    yield part
    for field, value in ast.iter_fields(part):
        if field not in NOT_RUN:
            for inner in value if isinstance(value, list) else [value]:
                if isinstance(inner, ast.AST):
                    yield from inside(inner)


def code_of(mutant: Mutant, source: str, file: str) -> CodeType:
    """The code of the module with the change, which calls MARK when it runs.

    Raises:
        ValueError: if the module has no such mutant.
    """
    tree = ast.fix_missing_locations(tree_of(mutant, source, marked))
    return compile(tree, file, "exec", dont_inherit=True)


def tree_of(
    mutant: Mutant, source: str, finish: Callable[[ast.AST], ast.AST] = lambda node: node
) -> ast.Module:
    """The syntax tree of the module with the change, where `finish` makes the last node of the changed one."""
    tree = ast.parse(source)
    for function, position, node in nodes(tree):
        if (function, position) == (mutant.function, mutant.position):
            for change in (changes, further_changes):
                for kind, make in change(node):
                    if kind == mutant.kind:
                        changed = replaced(tree, node, finish(make()))
                        assert isinstance(changed, ast.Module)
                        return changed
    raise ValueError(f"there is no mutant {mutant.id}")


def marked(node: ast.AST) -> ast.AST:
    """A node that calls MARK whenever it runs, with the same value."""
    call = ast.Call(ast.Name(MARK, ast.Load()), [], [])
    match node:
        case ast.expr():
            return ast.BoolOp(ast.Or(), [call, node])
        case ast.stmt():
            return ast.If(ast.BoolOp(ast.Or(), [call, ast.Constant(True)]), [node], [])
        case ast.comprehension(ifs=[test, *rest]):
            node.ifs = [ast.BoolOp(ast.Or(), [call, test]), *rest]
        case ast.Slice(lower=lower, upper=upper):
            if lower is not None:
                node.lower = ast.BoolOp(ast.Or(), [call, lower])
            elif upper is not None:
                node.upper = ast.BoolOp(ast.Or(), [call, upper])
    return node


def difference(mutant: Mutant, source: str) -> str:
    """The changed line, before and after."""
    before, after = ast.unparse(ast.parse(source)), ast.unparse(tree_of(mutant, source))
    old, new = before.splitlines(), after.splitlines()
    start = next(i for i, (a, b) in enumerate(zip(old, [*new, "", ""], strict=False)) if a != b)
    return f"{old[start].strip()}  ->  {new[start].strip()}"
