"""The axes that all designs share: sizes, shapes, layouts, special values and situations."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

import tensorken
from tensorken_conformance.case import Case
from tensorken_conformance.layouts import chains
from tensorken_conformance.subject import Array, Subject
from tensorken_core.language.dtypes import DTYPES, DType, integer_bounds
from tensorken_core.language.raw import RawTensor
from tensorken_core.language.shapes import Shape
from tensorken_core.tensor.tensor import Tensor

ID = "values.covering"

SIZES = ("0", "1", "few", *[str(2**k) for k in (3, 4, 5, 6, 7, 8, 10, 12, 16)])
"""The classes of sizes: a few, and a power of two or one of its neighbours."""

FORMS: dict[str, Callable[[int], Shape]] = {
    "vector": lambda n: (n,),
    "rows": lambda n: (3, n),
    "columns": lambda n: (n, 3),
    "cube": lambda n: (2, n, 2),
    "thin": lambda n: (1, n, 1, 2),
    "square": lambda n: (n, n),
}
"""The shapes for a size, by name."""

LARGE = {
    **dict.fromkeys(("rows", "columns", "cube"), SIZES[-1:]),
    "square": SIZES[SIZES.index("1024") :],
}
"""The sizes that are too large for a shape."""

NUMBER = "number"
"""The layout of a tensor that `full` makes, in a compiled program of a literal."""

LAYOUTS: dict[str, Callable[[tuple[int, ...]], chains.Chain]] = {
    "plain": lambda axes: (),
    "flip": lambda axes: (("flip", axes),),
    "flip-last": lambda axes: (("flip", axes[-1:]),),
    "crop": lambda axes: (("crop", axes),),
    "crop-last": lambda axes: (("crop", axes[-1:]),),
    "head": lambda axes: (("head", axes[:1]),),
    "drop": lambda axes: (("drop", ()),),
    "expand-first": lambda axes: (("expand", axes[:1]),),
    "expand-last": lambda axes: (("expand", axes[-1:]),),
    "expand-ends": lambda axes: (("expand", axes[:1] + axes[1:][-1:]),),
    "expand": lambda axes: (("expand", axes),),
    "permute": lambda axes: (("permute", axes[::-1]),),
    "permute-crop": lambda axes: (("permute", axes[::-1]), ("crop", axes[-1:])),
    "head-permute": lambda axes: (("head", axes[:1]), ("permute", axes[::-1])),
    "expand-permute": lambda axes: (("expand", axes[:1]), ("permute", axes[::-1])),
}
"""The movements that make an operand with so many axes."""

ALL_LAYOUTS = (NUMBER, *LAYOUTS)
"""The names of all layouts."""

FEW_LAYOUTS = ("plain", NUMBER, "crop-last", "expand-first", "permute")
"""The layouts in triples."""

PLACES = ("first", "last", "vector")
"""The place of the special value: `vector` is the last place of the whole vectors."""

FLOATS = (*[f"{value}:{place}" for value in ("nan", "-nan") for place in PLACES], "inf:last", "-0:last")
INTS = ("low:last", "high:first", "high:vector")

NONE = "none"

SPECIALS = (NONE, *FLOATS, *INTS)
"""The special value of one operand and its place, for floats and for ints."""


def special_values(dtype: DType) -> dict[str, Any]:
    """The special values of a dtype, by name."""
    if dtype.kind == "float":
        return {"nan": np.nan, "-nan": -np.nan, "inf": np.inf, "-0": -0.0}
    if dtype.kind == "int":
        return dict(zip(("low", "high"), integer_bounds(dtype), strict=True))
    return {}


SITUATIONS = ("once", "again", "after", "kept", "thread", "stack", "jit")
"""How an op runs: once; again on the same operands; after a larger call; while an earlier result is kept; on another
thread; as a user has it; in a compiled program, called twice."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A row of a design.

    Attributes:
        case: its case.
        form: the shape's name.
        size: of its longest axis.
        layouts: of the operands.
        special: the special value and its place.
        situation: how the op runs.
    """

    case: Case
    form: str
    size: int
    layouts: tuple[str, ...]
    special: str
    situation: str

    @staticmethod
    def of(case: Case) -> Cell:
        """The cell of a case."""
        form, size = case.shape.rsplit("-", 1)
        layouts, special, situation = case.detail.split(";")
        return Cell(case, form, int(size), tuple(layouts.split(",")), special, situation)

    @property
    def shape(self) -> Shape:
        """The shape of the operands."""
        return FORMS[self.form](self.size)

    @property
    def says(self) -> str:
        """The circumstances, for messages."""
        special = "" if self.special == NONE else f", {self.special}"
        return f"{self.shape}, {', '.join(self.layouts)}{special}, {self.situation}"


def case_of(op: str, row: dict[str, str], layouts: Sequence[str], seed: int) -> Case:
    """The case of a row; the seed draws the size from its class."""
    shape = f"{row['form']}-{drawn_size(row['size'], f'{seed} {op} {row}')}"
    detail = f"{','.join(layouts)};{row['special']};{row['situation']}"
    return Case(ID, op, row["dtype"], shape, row["values"], detail)


def drawn_size(name: str, key: str) -> int:
    """A size of a class."""
    rng = random.Random(key)
    if name == "few":
        return rng.randint(2, 6)
    return int(name) + (rng.randint(-1, 1) if int(name) > 1 else 0)


def chain_of(layout: str, rank: int) -> chains.Chain:
    """The movements of a layout; none for a number."""
    return () if layout == NUMBER else LAYOUTS[layout](tuple(range(rank)))


def chains_of(case: Case) -> Iterator[chains.Chain]:
    """The movements of all operands of a case."""
    for layout in case.detail.partition(";")[0].split(","):
        yield chain_of(layout, 2)


def makes(subject: Subject, layouts: Sequence[str], dtype: str) -> bool:
    """Whether the backend supports the movements of these layouts."""
    return all([chains.makes(subject, chain_of(layout, 2), dtype) for layout in layouts])


def fits(pair: dict[str, str]) -> bool:
    """Whether two values of the shared axes can stand in one row."""
    special = pair.get("special", NONE)
    if special != NONE and "dtype" in pair:
        return special.partition(":")[0] in special_values(DTYPES[pair["dtype"]])
    layouts = [value for axis, value in pair.items() if axis.startswith("layout")]
    if pair.get("form") == "vector" and any("permute" in layout for layout in layouts):
        return False
    if pair.get("size") in LARGE.get(pair.get("form", ""), ()):
        return False
    if pair.get("size") == "0" and (NUMBER in layouts or special != NONE):
        return False
    return pair.get("situation") != "after" or pair.get("size") != SIZES[-1]


# ---- operands ----------------------------------------------------------------------------------------------


def laid(layout: str, values: Array) -> Array:
    """Values as a layout has them: equal slices where it repeats, one number if it is one."""
    if layout == NUMBER:
        return np.full_like(values, values.flat[0])
    return chains.fitted(chain_of(layout, values.ndim), values)


def put_at(layout: str, values: Array, value: Any, place: str, width: int) -> Array:
    """Values with another one at a place, also in each repetition of this place."""
    flat = {"first": 0, "last": values.size - 1, "vector": max(values.size // width * width - 1, 0)}[place]
    mark = np.zeros(values.shape, bool)
    where = list(np.unravel_index(flat, values.shape))
    for axis in (None, *range(values.ndim)):  # a repeated axis is made from its first slice
        if axis is not None:
            where[axis] = np.intp(0)
        mark[...] = False
        mark[tuple(where)] = True
        mark = laid(layout, mark)
        if mark.any():
            break
    return np.where(mark, np.asarray(value, values.dtype), values)


def put_special(cell: Cell, layout: str, values: Array, specials: Mapping[str, Any], width: int) -> Array:
    """Values with the special value of a cell at its place, if it has one."""
    if cell.special == NONE:
        return values
    name, _, place = cell.special.partition(":")
    return put_at(layout, values, specials[name], place, width)


def operand(
    layout: str, values: Array, dtype: DType, interpreter: RawTensor[Any], subject: Subject
) -> Tensor:
    """A tensor with these values and this layout."""
    if layout == NUMBER:
        number = interpreter.full(values.shape, values.item(0), dtype)
        return Tensor(interpreter, number, values.shape, dtype)
    return subject.apart(chains.lying(interpreter, chain_of(layout, values.ndim), values, dtype))


# ---- situations --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Call:
    """A call of an op.

    Attributes:
        layouts: of the operands.
        arrays: two sets of operands, each as `laid` has them.
        dtypes: of the operands.
        run: the op.
        larger: operands of a larger call, plain.
    """

    layouts: tuple[str, ...]
    arrays: tuple[Sequence[Array], Sequence[Array]]
    dtypes: Sequence[DType]
    run: Callable[[Sequence[Tensor]], Tensor]
    larger: Sequence[Array] = ()

    def operands(self, subject: Subject, interpreter: RawTensor[Any], turn: int = 0) -> list[Tensor]:
        """The operands of a set."""
        made = zip(self.layouts, self.arrays[turn], self.dtypes, strict=True)
        return [operand(layout, x, dtype, interpreter, subject) for layout, x, dtype in made]

    def results(self, subject: Subject, situation: str) -> Iterator[tuple[int, Array]]:
        """The values of all results in a situation, each with the number of its set of operands."""
        plain, read = subject.call_counter, subject.read
        if situation == "jit":
            yield from self._compiled(subject)
            return
        if situation == "after":
            large = [subject.tensor(x, d) for x, d in zip(self.larger, self.dtypes, strict=True)]
            read(self.run(large))
        if situation == "thread":
            with ThreadPoolExecutor(1) as other:
                yield 0, other.submit(lambda: read(self.run(self.operands(subject, plain)))).result()
            return
        given = self.operands(subject, subject.stack if situation == "stack" else plain)
        first = self.run(given)
        if situation == "again":
            yield 0, read(self.run(given))
        if situation == "kept":
            del given
            yield 1, read(self.run(self.operands(subject, plain, 1)))
        yield 0, read(first)

    def _compiled(self, subject: Subject) -> Iterator[tuple[int, Array]]:
        """The results of one program that makes the layouts from its arguments; it has numbers as literals."""
        made = [
            chains.origin(chain_of(name, x.ndim), x)
            for name, x in zip(self.layouts, self.arrays[0], strict=True)
        ]
        numbers = [i for i, name in enumerate(self.layouts) if name == NUMBER]

        def program(*given: Tensor) -> Tensor:
            operands = []
            for i, (x, (source, ops)) in enumerate(zip(given, made, strict=True)):
                operands.append(x.scalar(source.item(0)) if i in numbers else chains.by(x, ops))
            return self.run(operands)

        compiled = tensorken.jit(program)
        for turn in (0,) if numbers else (0, 1):
            sources = [
                chains.origin(chain_of(name, x.ndim), x)[0]
                for name, x in zip(self.layouts, self.arrays[turn], strict=True)
            ]
            given = [
                subject.tensor(x, dtype, subject.stack) for x, dtype in zip(sources, self.dtypes, strict=True)
            ]
            yield turn, subject.read(compiled(*given))
