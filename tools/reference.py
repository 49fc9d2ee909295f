"""The pages of the reference: one for each public module, and for Tensor, the op table, the backends and the plugins.

They are reStructuredText for Sphinx, which inserts signatures and docstrings. This module determines the names and
their pages. No function is listed by hand: modules, ops and backends are looked up.
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
import itertools
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import tensorken
import tensorken_cli
import tensorken_nn
import tensorken_nn.checkpoints
import tensorken_nn.initializers
import tensorken_profile
from tensorken.arrays.elsewhere.methods import NameElsewhere
from tensorken_core.errors import DTypeError
from tensorken_core.host.registry import REGISTRY
from tensorken_core.language.dtypes import DTYPES, DType
from tensorken_core.language.op import OPS, Op
from tensorken_core.language.raw import RawTensor
from tensorken_core.tensor.tensor import Tensor
from tensorken_core.tensor.value import Value
from tools.public_modules import PublicModule, names_of, public_modules
from tools.reference_topics import FIRST, LEADING, PARTS, TOPICS


def pages() -> dict[str, str]:
    """The text of each page by name."""
    owners = {owner.page: owner for owner in [*public_modules(), *plugins()] if owner.page != "tensor"}
    texts, summaries = {}, {}
    for topic in TOPICS:
        sections = [_module_part(owners.pop(name), "-") for name in topic.modules]
        about = topic.about.replace("`", "``")
        texts[topic.page] = "\n\n".join([_title(topic.title), about, *sections]) + "\n"
        summaries[topic.page] = about
    for owner in owners.values():
        parts = _parts(owner)
        for page, (title, about, names) in parts.items():
            part = PublicModule(owner.module, owner.namespace, names)
            texts[page] = "\n\n".join([_title(title), about, *_names(part)]) + "\n"
            summaries[page] = about
        moved = {name for _, _, names in parts.values() for name in names}
        rest = tuple(name for name in owner.names if name not in moved)
        kept = PublicModule(owner.module, owner.namespace, rest, owner.aliases)
        texts[owner.page] = _module_part(kept, "=") + "\n"
        summaries[owner.page] = owner.intro.partition("\n\n")[0].replace("\n", " ")
    texts |= {"tensor": _tensor_page(), "ops": _ops_page(), "backends": _backends_page()}
    summaries |= {"tensor": "The class of tensors.", "ops": "The op table of the language."}
    summaries |= {"backends": "The installed backends."}
    order = [*(name for name in FIRST if name in texts), *(name for name in texts if name not in FIRST)]
    return texts | {"index": _index_page({name: summaries[name] for name in order})}


def _parts(owner: PublicModule) -> dict[str, tuple[str, str, tuple[str, ...]]]:
    """The pages beside that of a module, for its names from some modules: their titles, summaries and names."""
    if owner.module is not tensorken_nn:
        return {}
    found = {}
    for page, (title, about, modules) in PARTS.items():
        paths = tuple(f"{tensorken_nn.__name__}.{module}" for module in modules)
        inside = [
            n
            for n in owner.names
            if f"{getattr(owner.object(n), '__module__', '')}.".startswith(
                tuple(f"{path}." for path in paths)
            )
        ]
        found[page] = (title, about, tuple(inside))
    return found


OPTIONAL = ("tensorken_dask", "tensorken_mpi")
"""Plugins over libraries that are not installed everywhere; the session `docs` installs them."""


def plugins() -> list[PublicModule]:
    """The public modules of our plugins."""
    optional = [importlib.import_module(name) for name in OPTIONAL if importlib.util.find_spec(name)]
    always = (tensorken_nn, tensorken_nn.checkpoints, tensorken_nn.initializers, tensorken_profile)
    modules = (*always, tensorken_cli, *optional)
    return [PublicModule(module, module.__name__, names_of(module)) for module in modules]


def write(folder: Path) -> None:
    """Write all pages into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (folder / f"{name}.rst").write_text(text, encoding="utf-8", newline="\n")


# ---- a public module ---------------------------------------------------------------------------------------


def _module_part(owner: PublicModule, line: str) -> str:
    """A module as a page, or as a section of one: its title, its docstring, its names."""
    about = f".. automodule:: {owner.module.__name__}\n   :no-index:"
    head = [_title(owner.title, line), about]
    if owner.namespace != "tensorken":
        head.append(f".. module:: {owner.namespace}")
    entries = _names(owner)
    if owner.aliases:
        entries.append(f".. currentmodule:: {tensorken.__name__}")
        entries += [_same(owner.object(name), name, f"{owner.namespace}.{name}") for name in owner.aliases]
    return "\n\n".join([*head, *entries])


