"""Interop: numpy arrays, DLPack and buffers, in and out: the values are equal, no memory is lost, and it is shared only
where the caller asks for that, or may not write to it.
"""

from __future__ import annotations

import array
import copy
import ctypes
import enum
import gc
import math
import pickle
import subprocess
import sys
import tracemalloc
from typing import Any

import numpy as np
import pytest
import scipy.ndimage
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as npst

import tensorken as tk
from core.tests.each import each_of
from core.tests.threads import together
from tensorken.interchange import dlpack
from tensorken_core.errors import (
    ArgumentError,
    ConcretizationError,
    DTypeError,
    ExchangeError,
    TensorkenError,
)
from tensorken_core.language.op import OPS

DTYPES = (
    "bool",
    "int8",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
)
SHAPES = ((), (1,), (5,), (0,), (2, 3), (2, 0, 3), (1, 4, 1, 2))
BACKENDS = ("numpy", "reference")
TRANSFORMS = {
    "grad": lambda f, x: tk.grad(f)(x),
    "vjp": lambda f, x: tk.vjp(f, x),
    "jvp": lambda f, x: tk.jvp(f, (x,), (x,)),
    "vmap": lambda f, x: tk.vmap(f)(x),
    "grad of vmap": lambda f, x: tk.grad(lambda v: tk.vmap(f)(v).sum())(x),
    "vmap of grad": lambda f, x: tk.vmap(tk.grad(f))(x),
}
WAYS_OUT = {
    "__array__": np.asarray,
    "__dlpack__": lambda x: x.__dlpack__(),
    "__dlpack_device__": lambda x: x.__dlpack_device__(),
}


def values(shape: tuple[int, ...], dtype: str) -> Any:
    """An array that has no two equal neighbours."""
    return (np.arange(np.prod(shape, dtype=int)) % 7 - 3).reshape(shape).astype(dtype)


def equal(found: Any, wanted: Any) -> None:
    """The same dtype, shape and bits."""
    found = np.asarray(found)
    assert (found.dtype, found.shape) == (wanted.dtype.newbyteorder("="), wanted.shape)
    assert found.tobytes() == wanted.astype(found.dtype).tobytes()


class Producer:
    """An object that implements only DLPack, by calling `make`."""

    def __init__(self, make: Any, device: tuple[int, int] = (1, 0)) -> None:
        self.make, self.device, self.asked = make, device, []

    def __dlpack__(self, **asked: Any) -> Any:
        self.asked.append(asked)
        return self.make(**asked)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device


def of_complex32(a: Any) -> Any:
    """A capsule that says that the elements are pairs of halves."""
    capsule = a.__dlpack__()
    tensor = dlpack._Managed.from_address(dlpack._pointer(capsule, b"dltensor")).tensor
    tensor.code, tensor.bits = 5, 32
    return capsule


class Interface:
    """An array that has only `__array_interface__`."""

    def __init__(self, a: Any, **changes: Any) -> None:
        self.owner, self.__array_interface__ = a, {**a.__array_interface__, **changes}


# ---- out ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_numpy_gets_the_values_by_both_protocols(shape, dtype, backend):
    a = values(shape, dtype)
    x = tk.tensor(a, backend=backend)
    equal(np.asarray(x), a)
    equal(np.from_dlpack(x), a)
    equal(np.from_dlpack(Producer(lambda **_: x.__dlpack__())), a)  # the structure from before DLPack 1


