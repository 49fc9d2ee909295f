"""Every public function of arrays on complex tensors: numpy's result, eager, compiled and batched, or a refusal."""

from __future__ import annotations

import re
from types import EllipsisType
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import tensorken as tk
from core.tests.drawing import Array
from core.tests.each import each_of
from plugins.tensorken.tests.namespace.laws import quiet
from tensorken_core.errors import ArgumentError, ConcretizationError, DTypeError

pytestmark = [pytest.mark.usefixtures("on_numpy"), pytest.mark.slow]

TOLERANCE = {"complex64": 3e-5, "complex128": 1e-9}
NAN, INF = np.nan, np.inf

CALLS = {
    "{}(z)": """abs absolute acos acosh all angle any arccos arccosh arcsin arcsinh arctan arctanh argsort argwhere
        around array asarray asin asinh astype_ atan atanh atleast_1d atleast_2d atleast_3d average conj conjugate copy
        corrcoef cos cosh count_nonzero cov cumprod cumsum cumulative_prod cumulative_sum deg2rad degrees diag diagflat
        diff ediff1d exp exp2 expm1 fabs flatnonzero flatten flip flipud gradient imag iscomplex iscomplexobj isfinite
        isinf isnan isreal isrealobj log log10 log1p log2 logical_not mean median nan_to_num nancumprod nancumsum
        nanmean nanmedian nanprod nanstd nansum nanvar ndim negative nonzero norm ones_like poly polyder polyint
        positive prod rad2deg radians ravel real reciprocal roots round sigmoid sign silu sin sinc sinh size shape
        soft_sign sort sqrt square squeeze std stop_gradient sum swish tan tanh transpose trapezoid trim_zeros unique
        unstack vander var zeros_like block isscalar iterable fft.fft fft.ifft fft.irfft fft.hfft fft.fftshift
        fft.ifftshift linalg.norm linalg.vector_norm matrix_transpose_ rint""",
    "{}(z, w)": """add allclose append array_equal array_equiv convolve correlate divide dot equal float_power inner
        intersect1d isclose isin kron logical_and logical_or logical_xor multiply not_equal outer polyadd polymul
        polysub polyval pow power setdiff1d setxor1d subtract true_divide union1d vdot vecdot broadcast_arrays cov
        corrcoef linspace logspace linalg.outer linalg.vecdot""",
    "{}(z[:3], w[:3])": "cross linalg.cross polydiv",
    "{}(r, z)": """add subtract multiply divide power equal append convolve correlate isclose allclose polyval cov dot
        outer float_power not_equal""",
    "{}(z, r)": "add subtract multiply divide power isclose convolve correlate float_power cov corrcoef trapezoid",
    "{}(z, m.cumsum(abs_r))": "gradient trapezoid",
    "{}(a)": """all any argsort average corrcoef cov count_nonzero cumprod cumsum diag diagonal fliplr flipud flip
        matrix_transpose mean median nonzero argwhere prod rot90 sort std sum tril triu var transpose unstack gradient
        trapezoid ravel linalg.pinv linalg.svdvals linalg.matrix_norm linalg.norm linalg.matrix_rank linalg.cond
        fft.fft2 fft.ifft2 fft.fftn fft.ifftn fft.irfft2 fft.irfftn linalg.diagonal linalg.matrix_transpose
        linalg.trace tril_indices_from triu_indices_from""",
    "{}(a, axis=0)": """all any argsort average count_nonzero cumprod cumsum diff mean median prod sort std sum var
        nanmean nansum nanprod nanvar nanstd nancumsum nancumprod nanmedian trapezoid gradient flip norm unstack
        cumulative_sum cumulative_prod fft.fft fft.irfft fft.hfft linalg.norm linalg.vector_norm""",
    "{}(a, where=mask)": "all any sum prod mean var std nansum nanprod nanmean nanvar nanstd",
    "{}(a, axis=1, where=mask)": "all any sum prod mean var std nansum nanprod nanmean nanvar nanstd",
    "{}(a, axis=1, ddof=1)": "var std nanvar nanstd",
    "{}(a, ddof=0)": "cov",
    "{}(a, rowvar=False)": "cov corrcoef",
    "{}(a, fweights=fw, aweights=m.abs(r[:4]))": "cov",
    "{}(a, axis=1, keepdims=True)": "sum prod mean var std nansum nanmean median all any average",
    "{}(a, initial=2j)": "sum prod nansum nanprod",
    "{}(a, initial=2j, where=mask)": "sum prod",
    "{}(a, b)": "array_equal allclose isclose logical_and inner cov vecdot linalg.vecdot kron tensordot_",
    "{}(s)": """linalg.det linalg.expm linalg.inv linalg.slogdet linalg.matrix_norm linalg.cond linalg.matrix_rank
        diag_indices_from""",
    "m.sort(m.{}(s))": "linalg.eigvals",
    "m.sort(m.{}(s)[0])": "linalg.eig",
    "m.abs(m.{}(a)[1])": "linalg.svd linalg.qr",
    "m.{}(s @ s.conj().T)": "linalg.eigvalsh linalg.cholesky",
    "m.{}(s @ s.conj().T)[0]": "linalg.eigh",
    "{}(s, t)": "matmul dot linalg.solve linalg.matmul linalg.tensordot tensordot linalg.solve_triangular",
    "{}(a, b[:, 0])[0]": "linalg.lstsq",
    "{}(s.reshape(3, 1, 3))": "linalg.tensorinv_",
    "{}(s, z[:3])": "matvec linalg.solve dot matmul linalg.tensorsolve",
    "{}(z[:3], s)": "vecmat dot matmul",
    "{}(s, 3)": "linalg.matrix_power",
    "{}(s, -2)": "linalg.matrix_power",
    "{}([s, t, s])": "linalg.multi_dot",
    "{}(gap)": """abs all angle any argsort count_nonzero cumsum iscomplex isfinite isinf isnan isreal logical_not mean
        median nan_to_num nancumprod nancumsum nanmean nanmedian nanprod nanstd nansum nanvar nonzero prod round sort
        std sum unique_counts unique_inverse unique_all var""",
    "m.isnan(m.{}(gap))": "unique",  # which NaN stands for all is not specified
    "{}(gap, equal_nan=False)": "unique",
    "{}(gaps, axis=1)": """nansum nanprod nanmean nanvar nanstd nancumsum nancumprod nanmedian sort argsort""",
    "{}(gap, gap)": "equal isclose allclose array_equal logical_and isin not_equal",
    "m.isnan(m.{}(gap, gap))": "setdiff1d union1d intersect1d setxor1d",
    "{}(gap, gap, equal_nan=True)": "isclose allclose array_equal",
    "{}(m.sort(gap), gap)": "searchsorted",
    "{}(m.sort(gap), gap, side='right')": "searchsorted",
    "{}(ends, ends)": "equal isclose allclose array_equal subtract",
    "{}(ends)": "nan_to_num isinf isfinite isnan abs angle sign sort round sum",
    "{}(ends, nan=5.0, posinf=9.0, neginf=-7.0)": "nan_to_num",
    "{}(ties)": """sort argsort unique unique_all unique_counts unique_inverse median nonzero count_nonzero
        trim_zeros""",
    "m.sort(m.{}(ties))": "unique_values",
    "{}(ties, ties)": "isin setdiff1d union1d intersect1d setxor1d equal",
    "{}(m.sort(ties), ties)": "searchsorted",
    "{}(m.sort(ties), ties, side='right')": "searchsorted",
    "{}(ties, ties, sorter=m.argsort(ties))": "searchsorted",
    "m.{}(ties, 3)[3]": "partition",
    "ties[m.{}(ties, 3)][3]": "argpartition",
    "m.{}(ties, 2)[0]": "topk",
    "{}([z, w])": "lexsort broadcast_arrays_",
    "{}(z, 2)": """round around roll repeat tile resize power float_power polyder polyint vander array_split diag
        diagflat diff""",
    "{}(r, m.sort(r), z)": "interp",
    "{}(r, m.sort(r), z, left=2j, right=1.0)": "interp",
    "{}(r, r, z, period=2.0)": "interp",
    "{}(r, z, 1)": "polyfit",
    "{}(pick, z, w)": "where",
    "{}(pick, z, r)": "where",
    "{}(pick, z)": "compress extract",
    "{}(z, i)": "take",
    "{}(a, i, 0)": "take",
    "{}(z, 1, 2j)": "insert",
    "{}(z, 1)": "delete",
    "{}(a, 0, 1)": "swapaxes moveaxis rollaxis",
    "{}(a, 1)": "expand_dims tril triu diagonal roll repeat",
    "{}(a, (4, 3))": "reshape resize",
    "{}(a, (1, 0))": "permute_dims",
    "{}(a, ((1, 0), (2, 1)))": "pad",
    "{}(a, (3, 3, 4))": "broadcast_to",
    "{}('ij,kj->ik', a, b)": "einsum",
    "{}([a, b])": "concatenate concat stack vstack hstack dstack column_stack block",
    "{}([a, b], axis=1)": "concatenate stack",
    "{}(a, 3)": "vsplit split array_split",
    "{}(a, 2)": "hsplit",
    "{}(s.reshape(3, 1, 3), 3)": "dsplit",
    "{}(z, weights=m.abs(w))": "average",
    "{}(z, weights=w)": "average",
    "{}(i, weights=z[:3])": "bincount",
    "{}(r, bins=3, weights=z)": "histogram",
    "{}(i, [s[0], t[0], s[1]])": "choose",
    "{}(z, [pick, ~pick], [1j, 2.0])": "piecewise",
    "{}([pick], [z])": "select",
    "{}([pick], [z], 1j)": "select",
    "{}(a, i[None, :], 0)": "take_along_axis_",
    "{}(m.sum, a, (0,))": "apply_over_axes",
    "{}(m.sum, 0, a)": "apply_along_axis",
    "{}(a, 'bool')": "astype",
    "{}(z, 2j)": "full_like",
    "{}(z, 7)": "fft.fft fft.ifft fft.irfft fft.hfft",
    "{}(z, ord=1)": "linalg.norm linalg.vector_norm norm",
    "{}(z, ord=0)": "linalg.norm linalg.vector_norm",
    "{}(z, ord=m.inf)": "linalg.norm linalg.vector_norm",
    "{}(s, ord='nuc')": "linalg.norm linalg.matrix_norm",
    "{}(s, ord=2)": "linalg.norm linalg.matrix_norm",
    "{}(s, ord=1)": "linalg.norm linalg.matrix_norm",
    "{}(s, 'fro')": "linalg.cond",
    "{}(none)": "sum prod argsort sort cumsum nansum unique any all",
    "{}(none, axis=0)": "sum prod mean sort var median nanmean any all",
    # ---- refused, as by numpy or as complex numbers have no order ------------------------------------------------
    "{}(z) ": """bitwise_invert bitwise_not cbrt ceil celu cummax cummin elu erf erfinv fix floor frexp gelu
        hard_sigmoid hard_silu hard_swish hard_tanh histogram histogram_bin_edges i0 invert isneginf isposinf
        leaky_relu log_sigmoid log_softmax logsumexp amax amin argmax argmin max min mish modf nanargmax
        nanargmin nanmax nanmin ptp packbits relu relu6 selu signbit softmax softplus spacing squareplus trunc
        unwrap unpackbits fft.rfft fft.ihfft bitwise_count special.digamma special.entr special.erfc
        special.erfcx special.gammaln special.i0 special.i0e special.i1 special.i1e special.log_ndtr
        special.ndtr special.ndtri special.psi special.erf special.erfinv special.logsumexp special.softmax
        special.log_softmax""",
    "{}(z, w) ": """arctan2 atan2 bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift copysign
        digitize divmod floor_divide fmax fmin fmod gcd greater greater_equal heaviside histogram2d hypot lcm ldexp less
        less_equal logaddexp logaddexp2 left_shift right_shift maximum minimum mod nextafter remainder
        special.betaln special.gammainc special.gammaincc special.kl_div special.rel_entr special.xlog1py special.xlogy
        special.zeta""",
    "{}(z, w, w) ": "special.betainc",
    "{}(1, z) ": "special.polygamma",
    "{}(z, 0.5) ": "quantile percentile nanquantile nanpercentile",
    "{}(z, -1, 1) ": "clip",
    "{}(z, 5) ": "one_hot",
    "{}(a) ": "fft.rfft2 fft.rfftn histogramdd glu_",
    "{}(a, 'float32') ": "astype",
    "{}(z, 1, 2) ": "where",
    "{}(z, (2,)) ": "unravel_index",
    "{}(gap) ": "nanmax nanmin nanargmax nanargmin max argmin",
    "{}(r, z, r) ": "interp",
}
"""By the arguments, the functions that are called with them; a name with `_` at its end is left out.

The calls after which a space follows are refused.
"""