def _names(owner: PublicModule) -> list[str]:
    """A list of a module's functions and classes, and their entries."""
    grouped = _aliases(owner)
    leading = [name for name in LEADING if name in grouped]
    ordered = [*leading, *(name for name in grouped if name not in leading)]
    table = [f"   {name}" for name in ordered if callable(owner.object(name))]
    head = [f".. currentmodule:: {owner.namespace}"]
    if len(table) > 1:
        head.append(".. autosummary::\n   :nosignatures:\n\n" + "\n".join(table))
    return [*head, *(_entry(owner, name, grouped[name]) for name in ordered)]


def _aliases(owner: PublicModule) -> dict[str, list[str]]:
    """The names of a module with their aliases; the main name is the object's `__name__`."""
    aliases: dict[str, list[str]] = {}
    for name in owner.names:
        value = owner.object(name)
        own = getattr(value, "__name__", None) or getattr(value, "name", None)
        first = next((other for other in owner.names if owner.object(other) is value), name)
        canonical = own if own in owner.names and owner.object(own) is value else first
        others = aliases.setdefault(canonical, [])
        if name != canonical:
            others.append(name)
    return aliases


def _entry(owner: PublicModule, name: str, aliases: Sequence[str]) -> str:
    value = owner.object(name)
    if inspect.isclass(value):
        fields = "" if issubclass(value, RawTensor | Tensor | Exception | tuple) else "\n   :members:"
        entry = f".. autoclass:: {name}{fields}\n   :show-inheritance:"
        if not issubclass(value, Exception):
            entry = entry.removesuffix("\n   :show-inheritance:")
    elif inspect.isroutine(value):
        entry = f".. autofunction:: {name}"
    elif inspect.ismodule(value):  # the module's own page has its index entry
        entry = f".. py:data:: {name}\n   :no-index:\n\n   The module :py:mod:`{value.__name__}`."
    else:
        entry = f".. py:data:: {name}\n\n   {_description(owner, name)}"
    return "\n\n".join([entry, *[_same(value, alias, name) for alias in aliases]])


def _same(value: Any, alias: str, name: str) -> str:
    """The entry of an alias, with a link to the main name."""
    if inspect.isroutine(value):
        return f".. py:function:: {alias}{_signature(value)}\n\n   The same as :py:func:`{name}`."
    return f".. py:data:: {alias}\n\n   The same as :py:obj:`{name}`."


def _signature(function: Any) -> str:
    """The parameters of a function with defaults, without types."""
    signature = inspect.signature(function)
    bare = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return str(signature.replace(parameters=bare, return_annotation=signature.empty))


def _description(owner: PublicModule, name: str) -> str:
    """The description of a constant: the string below its assignment, or its repr."""
    value = owner.object(name)
    if isinstance(value, DType):
        bits = "" if value.kind == "bool" else f" of {8 * value.itemsize} bits"
        return f"The dtype of {_counted(value.kind)}{bits}."
    body = ast.parse(inspect.getsource(owner.module)).body
    for statement, following in itertools.pairwise(body):
        targets = statement.targets if isinstance(statement, ast.Assign) else ()
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            match following:
                case ast.Expr(ast.Constant(str(text))):
                    return textwrap.indent(inspect.cleandoc(text), "   ").lstrip()
    return f"``{value!r}``"


def _counted(kind: str) -> str:
    return {
        "bool": "truth values",
        "int": "signed integers",
        "float": "floating-point numbers",
        "complex": "complex numbers",
    }[kind]


# ---- Tensor ------------------------------------------------------------------------------------------------


def tensor_members() -> dict[str, list[str]]:
    """The public names of Tensor by where they are documented: as a member, or with the function of the same name."""
    members: dict[str, list[str]] = {"attributes": [], "methods": [], "functions": []}
    for name in dir(Tensor):
        member = inspect.getattr_static(Tensor, name)
        if name.startswith("_") or isinstance(member, NameElsewhere):
            continue
        if isinstance(member, property):
            members["attributes"].append(name)
        elif name in Value.__slots__:
            continue  # documented in the docstring of the class
        elif member is getattr(tensorken, name, None) or (
            own_docstring(member) is None and hasattr(tensorken, name)
        ):
            members["functions"].append(name)
        else:
            members["methods"].append(name)
    return members


def own_docstring(member: Any) -> str | None:
    """The docstring of a function or property, not of its class."""
    member = member.__func__ if isinstance(member, staticmethod) else member
    return member.__doc__ if inspect.isfunction(member) or isinstance(member, property) else None


