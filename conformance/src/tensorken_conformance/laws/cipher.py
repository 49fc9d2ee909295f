"""values.cipher: the bits behind random numbers are those of Threefry-2x32 with 20 rounds."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorken_conformance.case import Case
from tensorken_conformance.law import law
from tensorken_conformance.layouts import shapes
from tensorken_conformance.oracles import exact
from tensorken_conformance.subject import Array, Subject
from tensorken_core.language.dtypes import int32
from tensorken_core.language.op import OPS
from tensorken_core.language.shapes import Shape

KNOWN: dict[str, tuple[int, ...]] = {
    "zeros": (0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x6B200159, 0x99BA4EFE),
    "ones": (0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0x1CB996FC, 0xBB002BE7),
    "pi": (0x13198A2E, 0x03707344, 0x243F6A88, 0x85A308D3, 0xC4923A9C, 0x483DF7A0),
}
"""Key, counter and result, two words each: the known answers for threefry2x32 with 20 rounds that Random123 comes with
(`tests/kat_vectors`, which names the counter first).

J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
"""

MASK = 0xFFFFFFFF

SHAPES: dict[str, Shape] = {
    "one": (2,),
    "pair": (2, 2),
    "small": (3, 2),
    "cube": (3, 4, 2),
    "empty": (0, 2),
    "high-rank": (1, 2, 1, 3, 2),
    **{str(n): (n, 2) for n in (63, 64, 65, 127, 128, 129, 65_535, 65_537)},
}


LONG = ("65535", "65537")
"""The shapes that are tried with ordinary values alone: around 2**16 pairs."""


def threefry(key: tuple[Any, Any], counter: tuple[Any, Any]) -> tuple[Any, Any]:
    """The cipher in Python's integers, or in arrays of uint64, written from the paper's figure.

    >>> [hex(word) for word in threefry((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3))]
    ['0xc4923a9c', '0x483df7a0']
    """
    schedule = (key[0], key[1], key[0] ^ key[1] ^ 0x1BD11BDA)
    x, y = (counter[0] + schedule[0]) & MASK, (counter[1] + schedule[1]) & MASK
    for number in range(20):
        turn = (13, 15, 26, 6, 17, 29, 16, 24)[number % 8]
        x = (x + y) & MASK
        y = ((y << turn | y >> (32 - turn)) & MASK) ^ x
        if number % 4 == 3:
            step = number // 4 + 1
            x, y = (x + schedule[step % 3]) & MASK, (y + schedule[(step + 1) % 3] + step) & MASK
    return x, y


@functools.cache
def answers(key: bytes, counter: bytes) -> bytes:
    """The cipher on pairs of words, as bytes."""
    k, c = [np.frombuffer(data, "uint32").astype("uint64").reshape(-1, 2).T for data in (key, counter)]
    return np.stack(threefry((k[0], k[1]), (c[0], c[1])), 1).astype("uint32").tobytes()


def words(*numbers: int) -> Array:
    """32-bit words as the int32 with the same bits."""
    return np.array(numbers, "uint32").view("int32")


def operands_of(subject: Subject, case: Case) -> tuple[Array, Array]:
    """The keys and the counters of a case."""
    if case.detail in KNOWN:
        known = KNOWN[case.detail]
        return words(*known[:2]), words(*known[2:4])
    if case.detail.startswith(("key-bit-", "counter-bit-")):
        bit = 1 << int(case.detail.rpartition("-")[2])
        pair = words(bit >> 32, bit & MASK)
        return (pair, words(0, 0)) if case.detail.startswith("key") else (words(0, 0), pair)
    shape = SHAPES.get(case.shape) or (*shapes.class_of(case.shape).shape[:-1], 2)
    rng = np.random.default_rng([subject.seed, *case.id.encode()])
    key, counter = rng.integers(-(2**31), 2**31, (2, *shape), "int32")
    if case.values == "special":
        key, counter = rng.choice(words(0, MASK, 1, 1 << 31, MASK >> 1), (2, *shape))
    if case.detail == "one-key":
        key = np.array(np.broadcast_to(key[:1], shape))
    if case.detail == "equal-words":
        key = np.array(np.broadcast_to(key[..., :1], shape))
    return shapes.fitted(case.shape, key) if case.detail == "view" else key, counter


def cases(subject: Subject) -> Iterator[Case]:
    """The known answers, each bit of keys and counters alone, and shapes, some with keys that are views."""
    if "int32" not in subject.capabilities.dtypes:
        return
    for detail in KNOWN:
        yield Case("values.cipher", "threefry2x32", "int32", "one", "", detail)
        if subject.depth == "smoke":
            return
    for what in ("key", "counter"):
        for bit in range(64):
            yield Case("values.cipher", "threefry2x32", "int32", "one", "", f"{what}-bit-{bit}")
    for values in exact.VALUES:
        for shape in SHAPES if values == "ordinary" else [name for name in SHAPES if name not in LONG]:
            for detail in ("", "one-key", "equal-words"):
                yield Case("values.cipher", "threefry2x32", "int32", shape, values, detail)
        for shape in (*shapes.SHAPES, *shapes.VIEWS):
            kind = shapes.class_of(shape)
            if kind.movement and kind.shape[-1] == 2 and exact.makes(subject, shape, int32):
                yield Case("values.cipher", "threefry2x32", "int32", shape, values, "view")


@law("values.cipher", cases, level=2, needs=exact.needs_of)
def cipher(subject: Subject, case: Case) -> None:
    """Threefry-2x32 with 20 rounds gives the published answers, and those of its definition in integers.

    Keys may be views: one key for all counters, words that are one word, repeated.
    """
    key, counter = operands_of(subject, case)
    expected = np.frombuffer(answers(key.tobytes(), counter.tobytes()), "int32").reshape(key.shape)
    shape = case.shape if case.detail == "view" else ""
    if case.detail in KNOWN and expected.tobytes() != words(*KNOWN[case.detail][4:]).tobytes():
        raise AssertionError(f"threefry: the definition does not give the known answer {case.detail!r}")
    keys = shapes.operand(subject, shape, key, int32)
    if case.detail == "equal-words":  # each word once
        keys = subject.run(OPS["expand"], [subject.tensor(key[..., :1], int32)], (key.shape,))
    y = subject.run(OPS["threefry2x32"], [keys, subject.tensor(counter, int32)], ())
    script = functools.partial(
        exact.script_of, subject, [("threefry2x32", ())], [key, counter], expected, shape
    )
    exact.agree(subject, y, expected, f"threefry2x32 of {key.shape[:-1]} pairs of words", script)