OTHERS = {
    "bincount": lambda i, weights: np.bincount(i, weights.real) + 1j * np.bincount(i, weights.imag),
    "deg2rad": lambda z: z * (np.pi / 180.0),
    "degrees": lambda z: z * (180.0 / np.pi),
    "fabs": np.abs,
    "flatten": np.ravel,
    "linalg.expm": scipy.linalg.expm,
    "linalg.solve_triangular": lambda a, b: np.linalg.solve(np.triu(a), b),
    "norm": np.linalg.norm,
    "rad2deg": lambda z: z * (180.0 / np.pi),
    "radians": lambda z: z * (np.pi / 180.0),
    "sigmoid": lambda z: 1.0 / (1.0 + np.exp(-z)),
    "silu": lambda z: z / (1.0 + np.exp(-z)),
    "soft_sign": lambda z: z / (1.0 + np.abs(z)),
    "stop_gradient": lambda z: z,
    "swish": lambda z: z / (1.0 + np.exp(-z)),
    "topk": lambda z, k: (np.sort(z)[::-1][:k],),
}
"""The result of functions that numpy does not have, or not for complex numbers."""

ROWS = [(call, name) for call, names in CALLS.items() for name in names.split() if name[-1] != "_"]
TAKEN = [(call, name) for call, name in ROWS if call[-1] != " "]
REFUSED = [(call, name) for call, name in ROWS if call[-1] == " "]