@pytest.mark.parametrize("backend", BACKENDS)
def test_numpy_cannot_change_a_tensor(backend):
    x = tk.tensor([[1.0, 2.0], [3.0, 4.0]], backend=backend)
    for view in (x, x.T, x[0], x[:, ::-1], x.broadcast_to((3, 2, 2))):
        before = view.tolist()
        for export in (np.asarray, np.array, np.from_dlpack, lambda x: np.asarray(x, dtype="float32")):
            a = export(view)
            trusts_nobody = export is np.from_dlpack and np.lib.NumpyVersion(np.__version__) < "2.3.0"
            if export is np.array or (export is np.from_dlpack and backend != "numpy" and not trusts_nobody):
                a.fill(7.0)  # a copy
            else:
                assert not a.flags.writeable
            assert view.tolist() == before
            assert x.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_copy_and_dtype_as_numpy_2_has_them():
    x = tk.tensor([1.0, 2.5])
    assert np.array(x, dtype="int64", copy=True).tolist() == [1, 2]
    assert x.__array__(np.dtype("float64")).dtype == np.float64
    assert x.__array__(None).dtype == x.__array__(copy=None).dtype == np.float32
    assert x.__array__("float64").flags.writeable  # a cast copies
    assert x.__array__("float32", copy=True).flags.writeable
    shared = [np.asarray(x), np.asarray(x, copy=False), x.__array__("float32", copy=False)]
    assert all(np.shares_memory(a, shared[0]) and not a.flags.writeable for a in shared)
    assert np.asarray(x.T[::-1], copy=False).tolist() == [2.5, 1.0]
    for call in (
        lambda: np.asarray(x, "float64", copy=False),
        lambda: x.__array__("int32", copy=False),
        lambda: np.asarray(x.to("reference"), copy=False),
        lambda: np.asarray(x + 1j, copy=False),
    ):
        with pytest.raises(ValueError, match=r"^__array__: .* copied.*; leave out copy=False") as caught:
            call()
        assert isinstance(caught.value, ExchangeError)
    equal(np.from_dlpack(x, copy=False), np.array([1.0, 2.5], "float32"))
    with pytest.raises(BufferError, match=r"^__dlpack__: .* copied"):
        np.from_dlpack(x.to("reference"), copy=False)
    equal(np.from_dlpack(x, copy=True), np.array([1.0, 2.5], "float32"))
    equal(np.from_dlpack(x, device="cpu"), np.array([1.0, 2.5], "float32"))


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_function_of_numpy_that_writes_into_a_tensor_is_refused(backend):
    x = tk.zeros((3, 3), "float64", backend=backend)
    for y in (x, x[0], x * 1j, x.T):
        with pytest.raises(ValueError, match="read-only"):
            scipy.ndimage.gaussian_filter(np.ones(y.shape), 1.0, output=y)
        with pytest.raises(ValueError, match="read-only"):
            np.asarray(y)[...] = 1.0
        changed = y.numpy()
        changed[...] = 1.0
    assert x.tolist() == np.zeros((3, 3)).tolist()


def test_arrays_keep_their_values_while_programs_run():
    step = tk.jit(lambda x: (x * 2.0 + 1.0).at[0].set(0.0), donate_argnums=0)
    plain = tk.jit(lambda x: tk.fori_loop(0, 3, lambda i, c: c.at[i].add(x[i]), x))
    x = tk.tensor(np.arange(1000.0))
    seen = []
    for _ in range(5):
        seen.append((np.asarray(x), x.numpy()))
        y = plain(x)
        seen.append((np.asarray(y), y.numpy()))
        x = step(x)
    gc.collect()
    for view, values_then in seen:
        assert view.tolist() == values_then.tolist()


def test_the_arguments_of_dlpack():
    x = tk.tensor([1.0, 2.0], backend="reference")
    assert x.__dlpack_device__() == (1, 0)
    assert "dltensor_versioned" in repr(x.__dlpack__(max_version=(1, 0), dl_device=(1, 0), copy=True))
    assert "dltensor_versioned" in repr(x.__dlpack__(max_version=(2, 3)))
    assert "dltensor_versioned" not in repr(x.__dlpack__(max_version=(0, 8)))
    with pytest.raises(ArgumentError, match=r"^__dlpack__: .*stream must be None, got 1"):
        x.__dlpack__(stream=1)
    with pytest.raises(BufferError, match=r"^__dlpack__: dl_device must be the CPU, \(1, 0\), got \(2, 0\)"):
        x.__dlpack__(dl_device=(2, 0))


def test_the_exported_structure_is_that_of_dlpack_h():
    x = tk.tensor(values((2, 3), "int32"), backend="reference")
    capsule = x.__dlpack__(max_version=(1, 0))
    get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    address = get(capsule, b"dltensor_versioned")
    assert ctypes.string_at(address, 8) == bytes(ctypes.c_uint32(1)) + bytes(ctypes.c_uint32(0))
    flags = ctypes.c_uint64.from_address(address + 24).value
    assert flags == 2  # copied, and not read-only
    data = ctypes.c_uint64.from_address(address + 32).value
    assert data % 256 == 0
    kind = ctypes.string_at(address + 52, 4)
    assert kind == bytes([0, 32]) + bytes(ctypes.c_uint16(1))
    shape, strides = (ctypes.c_uint64.from_address(address + 56 + 8 * i).value for i in (0, 1))
    assert list((ctypes.c_int64 * 2).from_address(shape)) == [2, 3]
    assert list((ctypes.c_int64 * 2).from_address(strides)) == [3, 1]