def _tensor_page() -> str:
    members = tensor_members()
    parts = [_title("Tensor"), ".. currentmodule:: tensorken", ".. autoclass:: Tensor()"]
    parts += [_title("Attributes", "-")]
    for name in members["attributes"]:  # not by autodoc, which takes the text before a colon for a type
        parts.append(f".. py:property:: Tensor.{name}\n\n   {_indented(getattr(Tensor, name))}")
    parts += [_title("Functions that are also methods", "-")]
    parts += ["The tensor is the function's first argument."]
    parts += [", ".join(f":py:func:`~tensorken.{name}`" for name in members["functions"])]
    parts += [_title("Methods", "-")]
    parts += [f".. automethod:: Tensor.{name}" for name in members["methods"]]
    return "\n\n".join(parts) + "\n"


# ---- the op table ------------------------------------------------------------------------------------------

COLUMNS = ("op", "meaning", "dtypes", "derivatives")


def _ops_page() -> str:
    backends = _interpreters()
    of_tensors = sorted(
        [op for op in OPS.values() if op.higher_order is None],
        key=lambda op: op.name,
    )
    of_programs = sorted([op.name for op in OPS.values() if op.higher_order is not None])
    required = [op for op in of_tensors if op.body is None]
    derived = [op for op in of_tensors if op.body is not None]
    text = f"""
        The language has {len(of_tensors)} ops of tensors. Every backend must implement {len(required)} of them.
        The others have a body in terms of other ops, which runs if a backend has no method of its own. Each op is
        declared once, with its shape rule, dtype rule and derivatives, in ``core/src/tensorken_core/language/``;
        ``convolution`` is declared in ``plugins/tensorken``. This table is generated from these declarations. These
        ops run programs, which are among their params:
        {", ".join([f"``{name}``" for name in of_programs])}.

        Operands and params of ops must be checked and normalised: equal shapes, non-negative axes. The public functions
        and methods do that, so call those.
    """
    widths = (30, 40, 15, 15)
    parts = [_title("The op table"), _paragraphs(text), _title("Required ops", "-")]
    parts += [_table(COLUMNS, [_op_row(op) for op in required], widths, "ops")]
    parts += [_title("Ops with a body", "-")]
    parts += ["The last column lists the backends that run the body."]
    rows = [(*_op_row(op), _without_method(op, backends)) for op in derived]
    parts += [_table((*COLUMNS, "body runs on"), rows, (27, 33, 13, 12, 15), "ops")]
    return "\n\n".join(parts) + "\n"


def _op_row(op: Op) -> tuple[str, ...]:
    names = operand_names(op)
    declared = getattr(RawTensor, op.name, None)
    meaning = (inspect.getdoc(declared) or "").partition("\n")[0] if op.method else ""
    params = ", ".join([*names, *op.params])
    return (
        f"``{op.name}({params})``",
        meaning,
        accepted(op),
        derivatives(op, names),
    )


def _without_method(op: Op, backends: dict[str, RawTensor[Any]]) -> str:
    """The backends without an own method of an op."""
    names = [name for name, raw in backends.items() if not (op.method and raw.has(op))]
    return "all" if len(names) == len(backends) else ", ".join(names) or "none"


def operand_names(op: Op) -> list[str]:
    """The names of the operands in the declaration; numbered names for an op that is not a method."""
    declared = inspect.unwrap(getattr(RawTensor, op.name)) if op.method else None
    if declared is None:
        return [f"x{i + 1}" for i in range(op.arity or 0)] if op.arity else ["*operands"]
    parameters = [p for p in inspect.signature(declared).parameters.values() if p.name != "self"]
    return [f"*{p.name}" if p.kind is p.VAR_POSITIONAL else p.name for p in parameters][: op.arity or 1]


def derivatives(op: Op, names: Sequence[str]) -> str:
    """The operands with respect to which an op has derivatives, by mode if the modes differ."""
    if op.jvp_all is not None or op.vjp_all is not None:
        return "all operands"
    forward = [name for name, rule in zip(names, op.jvp, strict=False) if rule is not None]
    reverse = [name for name, rule in zip(names, op.vjp, strict=False) if rule is not None]
    if forward == reverse:
        return ", ".join(forward) or "none"
    return f"forward {', '.join(forward) or 'none'}; reverse {', '.join(reverse) or 'none'}"


