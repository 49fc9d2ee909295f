"""Laws of shape and dtype rules, for every op: they foretell the result, and refuse before a backend is called."""

from __future__ import annotations

import pickle
import random
from collections import Counter

import pytest

import tensorken as tk
from core.tests.laws.operands import SAMPLES, draw, dtypes_of, over, role_of, takes
from core.tests.support import FUSED, STACKS, Counting, Strict, array
from tensorken.programs.forms.checks import PARAM_CHECKS
from tensorken_core.errors import DTypeError, ShapeError
from tensorken_core.language.dtypes import DTYPES, bool_, int32, int64
from tensorken_core.language.op import OPS, Op, register, run
from tensorken_core.language.raw import RawTensor
from tensorken_core.tensor.tensor import apply
from tensorken_numpy.backend import Numpy

pytestmark = pytest.mark.usefixtures("on_numpy")

ALL = [op for op in OPS.values() if op.higher_order is None]
EACH = pytest.mark.parametrize("op", ALL, ids=lambda op: op.name)

# Which kinds of numbers each op takes, as the specification says it.
FLOAT_ONLY = set(
    "exp log sin cos sqrt floor div pow relu reciprocal round trunc ceil expm1 exp2 sigmoid logaddexp log1p log2 log10 "
    "tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh erf erfinv hypot softplus sech_squared "
    "gaussian to_bits signbit copysign nextafter softmax log_softmax logsumexp norm".split()
)
INT_AND_FLOAT = set(
    "add sub mul sum prod scatter_add neg square abs sign maximum minimum cumsum cumprod fused_multiply_add "
    "remainder convolution matmul".split()
)
INT_ONLY = set(
    "floor_divide bitwise_and bitwise_or bitwise_xor shift_left shift_right from_bits integer_pow "
    "threefry2x32".split()
)
WORDS_OF_32_BITS = {"threefry2x32"}
MATRICES = set(
    "solve triangular_solve inv det slogdet cofactors pinv cholesky qr eigh eigvalsh svd svdvals".split()
)
MATRICES |= {f"complex_{name}" for name in MATRICES} | {"eig", "eigvals", "complex_eig", "complex_eigvals"}
FOURIER = {"fft", "rfft", "irfft"}


def kinds_of(op):
    return {dtype.kind for dtype in dtypes_of(op)}


@pytest.mark.feature(7, 165)
@EACH
def test_each_op_takes_the_kinds_that_the_specification_says(op):
    if op.name in FLOAT_ONLY | MATRICES | FOURIER:
        assert kinds_of(op) == {"float"}
    elif op.name in INT_AND_FLOAT:
        assert kinds_of(op) == {"int", "float"}
    elif op.name in INT_ONLY:
        assert kinds_of(op) == {"int"}
    else:
        assert kinds_of(op) == {"bool", "int", "float"}
    if op.name in WORDS_OF_32_BITS:
        assert list(dtypes_of(op)) == [int32]
    elif op.name in MATRICES | FOURIER:
        assert list(dtypes_of(op)) == [tk.float32, tk.float64]
    elif op.name == "from_bits":
        assert list(dtypes_of(op)) == [int32, int64]
    else:
        assert all(
            takes(op, d) == takes(op, e) for d in DTYPES.values() for e in DTYPES.values() if d.kind == e.kind
        )


@pytest.mark.feature(61, 131)
@over(SAMPLES)
def test_the_rules_predict_shape_and_dtype(op, sample):
    """On a backend that checks shapes, dtypes and params at every call."""
    for dtype in dtypes_of(op):
        for name in ("Fuse(Strict())", "Strict()", "Fuse(Required())"):
            result = apply(op, draw(op, sample, dtype=dtype, backend=STACKS[name]), sample[1])
            for y in (result,) if op.results == 1 else result:
                values = array(y)
                assert (y.shape, str(y.dtype)) == (values.shape, str(values.dtype)), (name, dtype)
                assert y.interpreter.shape(y.representation) == y.shape
                assert y.interpreter.dtype(y.representation) is y.dtype