def test_the_values_outlive_the_tensor():
    a = np.from_dlpack(tk.tensor(values((100,), "float64")))
    gc.collect()
    equal(a, values((100,), "float64"))


@pytest.mark.parametrize("way", WAYS_OUT)
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_a_transform_lets_no_value_out(transform, way):
    inner = transform.split()[-1]
    with pytest.raises(
        ConcretizationError, match=rf"^{way}: this tensor is inside (grad|vjp|jvp|vmap)"
    ) as caught:
        TRANSFORMS[transform](lambda x: (WAYS_OUT[way](x), x.sum())[1], tk.tensor([[1.0, 2.0], [3.0, 4.0]]))
    assert f"inside {inner}" in str(caught.value)
    assert "use Tensorken's functions, or return the tensor first" in str(caught.value)


def test_a_tensor_of_an_outer_transform_is_held_inside_an_inner_one():
    def outer(x: Any) -> Any:
        with pytest.raises(ConcretizationError, match="inside grad"):
            tk.jvp(lambda y: (np.asarray(x), y)[1], (tk.tensor(1.0),), (tk.tensor(1.0),))
        kept = []
        tk.jvp(lambda y: (kept.append(x * y), y)[1], (tk.tensor(1.0),), (tk.tensor(1.0),))
        with pytest.raises(ConcretizationError, match="inside grad"):
            np.asarray(kept[0])  # jvp has returned, but grad still holds it
        return x.sum()

    tk.grad(outer)(tk.tensor([1.0, 2.0]))


def test_after_the_transform_the_value_may_be_read():
    kept = []
    tk.grad(lambda x: (kept.append(x * 2.0), x.sum())[1])(tk.tensor([1.0, 2.0]))
    equal(np.asarray(kept[0]), np.array([2.0, 4.0], "float32"))
    equal(np.from_dlpack(kept[0]), np.array([2.0, 4.0], "float32"))


def test_a_tensor_without_values_raises_an_error():
    for way in (np.asarray, lambda x: x.__dlpack__()):
        with pytest.raises(ConcretizationError, match="string backend has no values"):
            way(tk.symbol("A", (2,)))


# ---- nothing is lost ---------------------------------------------------------------------------------------


@pytest.fixture
def traced():
    """A function that returns the allocated bytes, rounded to 100 000."""
    gc.collect()
    dlpack.release_unclaimed()
    tracemalloc.start()
    try:
        start = tracemalloc.get_traced_memory()[0]
        yield lambda: round((tracemalloc.get_traced_memory()[0] - start) / 1e5)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("versioned", [{"copy": True}, {"copy": True, "max_version": (1, 0)}])
def test_copied_exports_are_freed_whether_or_not_anybody_consumes_them(traced, versioned):
    x = tk.tensor(np.zeros(100_000))  # 8e5 bytes
    assert traced() == 8
    for _ in range(3):
        a = np.from_dlpack(Producer(lambda **_: x.__dlpack__(**versioned)))
        assert traced() == 16
        del a
        assert traced() == 8
        capsule = x.__dlpack__(**versioned)
        assert dlpack.release_unclaimed() == 1
        assert traced() == 16
        del capsule
        x[:1].__dlpack__(copy=True)  # the next export frees unconsumed capsules
        assert traced() == 8
    assert dlpack.release_unclaimed() == 0


def test_exports_are_freed_while_an_exception_is_on_its_way(traced):
    x = tk.tensor(np.zeros(100_000))
    for make in (lambda: x.__dlpack__(copy=True), lambda: np.from_dlpack(x)):
        with pytest.raises(ZeroDivisionError):
            [make(), 1 / 0]
        dlpack.release_unclaimed()
        assert traced() == 8


def test_imports_are_freed(traced):
    source = np.zeros(100_000)
    made = [tk.from_dlpack(source), tk.tensor(Producer(source.__dlpack__)), tk.tensor(Interface(source))]
    assert traced() == 32
    made.clear()
    assert traced() == 8
    with pytest.raises(DTypeError):
        tk.from_dlpack(Producer(lambda **_: of_complex32(np.zeros(100_000))))
    assert traced() == 8