def accepted(op: Op) -> str:
    """The kinds of dtypes that an op accepts, and the dtypes of its results, by its dtype rule."""
    params: tuple[Any, ...] = op.samples[0][1] if op.samples else ()
    kinds_of_operands = op.operand_kinds or ("data",) * (op.arity or 2)
    results: dict[str, set[str]] = {}
    for dtype in DTYPES.values():
        dtype_of = {"condition": DTYPES["bool"], "indices": DTYPES["int32"]}
        try:
            result = op.result_dtype(tuple([dtype_of.get(kind, dtype) for kind in kinds_of_operands]), params)
        except DTypeError:
            continue
        dtypes = result if isinstance(result, tuple) else (result,)
        text = ", ".join("same" if d is dtype else d.name for d in dtypes)
        results.setdefault(dtype.kind, set()).add("same" if set(text.split(", ")) == {"same"} else text)
    if op.params == ("dtype",):
        return "all to any"
    kinds = "all" if len(results) == 3 else ", ".join(results)
    others = sorted({text for texts in results.values() for text in texts} - {"same"})
    return f"{kinds} to {' or '.join(others)}" if others and not _only_same(results, others) else kinds


def _only_same(results: dict[str, set[str]], others: list[str]) -> bool:
    """Whether the result always has the operand's dtype, or there are several other result dtypes."""
    return all(texts == {"same"} for texts in results.values()) or len(others) > 1


# ---- backends ----------------------------------------------------------------------------------------------


def _interpreters() -> dict[str, RawTensor[Any]]:
    """The installed backends of the workspace, without the host's wrappers."""
    interpreters = {}
    for record in REGISTRY.records("backends"):
        interpreter: Any = REGISTRY.load(record)
        interpreters[record.name] = getattr(interpreter, "raw", interpreter)
    return interpreters


def _backends_page() -> str:
    loaded = _interpreters()
    text = "Each backend is a distribution of its own, found by its entry point like any plugin."
    parts = [_title("Backends"), text]
    for record in REGISTRY.records("backends"):
        raw = loaded[record.name]
        own = sorted(op.name for op in OPS.values() if op.method and op.body is not None and raw.has(op))
        parts += [_title(record.name, "-"), f"``{record.distribution}``: {REGISTRY.entry(record).summary}."]
        parts += [_paragraphs(inspect.getdoc(inspect.getmodule(type(raw))) or "")]
        bodies = sum(op.body is not None and op.higher_order is None for op in OPS.values())
        parts += [f"Own methods for {len(own)} of the {bodies} ops that have a body:"] if own else []
        parts += [", ".join(f"``{name}``" for name in own)] if own else []
    parts += [_title("The backend interface", "-"), ".. currentmodule:: tensorken_core.language.raw"]
    parts += [".. autoclass:: RawTensor()"]
    for name in ("new", "full", "shape", "dtype", "ravel", "has", "settle", "realize", "compile"):
        parts.append(f"   .. automethod:: {name}")
    return "\n\n".join(parts) + "\n"


# ---- the index and markup ----------------------------------------------------------------------------------


def _index_page(about: dict[str, str]) -> str:
    listed = "\n".join(f"   {name}" for name in about)
    rows = [(f":doc:`{name}`", text) for name, text in about.items()]
    text = """
        The reference is generated from the docstrings, and every example is run by the tests. ``tk`` stands for
        ``import tensorken as tk``. A page of several functions begins with a list of them; the :ref:`index <genindex>`
        has all names in alphabetical order.

        In signatures, ``ArrayLike`` is a tensor, a number, an array, or a nested sequence of numbers; ``Axis`` is an
        int, several, or None; ``ShapeLike`` is an int or several; ``Argnums`` is the number of an argument, or several;
        ``PerAxis`` is an int, or one for each axis. A parameter without a type takes more than one kind of value,
        which its text describes.
    """
    hidden = f".. toctree::\n   :hidden:\n\n{listed}"
    return "\n\n".join([_title("Reference"), _paragraphs(text), _table(None, rows), hidden]) + "\n"


def _indented(value: Any) -> str:
    """A docstring as the content of a directive, without the indent of the first line."""
    return textwrap.indent(inspect.getdoc(value) or "", "   ").lstrip()


def _title(text: str, line: str = "=") -> str:
    return f"{text}\n{line * len(text)}"


def _paragraphs(text: str) -> str:
    return textwrap.dedent(text).strip()


def _table(
    columns: Sequence[str] | None,
    rows: Iterable[Sequence[str]],
    widths: Sequence[int] = (30, 70),
    style: str = "modules",
) -> str:
    lines = [".. list-table::", f"   :class: {style}", f"   :widths: {' '.join(map(str, widths))}"]
    lines += ["   :header-rows: 1", ""] if columns else [""]
    for row in [*([columns] if columns else []), *rows]:
        lines += [f"   {'* - ' if i == 0 else '  - '}{cell}" for i, cell in enumerate(row)]
    return "\n".join(lines)