@pytest.mark.feature(55, 165)
@over(SAMPLES)
def test_a_wrong_dtype_is_refused_before_the_backend_is_called(op, sample):
    backend = Counting()
    shapes, params = sample
    for dtype in DTYPES.values():
        if takes(op, dtype):
            continue
        operands = [
            tk.zeros(
                shape, {"data": dtype, "condition": bool_, "indices": int32}[role_of(op, i)], backend=backend
            )
            for i, shape in enumerate(shapes)
        ]
        backend.clear()
        with pytest.raises(DTypeError, match=rf"^{op.name}: .*; cast"):
            apply(op, operands, params)
        assert not backend.calls
    assert apply(op, draw(op, sample, dtype=next(dtypes_of(op)), backend=backend), params) is not None


@pytest.mark.feature(35, 55)
@over([(op, sample) for op, sample in SAMPLES if len(sample[0]) > 1])
def test_operands_of_two_dtypes_are_refused(op, sample):
    """Promotion happens above the ops: all operands of an op but conditions and indices have one dtype."""
    shapes, params = sample
    data = [i for i in range(len(shapes)) if role_of(op, i) == "data"]
    if len(data) > 1:
        dtypes = list(dtypes_of(op))
        for a, b in zip(dtypes, dtypes[1:] + dtypes[:1], strict=True):
            if a is b:
                continue
            operands = draw(op, sample, dtype=a)
            operands[data[-1]] = tk.zeros(shapes[data[-1]], b)
            with pytest.raises(
                DTypeError, match=rf"^{op.name}: operands need one dtype, got .*; cast them first"
            ):
                apply(op, operands, params)
    for place in (i for i in range(len(shapes)) if role_of(op, i) != "data"):
        right = {bool_} if role_of(op, place) == "condition" else {int32, int64}
        for dtype in set(DTYPES.values()) - right:
            operands = draw(op, sample)
            operands[place] = tk.zeros(shapes[place], dtype)
            with pytest.raises(DTypeError, match=rf"^{op.name}: .* must be .*got {dtype}"):
                apply(op, operands, params)


@pytest.mark.feature(35)
@pytest.mark.parametrize(
    "op", [op for op in ALL if op.elementwise and (op.arity or 0) > 1], ids=lambda op: op.name
)
def test_an_elementwise_op_does_not_broadcast(op):
    """Broadcasting happens above the ops too."""
    dtype = next(dtypes_of(op))
    wide = [tk.zeros((2, 3), bool_ if role_of(op, i) == "condition" else dtype) for i in range(op.arity)]
    for other in ((3,), (2, 1), (), (1, 3), (2, 3, 1), (3, 2)):
        narrow = tk.zeros(other, wide[-1].dtype)
        with pytest.raises(
            ShapeError, match=rf"^{op.name}: operands need one shape, got .*; broadcast them first"
        ):
            apply(op, [*wide[:-1], narrow])


WRONG_PARAMS = {
    "axes": [(2,), (-1,), (0, 0)],
    "axis": [2, -1],
    "shape": [(7,), (2, 3, 4), (-2, -3)],
    "order": [(0,), (0, 0), (1, 2), (0, 1, 2)],
    "pads": [((0, 0),), ((0, 0), (-1, 0)), ((0, 0), (0, 0), (0, 0)), ((1, 0), (0, -1))],
}


@pytest.mark.feature(55)
@pytest.mark.parametrize(
    "op", [op for op in ALL if op.params and op.params[0] in WRONG_PARAMS], ids=lambda op: op.name
)
def test_wrong_params_are_refused_before_the_backend_is_called(op):
    backend = Counting()
    x = tk.zeros((2, 3), backend=backend)
    operands = [x] * (op.arity or 2)
    if "indices" in op.operand_kinds:
        operands[1] = tk.zeros((2,), "int32", backend=backend)
    rest = (3,) if op.name == "scatter_add" else ()
    backend.clear()
    for param in WRONG_PARAMS[op.params[0]]:
        with pytest.raises(ShapeError, match=rf"^{op.name}: "):
            apply(op, operands, (param, *rest))
    assert not backend.calls


@pytest.mark.feature(61)
@EACH
def test_every_op_has_samples_that_its_rules_take(op):
    assert op.samples
    for shapes, params in op.samples:
        assert len(params) == len(op.params)
        assert op.arity is None or len(shapes) == op.arity
        assert isinstance(op.shape(*shapes, *params), tuple)
        hash(params)