def test_threads_may_export_at_once():
    x = tk.tensor(values((50,), "float64"))
    wrong: list[Any] = []

    def work(_: int) -> None:
        for i in range(300):
            capsule = x.__dlpack__(copy=True)
            if i % 2:
                a = np.from_dlpack(Producer(lambda capsule=capsule, **_: capsule))
                if a.tolist() != values((50,), "float64").tolist():
                    wrong.append(a)

    together(4, work)
    assert not wrong
    assert dlpack.release_unclaimed() == 0


# ---- in ----------------------------------------------------------------------------------------------------

LAYOUTS = {
    "row-major": lambda a: a,
    "column-major": np.asfortranarray,
    "backwards": lambda a: a[tuple([slice(None, None, -1)] * a.ndim)],
    "every other": lambda a: np.repeat(a, 2, axis=-1)[..., ::2],
    "every other backwards": lambda a: np.repeat(a, 2, axis=-1)[..., ::-2],
    "transposed": lambda a: a.T,
    "repeated": lambda a: np.broadcast_to(a, (2, *a.shape)),
}
READERS = {
    "buffer": tk.tensor,
    "tk.from_dlpack": tk.from_dlpack,
    "only __dlpack__": lambda a: tk.tensor(Producer(a.__dlpack__)),
    "only __array_interface__": lambda a: tk.tensor(Interface(a)),
}


@each_of("reader", READERS)
@pytest.mark.parametrize("layout", LAYOUTS)
@each_of("dtype", DTYPES)
def test_arrays_of_every_layout_are_read(dtype, layout, reader):
    for shape in SHAPES[1:]:
        a = LAYOUTS[layout](values(shape, dtype))
        if layout == "repeated" and reader in ("tk.from_dlpack", "only __dlpack__"):
            a = a.copy()  # numpy does not export read-only memory
        equal(READERS[reader](a), a)


@given(st.data())
def test_slices_of_arrays_are_read(data):
    a = values((3, 4, 5), data.draw(st.sampled_from(("int32", "float64", "bool"))))
    a = a.transpose(data.draw(st.permutations((0, 1, 2))))
    part = a[data.draw(npst.basic_indices(a.shape, allow_ellipsis=False))]
    part = np.asarray(part)
    equal(tk.tensor(part), part)
    equal(tk.tensor(Interface(part)), part)
    equal(tk.from_dlpack(part), part)


def test_imported_values_are_copied():
    a = np.arange(4.0)
    b = array.array("d", [0.0, 1.0, 2.0, 3.0])
    made = [read(a) for read in READERS.values()] + [tk.tensor(b), tk.tensor(memoryview(b))]
    a[:] = 7.0
    b[0] = 7.0
    for x in made:
        assert x.tolist() == [0.0, 1.0, 2.0, 3.0]


@pytest.mark.parametrize("backend", BACKENDS)
def test_buffers_of_the_standard_library(backend):
    def read(data: Any, **arguments: Any) -> Any:
        return tk.tensor(data, backend=backend, **arguments)

    equal(read(array.array("i", [1, -2])), np.array([1, -2], "int32"))
    equal(read(array.array("q", [1, -2])), np.array([1, -2], "int64"))
    equal(read(array.array("f", [0.5])), np.array([0.5], "float32"))
    equal(read(array.array("d", [])), np.array([], "float64"))
    equal(read(memoryview(bytes(16)).cast("d", (2, 1))), np.zeros((2, 1)))
    equal(read((ctypes.c_double * 2 * 1)((1.0, 2.0))), np.array([[1.0, 2.0]]))
    equal(read(memoryview(array.array("d", [1.0, 2.0, 3.0]))[::-2]), np.array([3.0, 1.0]))
    equal(read(b"\x01\xff", dtype="int32"), np.array([1, 255], "int32"))
    equal(read(memoryview(b"\x01\x00").cast("?")), np.array([True, False]))


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("dtype", ["i4", "i8", "f2", "f4", "f8"])
def test_both_byte_orders_are_read(dtype, order):
    a = np.array([[1, -2, 3], [250, 5, 6]], order + dtype)
    for x in (a, a.T, a[:, ::-2]):
        equal(tk.tensor(x), x)
        equal(tk.tensor(Interface(x)), x)


