"""derivatives.spectra: a transform is its own derivative, and the transposed one pulls back its cotangents."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import tensorken as tk
from tensorken_conformance.case import Case, Failure, Measured
from tensorken_conformance.law import law
from tensorken_conformance.laws.derivatives.scenarios import main_dtype
from tensorken_conformance.laws.spectra import NORMS, ONE, SEVERAL, Call
from tensorken_conformance.oracles import terms, transforms
from tensorken_conformance.oracles.bounds import Arithmetic, Array, Dyadic, gamma
from tensorken_conformance.oracles.spectra import OF_REAL, TO_REAL, spectrum
from tensorken_conformance.subject import Subject, parts_of, put_parts
from tensorken_core.language.dtypes import DTYPES
from tensorken_core.tensor.tensor import Tensor

ID = "derivatives.spectra"

CALLS: dict[str, Call] = {
    "even": Call((6,)),
    "odd": Call((5,)),
    "two": Call((2,), (2,)),
    "odd-result": Call((3,), (5,)),
    "padded": Call((3, 2), (8,), (0,)),
    "cropped": Call((7,), (4,)),
}

CALLS_OF_SEVERAL: dict[str, Call] = {"odd": Call((2, 3)), "sizes": Call((2, 3), (4, 4))}


def cases(subject: Subject) -> Iterator[Case]:
    """Each function and call, with one norm; in a smoke run one function."""
    dtype = main_dtype(subject)
    if dtype is None:
        return
    if subject.depth == "smoke":
        yield Case(ID, "rfft", dtype.name, "even", "ortho")
        return
    for name in (*ONE, *SEVERAL):
        for number, call in enumerate(CALLS if name in ONE else CALLS_OF_SEVERAL):
            norms = NORMS if subject.depth == "deep" else NORMS[number % 3 :][:1]
            yield from [Case(ID, name, dtype.name, call, norm) for norm in norms]


def call_of(case: Case) -> Call:
    """The call of a case."""
    return (CALLS if case.op in ONE else CALLS_OF_SEVERAL)[case.shape]


@terms.remembered
def matrix(subject: Subject, case: Case) -> Array:
    """The matrix of a function, from the parts of its operand to the parts of its result, one after the other."""
    call = call_of(case)
    sizes, axes = call.lengths(case.op)
    count = int(np.prod(call.shape))
    basis = np.eye(count * (1 if case.op in OF_REAL else 2), dtype=np.int64).astype(object)
    parts = [basis[:, :count], basis[:, count:] if case.op not in OF_REAL else 0 * basis]
    real, imag = [Dyadic.of(part.reshape(-1, *call.shape)) for part in parts]
    found = spectrum(case.op, real, imag, sizes, [axis + 1 for axis in axes], case.values)
    columns = [part.fractions().astype(float).reshape(len(basis), -1) for part in found.parts]
    return np.concatenate(columns, 1).T


@law(ID, cases, level=3)
def check_spectra(subject: Subject, case: Case) -> Measured:
    """The derivative of a function of tk.fft is the function, and its cotangents are pulled back by the transpose.

    So they are linear, forward and reverse mode agree, also for halves of spectra and their elements at the frequencies
    0 and n/2.  Cotangents of complex numbers pair with tangents to the real part of the product.  The gradient of the
    sum of squared moduli is twice the transpose of the function's value.  Under jit and vmap they are the same.
    """
    rng, call, dtype = terms.generator(subject, case), call_of(case), DTYPES[case.dtype]
    table = matrix(subject, case)
    of_real, to_real = case.op in OF_REAL, case.op in TO_REAL
    unit = Arithmetic(subject.capabilities, case.dtype).unit
    sizes = call.lengths(case.op)[0]
    share = float(gamma(sum([transforms.roundings(n) for n in sizes]) + len(table) + 8, unit))
    size = float(np.linalg.norm(table, 2))

    def drawn(count: int, real: bool) -> list[Array]:
        return list(rng.standard_normal((1 if real else 2, count)).astype(case.dtype))

    def tensor(parts: list[Array], shape: tuple[int, ...]) -> Tensor:
        return put_parts(subject.stack, [part.reshape(shape) for part in parts], dtype)

    def f(x: Tensor) -> Tensor:
        return call.run(case.op, x, case.values)

    worst = 0.0

    def check(name: str, y: Tensor, expected: Array, scale: Any) -> None:
        nonlocal worst
        found = [subject.read(part) for part in parts_of(y)]
        got = np.concatenate([part.reshape(-1) for part in found]).astype(float)
        if got.shape != expected.shape:
            raise Failure(f"{case.op}: {name}: expected {expected.size} parts, got {got.size}")
        off = float(np.linalg.norm(got - expected) / scale)
        if not off <= share:
            raise Failure(
                f"{case.op}: {name}: expected parts {_few(expected)}, got {_few(got)}; "
                f"they differ by {off:.3g} of the norm, at most {share:.3g} is allowed"
            )
        worst = max(worst, off / float(2 * unit))

    count = int(np.prod(call.shape))
    x, t = drawn(count, of_real), drawn(count, of_real)
    at, along = tensor(x, call.shape), tensor(t, call.shape)
    y, pull_back = tk.vjp(f, at)
    v = drawn(y.size, to_real)
    flat, pushed, pulled = [np.concatenate(parts).astype(float) for parts in (x, t, v)]
    check("tangent", tk.jvp(f, (at,), (along,))[1], table @ pushed, size * np.linalg.norm(pushed))
    expected = conjugated(table.T @ conjugated(pulled, to_real), of_real)
    cotangent = tensor(v, y.shape)
    check("cotangent", pull_back(cotangent)[0], expected, size * np.linalg.norm(pulled))
    energy = conjugated(2 * table.T @ (table @ flat), of_real)
    scale = 2 * size**2 * float(np.linalg.norm(flat))
    gradient = tk.grad(lambda x: squared(f(x)))
    check("gradient of the energy", gradient(at), energy, scale)
    check("gradient of the energy under jit", tk.jit(gradient)(at), energy, scale)
    rows = tk.vmap(lambda x: tk.jvp(f, (x,), (x,))[1])(tk.stack([along, at]))
    check("tangent under vmap", rows[1], table @ flat, size * np.linalg.norm(flat))
    return Measured(worst)


def squared(y: Any) -> Any:
    """The sum of the squared moduli."""
    return sum([(part * part).sum() for part in parts_of(y)])


def conjugated(parts: Array, real: bool) -> Array:
    """The parts of the conjugates of complex numbers."""
    if real:
        return parts
    half = parts.size // 2
    return np.concatenate([parts[:half], -parts[half:]])


def _few(x: Array) -> str:
    return f"{[float(f'{v:.6g}') for v in x[:4].tolist()]}{' ...' if x.size > 4 else ''}"
