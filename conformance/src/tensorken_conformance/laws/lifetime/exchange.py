"""lifetime.exchange: a backend exchanges arrays with other libraries, sharing memory only where it was asked to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tensorken_conformance.case import Case, Failure
from tensorken_conformance.law import law
from tensorken_conformance.laws.lifetime import memory
from tensorken_conformance.laws.lifetime.caller_memory import RESULTS, SHAPES
from tensorken_conformance.oracles import exact
from tensorken_conformance.subject import Array, Subject
from tensorken_core.language.dtypes import DTYPES
from tensorken_core.language.raw import RawTensor
from tensorken_core.rewriting.wrapper import Wrapper
from tensorken_core.tensor.tensor import Tensor

CPU = 1
"""The DLPack type of memory that numpy reads."""

REFUSALS = (BufferError, TypeError, ValueError, RuntimeError)
"""The errors by which libraries refuse an array."""

LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "row-major": lambda a: a,
    "column-major": np.asfortranarray,
    "backwards": np.flip,
    "every other element": lambda a: np.repeat(a, 2, -1)[..., ::2] if a.ndim else a,
    "a repeated element": lambda a: np.broadcast_to(a.reshape(-1)[:1], (3, 2)),
}


def cases(subject: Subject) -> Iterator[Case]:
    """Each way and dtype, for backends that define `export` and `adopt`."""
    raw = subject.backend
    while isinstance(raw, Wrapper):
        raw = raw.raw
    backend = type(raw)
    dtypes = subject.dtypes()[:1] if subject.depth == "smoke" else subject.dtypes()
    for dtype in dtypes:
        for way in ("export", "copy", "share") if backend.export is not RawTensor.export else ():
            yield Case("lifetime.exchange", way, dtype.name)
        if backend.adopt is not RawTensor.adopt:
            yield Case("lifetime.exchange", "foreign", dtype.name)


@law("lifetime.exchange", cases, level=4)
def exchange(subject: Subject, case: Case) -> None:
    """An exported array has the values of its tensor, and a tensor of an array those of the array.

    An adopted copy stays when the array changes; a tensor that shares memory outlives the array.  An array that a
    backend cannot use is refused: `adopt` returns None or raises an error of its library.
    """
    try:
        _exchange(subject, case)
    except Failure as failure:
        failure.script = failure.script or script_of(subject.name, case)
        raise


WAYS = {
    "export": "print(np.from_dlpack(tk.tensor(values).array()))",
    "copy": "source = tk.tensor(values).array(); x = tk.from_dlpack(source, copy=True); a = np.from_dlpack(source); "
    "ctypes.memset(a.ctypes.data, 0, a.nbytes); print(x)",
    "share": "source = tk.tensor(values).array(); x = tk.from_dlpack(source, copy=False); del source; print(x)",
    "foreign": "x = tk.from_dlpack(np.flip(values), copy=True); values[...] = 0; print(x)",
}
"""By a way of exchanging, Python that shows it."""


def script_of(backend: str, case: Case) -> list[str]:
    """Python that exchanges six numbers in the way of a case."""
    numbers = f'np.arange(6).astype("{case.dtype}")'
    if case.dtype == "bfloat16":  # which numpy has not
        numbers = "np.arange(6.0)"
    expected = "np.flip(values)" if case.op == "foreign" else "values"
    imports = f"import ctypes; import numpy as np; import tensorken as tk; tk.use_backend({backend!r})"
    return [imports, f"values = {numbers}; print({expected}.copy())", f"{WAYS[case.op]}  # the same"]


def _exchange(subject: Subject, case: Case) -> None:
    for shape in SHAPES:
        values = np.array(exact.drawn(subject, case, shape))
        x = subject.tensor(values, DTYPES[case.dtype], subject.stack)
        if case.op == "export":
            _export(subject, x, values)
        elif case.op == "copy":
            _copy(subject, x, values)
        elif case.op == "share":
            source = _exported(subject, x)
            shared = _adopted(subject, source, copy=False)
            del x, source
            _check_stays(subject, shared, values, "a tensor that shares memory")
        else:
            for layout, of in LAYOUTS.items():
                for copy in (False, True):
                    _foreign(subject, np.asarray(of(values.copy())), layout, copy)
    if case.op == "foreign":
        _check_refused(subject)


def _exported(subject: Subject, x: Tensor) -> Any:
    array = subject.stack.export(x.representation)
    if array is None:
        raise Failure("export: returns None; leave it undefined if there is no array, else return one always")
    return array


def _adopted(subject: Subject, array: Any, *, copy: bool) -> Tensor:
    representation = subject.stack.adopt(array, copy)
    if representation is None:
        raise Failure(f"adopt(array, copy={copy}): returns None for an array that `export` returned; take it")
    return _tensor(subject, representation)


def _tensor(subject: Subject, representation: Any) -> Tensor:
    shape, dtype = subject.stack.shape(representation), subject.stack.dtype(representation)
    return Tensor(subject.stack, representation, shape, dtype)


def _numbers(subject: Subject, array: Any) -> Array:
    """The elements of an exported array, copied."""
    on_host = array.__dlpack_device__()[0] == CPU
    if on_host and "bfloat16" not in str(array.dtype):  # which numpy does not import
        return np.array(np.from_dlpack(array))
    return subject.read(_adopted(subject, array, copy=False))


def _check_stays(subject: Subject, x: Tensor, values: Array, says: str) -> None:
    """A tensor has these values, also after its memory might have been used again."""
    exact.agree(subject, x, values, says)
    others = [subject.tensor(np.zeros_like(values), x.dtype, subject.stack) for _ in range(8)]
    exact.agree(subject, x, values, f"{says}, after {len(others)} tensors were made")
    exact.agree(subject, x.reshape((values.size,)), values.reshape(-1), f"{says}, reshaped")


def _export(subject: Subject, x: Tensor, values: Array) -> None:
    """Arrays of several tensors keep their values when the tensors are released."""
    tensors = {"other values": subject.tensor(np.flip(values).reshape(values.shape), x.dtype, subject.stack)}
    tensors |= {name: result(x) for name, result in RESULTS.items()}
    expected = {name: subject.read(y) for name, y in tensors.items()}
    arrays = {name: _exported(subject, y) for name, y in tensors.items()}
    tensors.clear()
    made = [subject.tensor(np.zeros_like(values), x.dtype, subject.stack) for _ in range(8)]
    for name, array in arrays.items():
        says = f"export of {x.dtype} {values.shape}, {name}, beside {len(made)} other tensors"
        exact.same(_numbers(subject, array), expected[name], says)


def _copy(subject: Subject, x: Tensor, values: Array) -> None:
    source = _exported(subject, x)
    copied = _adopted(subject, source, copy=True)
    if source.__dlpack_device__()[0] == CPU:
        memory.overwrite(source)
    _check_stays(subject, copied, values, "a copy of an array that was changed")


def _foreign(subject: Subject, source: Array, layout: str, copy: bool) -> None:
    """A numpy array is refused, or its values are read through its strides."""
    try:
        representation = subject.stack.adopt(source, copy)
    except REFUSALS:
        return
    if representation is None:
        return
    expected = np.array(source)
    if copy:
        memory.overwrite(source)
    x = _tensor(subject, representation)
    _check_stays(subject, x, expected, f"adopt(array, copy={copy}) of a numpy array, {layout}")


def _check_refused(subject: Subject) -> None:
    """Arrays without a dtype of the language are refused."""
    for dtype in ("complex64", "datetime64[s]", ">f4"):
        try:
            representation = subject.stack.adopt(np.ones(3, dtype), True)
        except REFUSALS:
            continue
        if representation is not None:
            got = subject.stack.dtype(representation)
            raise Failure(
                f"adopt of a numpy array of dtype {dtype}: need None, got a tensor of {got}; its values would change"
            )