WITHOUT_OPERANDS = """arange array_split backends bartlett blackman broadcast_shapes c_ can_cast checkpoint cond
    custom_jvp custom_vjp debug_nans default_backend derivative devices diag_indices disable_jit einsum_path elementwise
    elementwise_grad empty empty_like eval_shape eye finfo fori_loop fromfunction frombuffer full geomspace
    get_printoptions grad hamming hanning hessian hvp identity iinfo indices io_callback isdtype jacfwd jacrev jit jvp
    kaiser linearize load map mask_indices new ones printoptions profile promote_types pure_callback put put_along_axis
    place fill_diagonal r_ randn result_type s_ save savez savez_compressed scalar scan set_printoptions spread switch
    symbol tri tril_indices triu_indices use_backend value_and_grad vectorize vjp vmap while_loop with_placement zeros
    all_gather all_to_all axis_index axis_size pmax pmean pmin ppermute psum psum_scatter associative_scan as_strided
    apply_along_axis complex from_dlpack trace ix_ meshgrid ravel_multi_index scatter tensor take_along_axis glu
    convolution fft.fftfreq fft.rfftfreq linalg.tensorinv special.expit special.logit"""
"""Functions without a complex operand of their own, of functions, and those that other tests call."""


def operands(dtype: str) -> dict[str, Array]:
    rng = np.random.default_rng(0)

    def drawn(*shape: int) -> Array:
        return np.asarray(rng.normal(size=shape) + 1j * rng.normal(size=shape), dtype)

    real = "float32" if dtype == "complex64" else "float64"
    r = rng.normal(size=5).astype(real)
    return {
        "z": drawn(5),
        "w": drawn(5),
        "a": drawn(3, 4),
        "b": drawn(3, 4),
        "s": drawn(3, 3) + 3 * np.eye(3, dtype=dtype),
        "t": drawn(3, 3),
        "r": r,
        "abs_r": np.abs(r) + r.dtype.type(0.5),
        "i": np.array([2, 0, 1], "int32"),
        "fw": np.array([2, 1, 1, 3], "int32"),
        "none": np.zeros((0, 3), dtype),
        "ties": np.array([1 + 1j, 1 - 1j, 2j, 1 + 1j, 2, -1, 1], dtype),
        "gap": np.array([1 + 1j, complex(NAN, 1), complex(2, NAN), 3 - 1j, complex(NAN, NAN), -1j], dtype),
        "gaps": np.array([[1 + 1j, complex(NAN, 1), 2], [3, complex(2, NAN), 3 - 1j]], dtype),
        "ends": np.array([complex(INF, 1), complex(1, -INF), complex(NAN, INF), 2 + 1j], dtype),
    }