def test_read_only_and_odd_arrays():
    a = np.arange(3.0)
    a.flags.writeable = False
    equal(tk.tensor(a), a)
    equal(tk.tensor(Interface(a)), a)
    equal(tk.tensor(np.float64(2.5)), np.array(2.5))
    equal(tk.tensor(np.array(5, "int64")), np.array(5, "int64"))
    odd = np.zeros(3, np.dtype([("a", "i1"), ("b", "f8")]))["b"]  # 9 bytes apart, not aligned
    odd[:] = [1.0, 2.0, 3.0]
    equal(tk.tensor(odd), odd)
    equal(tk.tensor(Interface(odd)), odd)
    windows = np.lib.stride_tricks.sliding_window_view(np.arange(5.0), 3)
    equal(tk.tensor(windows), windows)
    equal(tk.tensor(Interface(windows)), windows)
    raw = np.arange(6.0).tobytes()
    equal(tk.tensor(Interface(np.zeros((2, 2)), data=raw, offset=16)), np.array([[2.0, 3.0], [4.0, 5.0]]))
    assert tk.tensor([np.float32(1.0), 2]).tolist() == [1.0, 2.0]

    class OnlyArray:
        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            return a

    equal(tk.tensor(OnlyArray()), a)
    assert tk.tensor(enum.IntEnum("E", "A B").B).item() == 2


MASKED = np.ma.masked_array([0.0, 1.0, 2.0], mask=[False, True, False])
LIKE = tk.tensor([1.0, 2.0, 3.0], dtype="float64")


@each_of(
    "use",
    [
        lambda a: tk.tensor(a),
        lambda a: tk.tensor(a, dtype="float32"),
        lambda a: tk.asarray(a),
        lambda a: tk.tensor([a, a]),
        lambda a: tk.tensor([[a], [LIKE]]),
        lambda a: tk.new((3,), a),
        lambda a: tk.from_dlpack(a),
        lambda a: LIKE + a,
        lambda a: LIKE @ a,
        lambda a: tk.less(LIKE, a),
        lambda a: LIKE.at[...].set(a),
        lambda a: LIKE[a.astype("int32")],
        lambda a: LIKE[a > 1.0],
        lambda a: LIKE.at[a.astype("int32")].add(1.0),
        lambda a: tk.where(a > 1.0, LIKE, LIKE),
        lambda a: tk.sin(a),
        lambda a: tk.stack([LIKE, a]),
        lambda a: tk.take(LIKE, a.astype("int64")),
        lambda a: tk.jit(lambda tree: tree["a"] * 2.0)({"a": a}),
        lambda a: tk.jit(lambda x: x * a)(LIKE),
        lambda a: tk.grad(lambda x: x.sum())(a),
        lambda a: tk.vmap(lambda x: x * 2.0)(a),
        lambda a: tk.trace(lambda x: x * 2.0)(LIKE)(a),
        lambda a: tk.scan(lambda carry, x: (carry + x, x), 0.0, a),
    ],
)
def test_a_masked_array_is_refused_with_a_way_out(use):
    """Also an array without masked elements, since this may depend on the data."""
    for masked in (MASKED, np.ma.masked_array([0.0, 1.0, 2.0])):
        with pytest.raises(
            TensorkenError, match=r"has a mask.* pass x\.filled\(value\), or x\.data and x\.mask as two"
        ):
            use(masked)
    use(MASKED.filled(0.0))


def test_a_masked_element_is_refused():
    with pytest.raises(DTypeError, match=r"MaskedConstant has a mask"):
        tk.tensor([1.0, np.ma.masked])


@each_of(
    ("odd", "way_out"),
    [
        (np.array([(1, 2.0)], dtype=[("a", int), ("b", float)]), r"pass each field by itself, x\['name'\]"),
        (
            np.array(["2020-01-01"], dtype="datetime64[D]"),
            r"count the days or seconds with x\.astype\('int64'\)",
        ),
        (np.datetime64("2020-01-01"), "count the days or seconds"),
        (np.timedelta64(3, "D"), "count the days or seconds"),
        (np.array([1, None], dtype=object), r"convert its elements with x\.astype\('float64'\)"),
        (np.array(["text"]), "encode the text as numbers"),
        (np.array([b"text"]), "encode the text as numbers"),
    ],
)
def test_arrays_without_numbers_are_refused_with_a_way_out(odd, way_out):
    for use in (
        lambda: tk.tensor(odd),
        lambda: tk.tensor(odd, dtype="int32"),
        lambda: tk.tensor([odd]),
        lambda: tk.jit(lambda x: x)(odd),
        lambda: LIKE + odd,
        lambda: LIKE.at[0].set(odd),
    ):
        with pytest.raises(TypeError, match=rf"cannot make a tensor of \w+ of dtype .*; {way_out}"):
            use()