@pytest.mark.feature(1, 2, 97, 98)
def test_the_table_is_the_language():
    required = set(
        "exp log sin cos sqrt floor cast add sub mul div pow eq lt floor_divide bitwise_and bitwise_or bitwise_xor "
        "shift_left shift_right to_bits from_bits where sum max reshape permute expand flip pad crop gather "
        "scatter_add".split()
    )
    assert {op.name for op in ALL if op.body is None} == required
    assert all(Numpy().has(OPS[name]) for name in required)
    assert all(op.body is not None for op in ALL if op.name not in required)
    assert not OPS["fused_multiply_add"].differentiable
    assert not hasattr(tk.Tensor, "fused_multiply_add")
    assert all(callable(getattr(RawTensor, op.name)) for op in ALL if op.method)


def test_an_op_is_itself_after_pickling_and_its_name_is_taken():
    for op in ALL:
        assert pickle.loads(pickle.dumps(op)) is op
        assert repr(op) == f"Op({op.name})"
    with pytest.raises(ValueError, match="the op table has an op 'exp' already; give yours another name"):
        register(Op("exp", 1, lambda x: x, lambda x: x))
    with pytest.raises(TypeError, match="the op 'mine' is not in the op table"):
        pickle.dumps(Op("mine", 1, lambda x: x, lambda x: x))


def test_a_backend_that_lacks_a_required_op_says_so():
    class Poor(Strict):
        exp = RawTensor.exp

    x = tk.zeros((2,), backend=Poor())
    with pytest.raises(
        NotImplementedError, match=r"^exp: Poor has no method for it; it is required of a backend"
    ):
        tk.exp(x)
    assert tk.sin(x).tolist() == [0.0, 0.0]


def _changed(sample, rng):
    """A sample changed so that its shapes and params may be inconsistent."""
    shapes, params = [list(shape) for shape in sample[0]], list(sample[1])
    for _ in range(rng.choice((1, 1, 2))):
        shape = rng.choice(shapes) if shapes else []
        match rng.randrange(5):
            case 0 if shape:
                shape[rng.randrange(len(shape))] = rng.randrange(4)
            case 1:
                shape.insert(rng.randrange(len(shape) + 1), rng.randrange(4))
            case 2 if shape:
                del shape[rng.randrange(len(shape))]
            case 3 if params:
                i = rng.randrange(len(params))
                params[i] = _other(params[i], rng)
            case _:
                shapes = [list(shape) if rng.random() < 0.5 else other for other in shapes]
    return tuple([tuple(shape) for shape in shapes]), tuple(params)


def _other(param, rng):
    """Another param of its kind."""
    if isinstance(param, tuple):
        return tuple([_other(p, rng) for p in param[: len(param) - rng.randrange(2)]])
    return rng.randrange(4) if type(param) is int else param


def test_an_op_computes_all_operands_that_its_rules_accept():
    """A rule that takes operands that the op cannot compute with brings a program in a file to an error of numpy's."""
    rng = random.Random(0)
    accepted: Counter[str] = Counter()
    for op, sample in SAMPLES * 20:
        shapes, params = _changed(sample, rng)
        if not all([PARAM_CHECKS[kind](param) for kind, param in zip(op.params, params, strict=True)]):
            continue
        dtype = next(d for d in dtypes_of(op) if d.kind != "float" or d.itemsize > 2)
        dtypes = [bool_ if role_of(op, i) == "condition" else dtype for i in range(len(shapes))]
        dtypes = [int32 if role_of(op, i) == "indices" else d for i, d in enumerate(dtypes)]
        try:
            facts = op.shape(*shapes, *params), op.dtype(*dtypes, *params)
        except (ShapeError, DTypeError):
            continue
        if any([i == "indices" for i in op.operand_kinds]) and 0 in (shapes[0][params[0]], params[-1]):
            continue  # no index is valid for an axis of size 0
        accepted[op.name] += 1
        operands = [tk.zeros(shape, d, backend=FUSED) for shape, d in zip(shapes, dtypes, strict=True)]
        results = run(FUSED, op, [x.representation for x in operands], params)
        expected = [facts] if op.results == 1 else list(zip(*facts, strict=True))
        found = [(FUSED.shape(y), FUSED.dtype(y)) for y in ([results] if op.results == 1 else results)]
        assert found == expected, (op, shapes, params)
    assert accepted.keys() == {op.name for op, _ in SAMPLES}