FIXED = {
    "pick": np.array([True, False, True, True, False]),
    "mask": np.arange(12).reshape(3, 4) % 3 > 0,
}
"""Conditions that determine shapes, so that no transform may see them."""


def named(module: Any, name: str) -> Any:
    for part in name.split("."):
        module = getattr(module, part, None)
    return module


def evaluated(call: str, f: Any, module: Any, given: dict[str, Any]) -> Any:
    text = re.sub(r"\bm\.{}|{}", "f", call).strip()
    return eval(text, {"f": f, "m": module, **FIXED, **given})


def leaves(y: Any) -> list[Any]:
    if isinstance(y, tuple | list):
        return [leaf for part in y for leaf in leaves(part)]
    return [] if isinstance(y, str | EllipsisType | None) else [y]


def same(found: Any, expected: Any, dtype: str) -> None:
    """Assert equal structures, shapes and kinds, and near values; our dtype may be the narrower one."""
    mine, theirs = [[np.asarray(x) for x in leaves(y)] for y in (found, expected)]
    assert len(mine) == len(theirs)
    for a, b in zip(mine, theirs, strict=True):
        assert a.shape == b.shape, (a.shape, b.shape)
        assert a.dtype.kind == b.dtype.kind or {a.dtype.kind, b.dtype.kind} <= {"i", "u"}, (a.dtype, b.dtype)
        if a.dtype.kind in "fc":
            assert a.dtype.itemsize <= b.dtype.itemsize, (a.dtype, b.dtype)
            assert a.dtype in (dtype, np.zeros((), dtype).real.dtype), a.dtype
        for p, q in ((a.real, b.real), (a.imag, b.imag)):
            np.testing.assert_allclose(p, q, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", TOLERANCE)
@each_of(("call", "name"), TAKEN)
def test_functions_of_complex_tensors_are_numpys_in_every_mode(call: str, name: str, dtype: str) -> None:
    arrays = operands(dtype)
    tensors = {key: tk.tensor(x) for key, x in arrays.items()}
    f, oracle = named(tk, name), OTHERS.get(name) or named(np, name)
    with quiet():
        expected = evaluated(call, oracle, np, arrays)
    eager = evaluated(call, f, tk, tensors)
    same(eager, expected, dtype)
    used = [key for key in arrays if re.search(rf"\b{key}\b", call)]

    def of_tensors(*xs: Any) -> list[Any]:
        y = evaluated(call, f, tk, tensors | dict(zip(used, xs, strict=True)))
        return [tk.asarray(leaf) for leaf in leaves(y)]

    first, second = [tensors[key] for key in used], [tk.flip(tensors[key]) for key in used]
    try:
        with quiet():
            compiled = tk.jit(of_tensors)(*first)
    except ConcretizationError:
        return  # the shape of the result depends on the values
    same(compiled, [np.asarray(x) for x in leaves(eager)], dtype)
    stacked = tk.vmap(of_tensors)(*[tk.stack(pair) for pair in zip(first, second, strict=True)])
    same([y[0] for y in stacked], [np.asarray(x) for x in leaves(eager)], dtype)
    same([y[1] for y in stacked], [np.asarray(x) for x in of_tensors(*second)], dtype)


@each_of(("call", "name"), REFUSED)
def test_other_functions_refuse_complex_tensors_in_one_line_that_names_them(call: str, name: str) -> None:
    tensors = {key: tk.tensor(x) for key, x in operands("complex64").items()}
    f = named(tk, name)
    used = [key for key in tensors if re.search(rf"\b{key}\b", call)]

    def of_tensors(*xs: Any) -> Any:
        return evaluated(call, f, tk, tensors | dict(zip(used, xs, strict=True)))

    xs = [tensors[key] for key in used]
    for mode in (of_tensors, tk.jit(of_tensors), tk.vmap(of_tensors, axis_size=2, in_axes=None)):
        with pytest.raises((DTypeError, ArgumentError)) as caught, quiet():
            mode(*xs)
        message = str(caught.value)
        assert "\n" not in message
        assert message.startswith(f"{f.__name__}: "), message
        assert "complex" in message


def test_every_function_is_called_or_has_no_complex_operand() -> None:
    known = {name for _, name in ROWS} | set(WITHOUT_OPERANDS.split())
    missing = []
    for prefix, module in (("", tk), ("linalg.", tk.linalg), ("fft.", tk.fft), ("special.", tk.special)):
        for name in getattr(module, "__all__", None) or dir(module):
            f = getattr(module, name)
            is_function = callable(f) and not isinstance(f, type | tk.DType)
            if name[0] != "_" and is_function and prefix + name not in known:
                missing.append(prefix + name)
    assert missing == []