def test_elements_are_converted_to_a_dtype():
    a = np.array([[1, 2], [3, 200]], "uint8")
    for data in (a, Interface(a), Producer(a.__dlpack__)):
        equal(tk.tensor(data), a)
        equal(tk.tensor(data, dtype="int32"), a.astype("int32"))


@each_of("backend", BACKENDS)
def test_bfloat16_is_exchanged_as_the_numbers_of_ml_dtypes(backend):
    """numpy has no buffers of it, and no DLPack; NaN keeps its sign, and subnormal numbers and zeros are exact."""
    a = np.array([[1.5, -2.0, np.inf], [3.0e38, -np.nan, -0.0], [2.0**-126, 2.0**-133, -1 / 3]], "bfloat16")
    x = tk.tensor(a, backend=backend)
    assert (x.dtype, x.shape) == (tk.bfloat16, (3, 3))
    bits = [np.int32(n) for n in a.view("int16").reshape(-1)]
    again = [x, tk.asarray(a, backend=backend), tk.tensor(Producer(x.__dlpack__), backend=backend)]
    again += [tk.from_dlpack(Producer(lambda **_: x.__dlpack__()), backend=backend), copy.deepcopy(x)]
    again += [pickle.loads(pickle.dumps(x)), tk.frombuffer(a.tobytes(), tk.bfloat16, backend=backend)]
    for y in again:
        assert y.dtype is tk.bfloat16
        assert y.reshape(9).apply(OPS["to_bits"]).tolist() == bits
        assert np.asarray(y).tobytes() == a.tobytes()
    for view in (a.T, a[::2, ::-1], np.broadcast_to(a[:, 1:2], (3, 4)), a[1, 0], a[:0]):
        assert np.asarray(tk.tensor(view, backend=backend)).tobytes() == view.tobytes()
        equal(tk.tensor(view, dtype="float64", backend=backend), view.astype("float64"))
    managed = dlpack._Managed.from_address(dlpack._pointer(capsule := x.__dlpack__(), b"dltensor"))
    assert (managed.tensor.code, managed.tensor.bits, managed.tensor.lanes) == (4, 16, 1)
    del capsule


def test_without_ml_dtypes_there_is_one_line_that_names_the_remedy():
    program = """
import sys
sys.modules["ml_dtypes"] = None
import tensorken as tk
for use in (lambda: tk.tensor([1.5], dtype="bfloat16", backend="numpy"), lambda: tk.ones(2).astype(tk.bfloat16),
            lambda: tk.random.normal(tk.random.key(0), (2,), "bfloat16"),
            lambda: __import__("numpy").asarray(tk.ones(2, "bfloat16", backend="reference"))):
    try:
        use()
    except (TypeError, ValueError) as error:
        print(str(error).splitlines()[0])
print((tk.ones(3) * 2).sum().item(), "bfloat16" in tk.ones(1).interpreter.capabilities.dtypes)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    remedy = "the backend numpy has no bfloat16; pip install 'tensorken-numpy[bfloat16]'"
    assert done.stdout.splitlines() == [
        *[f"{name}: {remedy}" for name in ("tensor", "astype", "normal")],
        "__array__: numpy has no bfloat16 without ml_dtypes; run pip install ml_dtypes, or cast it (x.astype)",
        "6.0 False",
    ]


def test_values_may_start_at_an_offset_and_are_owned_by_the_capsule():
    def offset(**_: Any) -> Any:
        capsule = tk.tensor([1.0, 2.0, 3.0]).__dlpack__()
        tensor = dlpack._Managed.from_address(dlpack._pointer(capsule, b"dltensor")).tensor
        tensor.byte_offset = 4
        ctypes.c_int64.from_address(tensor.shape).value = 2
        return capsule

    equal(tk.from_dlpack(Producer(offset)), np.array([2.0, 3.0], "float32"))
    owned = Producer(lambda **_: values((1000,), "int64").__dlpack__())
    for _ in range(10):
        equal(tk.from_dlpack(owned), values((1000,), "int64"))
        equal(tk.tensor(owned), values((1000,), "int64"))


def test_unsupported_dlpack_imports_are_errors():
    a = np.arange(3.0)
    with pytest.raises(ArgumentError, match=r"^from_dlpack: need an array with __dlpack__ .*got 3"):
        tk.from_dlpack(3)
    with pytest.raises(DTypeError, match=r"^from_dlpack: there is no dtype for complex32"):
        tk.from_dlpack(Producer(lambda **_: of_complex32(a)))
    with pytest.raises(BufferError, match=r"^from_dlpack: ndarray cannot be exported by DLPack"):
        tk.from_dlpack(np.array(["2020-01-01"], "datetime64[D]"))
    with pytest.raises(BufferError, match=r"^from_dlpack: cannot avoid a copy .*; leave out copy=False"):
        tk.from_dlpack(a, copy=False, backend="reference")
    with pytest.raises(BufferError, match=r"^from_dlpack: need an unused DLPack capsule, got object"):
        tk.from_dlpack(Producer(lambda **_: object()))
    capsule = a.__dlpack__()
    np.from_dlpack(Producer(lambda **_: capsule))
    with pytest.raises(ExchangeError, match="each can be consumed once"):
        tk.from_dlpack(Producer(lambda **_: capsule))

    def refuse(**_: Any) -> Any:
        raise RuntimeError("it needs a gradient")

    with pytest.raises(ExchangeError, match=r"Producer cannot be exported by DLPack: it needs a gradient"):
        tk.tensor(Producer(refuse))


def test_a_producer_from_before_dlpack_1_and_one_on_another_device():
    a = np.arange(3.0)

    class Old:
        def __dlpack__(self, stream: Any = None) -> Any:
            return a.__dlpack__()

        def __dlpack_device__(self) -> tuple[int, int]:
            return (1, 0)

    equal(tk.from_dlpack(Old()), a)
    elsewhere = Producer(lambda **_: a.__dlpack__(), device=(2, 0))
    equal(tk.from_dlpack(elsewhere), a)
    assert elsewhere.asked == [{"max_version": (1, 0), "dl_device": (1, 0)}]

    capsule = tk.tensor([1.0]).__dlpack__()
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )(capsule, b"dltensor")
    ctypes.c_int32.from_address(pointer + 8).value = 2  # as if the memory were a GPU's
    with pytest.raises(BufferError, match=r"device of DLPack type 2, need the CPU"):
        tk.from_dlpack(Producer(lambda **_: capsule))


def test_tensors_pass_through_and_between_backends():
    x = tk.tensor(values((2, 3), "float64"))
    assert tk.from_dlpack(x) is x
    y = tk.from_dlpack(x, backend="reference")
    assert (y.backend, y.tolist()) == ("reference", x.tolist())
    z = tk.from_dlpack(Producer(y.__dlpack__), device="cpu")  # no numpy on either side
    assert (z.backend, z.tolist()) == (x.backend, x.tolist())


def test_to_device():
    x = tk.tensor([1.0])
    assert x.to_device(x.device) is x
    assert x.to_device("cpu", stream=None).tolist() == [1.0]
    with pytest.raises(tk.errors.BackendError, match=r"no device 'gpu'; its devices are cpu"):
        x.to_device("gpu")
    with pytest.raises(ArgumentError, match=r"^to_device: .*got stream=3; leave it out"):
        x.to_device("cpu", stream=3)
    assert tk.grad(lambda x: x.to_device("cpu").sum())(x).tolist() == [1.0]


# ---- shared memory -------------------------------------------------------------------------------------------


@each_of("dtype", DTYPES)
def test_numpy_gets_a_pointer_to_the_memory_of_a_tensor(dtype):
    for shape in SHAPES:
        x = tk.tensor(values(shape, dtype))
        for view in (x, x.T, x[..., ::-1] if shape else x):
            own = view.array()
            equal(own, np.asarray(view))
            for a in (own, np.from_dlpack(view)):
                assert a.ctypes.data == own.ctypes.data
                assert not a.flags.writeable


def test_a_shared_export_outlives_its_tensor_and_is_freed(traced):
    for export in (np.from_dlpack, lambda x: x.array(), lambda x: np.from_dlpack(Producer(x.__dlpack__))):
        x = tk.tensor(np.zeros(100_000)) + 1.0
        a = export(x)
        assert traced() == 8  # no copy
        del x
        gc.collect()
        assert traced() == 8
        equal(a, np.ones(100_000))
        del a
        assert traced() == 0


def test_a_donated_tensor_that_is_exported_keeps_its_values():
    update = tk.jit(lambda x: x + 1.0, donate_argnums=0)
    for export in (np.from_dlpack, lambda x: x.array()):
        for _ in range(3):
            x = tk.tensor(np.zeros(100_000)) * 2.0
            a = export(x)
            y = update(x)
            equal(a, np.zeros(100_000))
            equal(np.asarray(y), np.ones(100_000))


SHARING = {
    "from_dlpack": lambda a: tk.from_dlpack(a, copy=False),
    "asarray": lambda a: tk.asarray(a, copy=False),
    "another library": lambda a: tk.from_dlpack(Producer(a.__dlpack__), copy=False),
}


@each_of("share", SHARING)
@pytest.mark.parametrize("layout", LAYOUTS)
@each_of("dtype", DTYPES)
def test_the_memory_of_an_array_is_shared_if_the_caller_asks_for_it(dtype, layout, share):
    for shape in SHAPES[1:]:
        a = LAYOUTS[layout](values(shape, dtype))
        if layout == "repeated" and share == "another library":
            continue  # version 0 of DLPack has no read-only memory
        x = SHARING[share](a)
        assert x.array().ctypes.data == a.ctypes.data
        equal(x, a)
        equal(x.sum(0), np.asarray(tk.tensor(a).sum(0)))


def test_shared_memory_outlives_its_exporter(traced):
    for share in SHARING.values():
        a = np.zeros(100_000)
        x = share(a)
        assert traced() == 8  # no copy
        del a
        gc.collect()
        equal(x + 1.0, np.ones(100_000))
        del x
        assert traced() == 0


def test_a_file_is_mapped_and_read_where_it_is_used(tmp_path):
    file = tmp_path / "weights"
    file.write_bytes(np.arange(6.0).tobytes())
    mapped = np.memmap(file, "float64", "r", shape=(2, 3))
    x = tk.asarray(mapped, copy=False)
    assert x.array().ctypes.data == mapped.ctypes.data
    equal(x * 2.0, np.arange(6.0).reshape(2, 3) * 2.0)


def test_memory_that_cannot_be_shared_is_an_error():
    a = np.arange(3.0)
    for call, name in ((tk.from_dlpack, "from_dlpack"), (tk.asarray, "asarray")):
        for x, arguments in ((a, {"backend": "reference"}), (a.astype(">f8"), {})):
            with pytest.raises(BufferError, match=rf"^{name}: cannot avoid a copy"):
                call(x, copy=False, **arguments)
        with pytest.raises(
            DTypeError, match=rf"^{name}: masked_array has a mask|^{name}: MaskedArray has a mask"
        ):
            call(MASKED, copy=False)
    for x, dtype in ((a, "float32"), ([1.0, 2.0], None), (array.array("d", [1.0]), None)):
        with pytest.raises(BufferError, match=r"^asarray: cannot avoid a copy"):
            tk.asarray(x, dtype, copy=False)
    with pytest.raises(
        ExchangeError, match=r"^array: the backend reference has no arrays .*; use numpy.asarray"
    ):
        tk.tensor(a, backend="reference").array()
    with pytest.raises(ConcretizationError, match=r"^array: this tensor is inside grad"):
        tk.grad(lambda x: (x.array(), x.sum())[1])(tk.tensor([1.0]))


def test_functions_of_numpy_run_those_of_tensorken():
    x = tk.tensor([[1.0, 2.0], [3.0, 4.0]], backend="reference")
    for result, expected in (
        (np.sum(x, axis=0), [4.0, 6.0]),
        (np.concatenate([x, x], axis=1), [[1.0, 2.0, 1.0, 2.0], [3.0, 4.0, 3.0, 4.0]]),
        (np.linalg.norm(x[0]), math.sqrt(5.0)),
        (np.where(x > 2.0, x, 0.0), [[0.0, 0.0], [3.0, 4.0]]),
    ):
        assert isinstance(result, tk.Tensor) and result.backend == "reference"
        np.testing.assert_allclose(result.numpy(), expected, rtol=1e-6)
    assert tk.grad(lambda x: np.sum(x, axis=None))(x).tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert isinstance(np.array2string(x), str)  # there is no function of this name
    heights, objects = np.broadcast_arrays(x, None)  # as matplotlib's `bar` calls it
    assert heights.tolist() == x.tolist() and objects.dtype == object
    with pytest.raises(ConcretizationError, match=r"^__array__: this tensor is inside grad"):
        tk.grad(lambda x: (np.array2string(x), x.sum())[1])(x)


def test_nbytes_and_numpy():
    x = tk.zeros((2, 3), "float64")
    assert x.nbytes == x.numpy().nbytes == 48
    assert x.numpy().flags.writeable
