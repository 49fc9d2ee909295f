"""The forms of a program: text, Python, graphs, a page, a file: what goes into them comes out of them."""

from __future__ import annotations

import ast
import base64
import dataclasses
import html.parser
import json
import random
import re
import struct
import subprocess
import sys
from collections import OrderedDict, defaultdict
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings

import tensorken as tk
from core.tests.programs import on, programs
from core.tests.support import FUSED
from tensorken.errors import ProgramError
from tensorken.programs.files import checksum, written
from tensorken.programs.loading import read
from tensorken.programs.names import Names, within
from tensorken.programs.program import Equation, Literal, Program, Variable
from tensorken.spec.op import OPS, Op
from tensorken.tensor import Tensor


@pytest.fixture(autouse=True)
def _on_numpy():
    with tk.use_backend(FUSED):
        yield


class Pair(NamedTuple):
    first: Any
    second: Any


@dataclasses.dataclass(frozen=True)
class Layer:
    w: Any
    b: Any
    name: str = dataclasses.field(default="", metadata={"static": True})


def mlp(params, x, *, scale):
    h = tk.tanh(x @ params["w"] + params["b"])
    return {"h": h, "loss": [(h * h).sum() * scale, None]}


with tk.use_backend(FUSED):
    PARAMS = {"w": tk.tensor([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]]), "b": tk.tensor([1.0, -1.0])}
    X = tk.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    BIG = tk.tensor(np.random.default_rng(0).normal(size=(6, 7)).astype("float32"))


def convolved(x, w):
    patches = tk.stack([x[:, i : i + 4] for i in range(3)], axis=-1)
    return tk.softmax(patches @ w, axis=1)


block = tk.checkpoint(lambda x: tk.sin(x) * x)
softplus = tk.elementwise(lambda x: tk.log1p(tk.exp(x)), tk.sigmoid)


def real_programs() -> dict[str, tuple[Program, tuple[Any, ...], dict[str, Any]]]:
    """Programs of functions as people write them, with arguments."""
    made: dict[str, tuple[Any, tuple[Any, ...], dict[str, Any]]] = {
        "mlp": (mlp, (PARAMS, X), {"scale": tk.scalar(2.0)}),
        "gradient": (
            tk.value_and_grad(lambda p, x: mlp(p, x, scale=0.5)["loss"][0]),
            (PARAMS, X),
            {},
        ),
        "convolution": (convolved, (tk.arange(12.0).reshape(2, 6), tk.ones((3, 5))), {}),
        "its gradient": (
            tk.grad(lambda x, w: (convolved(x, w) ** 2.0).sum(), (0, 1)),
            (tk.arange(12.0).reshape(2, 6), tk.ones((3, 5))),
            {},
        ),
        "softmax": (lambda x: tk.log_softmax(x, axis=1).mean(), (X,), {}),
        "big constant": (lambda x: x @ BIG, (tk.ones((2, 6)),), {}),
        "jitted": (
            lambda x: tk.jit(lambda a: a * 2.0 + 1.0)(x) + tk.jit(lambda a: a @ BIG)(x).sum(),
            (tk.ones((3, 6)),),
            {},
        ),
        "batched": (tk.vmap(lambda x: tk.sort(x)[::-1] / x.max()), (X,), {}),
        "many results": (lambda x: tk.linalg.qr(x), (tk.ones((3, 2)),), {}),
        "indices": (
            lambda x, i: (x[i], tk.concatenate([x, x]), x.astype("int32") % 3),
            (X, tk.tensor([1, 0])),
            {},
        ),
        "no arguments": (lambda: {"y": tk.ones(3) * 2.0, "z": BIG}, (), {}),
        "numbers": (
            lambda x: (
                x * float("inf"),
                1.0 / x,
                2.0 - x,
                x < 0.0,
                x == 1.0,
                tk.full(2, float("nan")),
                -x,
                x**3,
            ),
            (X,),
            {},
        ),
        "whole numbers": (
            lambda n: (n * 3 - 1, n // 2, n & 5, n << 1, (n > 1) & (n < 3)),
            (tk.tensor([1, 2, 3]),),
            {},
        ),
        "loops": (
            lambda x, n: (
                tk.scan(lambda c, row: (c * 0.5 + row, (c.sum(), row * n)), x[0], x, reverse=True),
                tk.while_loop(lambda v: v.sum() < 50.0, lambda v: v * 2.0 + n, x),
                tk.fori_loop(0, 3, lambda i, v: v * v - n, x[1]),
                tk.cond(
                    n > 0.0, lambda v: v * n, lambda v: (v - BIG[:2, :3]).sum(axis=0, keepdims=True) + v, x
                ),
            ),
            (X, tk.scalar(0.75)),
            {},
        ),
        "gradients of loops": (
            tk.grad(
                lambda x, n: tk.scan(lambda c, row: (tk.sin(c * n) + row, c), x[0], x)[1].sum() * n, (0, 1)
            ),
            (X, tk.scalar(0.75)),
            {},
        ),
        "batched loops": (
            tk.vmap(
                lambda x: (
                    tk.scan(lambda c, a: (c + a, c * a), x[0], x)[1]
                    + tk.cond(x.sum() > 7.0, lambda v: v, lambda v: -v, x)
                )
            ),
            (X,),
            {},
        ),
        "named": (lambda p: Pair(p.second, p.first * 2.0), (Pair(X, tk.scalar(3.0)),), {}),
    }
    return {
        name: (tk.trace(f)(*args, **keywords), args, keywords) for name, (f, args, keywords) in made.items()
    }


with tk.use_backend(FUSED):
    REAL = real_programs()
each_program = pytest.mark.parametrize("name", REAL)


def bits(results: Any) -> list[tuple[Any, ...]]:
    """The bits of all tensors in a tree."""
    leaves = [x for x in tk.tree.leaves(results) if isinstance(x, Tensor)]
    return [(x.shape, x.dtype.name, np.asarray(x).tobytes()) for x in leaves]


def run_source(program: Program) -> Any:
    """The function that `to_python` writes."""
    source = program.to_python()
    names: dict[str, Any] = {}
    exec(compile(source, "<source>", "exec"), names)
    functions = [node.name for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
    return names[[name for name in functions if name != "elements_of"][-1]]


def same(a: Program, b: Program) -> bool:
    """Whether two programs are the same but for the identity of their variables."""
    if len(within(a)) != len(within(b)):
        return False
    for p, q in zip(within(a), within(b), strict=True):
        if (str(p), p.arguments, p.result, p.parameters, p.donated) != (
            str(q),
            q.arguments,
            q.result,
            q.parameters,
            q.donated,
        ):
            return False
        for e, f in zip(p.equations, q.equations, strict=True):
            if (e.op.name, e.origin, e.scope) != (f.op.name, f.origin, f.scope):
                return False
        if bits(list(p.constants.values())) != bits(list(q.constants.values())):
            return False
    return True


# ---- text --------------------------------------------------------------------------------------------------


def test_a_program_reads_as_its_function():
    program = tk.trace(lambda params, x: tk.sin(x) * params["a"][0] + tk.tensor([1.0, 2.0]))(
        {"a": [3.0]}, tk.ones(2)
    )
    lines = str(program).splitlines()
    assert lines[0] == '<lambda>(params["a"][0]: float32[], x: float32[2]):'
    assert lines[1] == "    a: float32[2] = constant [1.0, 2.0]"
    assert re.match(r"    b: float32\[2\] = sin\(x\) +# test_program_forms.py:\d+$", lines[2])
    assert lines[3] == '    c: float32[1] = reshape(params["a"][0], shape=(1,))'
    assert lines[-1] == "    return f"
    assert len({line.index("=") for line in lines[1:-1] if "params" not in line}) == 1
    assert repr(program) == "<Program <lambda>: 2 inputs, 1 constant, 5 equations, 1 output>"


def test_the_line_of_the_user_stands_where_it_changes():
    def f(x):
        y = tk.exp(x)
        return y * y + 1.0

    lines = [line for line in str(tk.trace(f)(1.0)).splitlines() if "=" in line]
    assert ["#" in line for line in lines] == [True, True, False]


def test_names_are_those_of_the_function_and_clash_with_nothing():
    def f(a, tk_, *rest, b):
        return a * tk_ * rest[0] * rest[1] * b

    program = tk.trace(f)(1.0, 2.0, 3.0, 4.0, b=5.0)
    names = Names(program)
    assert [names[v] for v in program.inputs] == ["a", "tk_", "rest_0", "rest_1", "b"]
    assert program.adjoints(inputs="tk_")(1.0, 2.0, 3.0, 4.0, b=5.0).item() == 60.0
    others = [names[e.results[0]] for e in program.equations]
    assert others == ["c", "d", "e", "f"]
    long = tk.trace(lambda: [tk.sin(tk.ones(1)) for _ in range(1)] and tk.ones(1))()
    assert long.inputs == ()

    def chain(x):
        for _ in range(800):
            x = -x
        return x

    many = Names(tk.trace(chain)(1.0))
    given = [many[Variable((), tk.float32)] for _ in range(800)]
    assert len(set(given)) == 800
    assert not {"x", "as", "if", "in", "is", "or", "tk"} & set(given)
    assert given[:3] == ["a", "b", "c"]


def test_a_program_that_is_run_twice_is_shown_once():
    inner = tk.jit(lambda a: a * a)
    text = str(tk.trace(lambda x: inner(x) + inner(x))(2.0))
    assert text.count("mul(a, a)") == 1
    assert text.count("call(x, program=<lambda>_2)") == 2


def test_long_lines_go_on_below():
    text = str(tk.trace(lambda *xs: tk.concatenate(xs))(*[tk.ones(2)] * 40))
    assert max(map(len, text.splitlines())) <= 120
    assert text.count("xs_39") == 2


def test_a_large_constant_is_shown_by_its_shape():
    text = str(REAL["big constant"][0])
    assert re.search(r"a: float32\[1, 7, 6\] = constant$", text, re.MULTILINE)


# ---- Python ------------------------------------------------------------------------------------------------


@pytest.mark.feature(96)
@each_program
def test_source_gives_the_same_bits(name):
    program, arguments, keywords = REAL[name]
    function = run_source(program)
    assert bits(function(*arguments, **keywords)) == bits(program(*arguments, **keywords))


@pytest.mark.feature(96)
@pytest.mark.parametrize("name", ["mlp", "gradient", "softmax", "numbers", "jitted"])
def test_source_gives_the_same_bits_on_the_reference_backend(name):
    program, arguments, keywords = REAL[name]
    moved = tk.tree.map(lambda x: tk.tensor(np.asarray(x), backend="reference"), (arguments, keywords))
    results = run_source(program)(*moved[0], **moved[1])
    assert {x.backend for x in tk.tree.leaves(results)} == {"reference"}
    assert bits(results) == bits(program(*moved[0], **moved[1]))


@pytest.mark.feature(96)
@settings(deadline=None, max_examples=60)
@given(drawn=programs())
def test_source_of_generated_programs(drawn):
    leaves = on(FUSED, drawn)
    program = tk.trace(lambda *xs: drawn.run(*xs))(*leaves)
    function = run_source(program)
    assert bits(function(*leaves)) == bits(program(*leaves))
    again = tk.trace(function)(*leaves)
    kinds = [e.op.name for e in again.equations]
    assert kinds == [e.op.name for e in program.equations if not _is_nothing(e)]


def _is_nothing(equation: Equation) -> bool:
    """An op that leaves its operand as it is, and that user functions leave out."""
    (x, *_), (y, *_) = equation.operands, equation.results
    if equation.op.name == "permute":
        return equation.params == (tuple(range(len(x.shape))),)
    return equation.op.name in ("reshape", "expand", "cast") and (x.shape, x.dtype) == (y.shape, y.dtype)


TABLE = [op for op in OPS.values() if op.samples]


@pytest.mark.parametrize("op", TABLE, ids=lambda op: op.name)
def test_every_op_is_written_so_that_it_is_the_same_op(op):
    for shapes, params in op.samples:
        roles = op.roles or ("data",) * len(shapes)
        dtypes = {"data": tk.float32, "condition": tk.bool_, "indices": tk.int32}
        own: list[Any] = [dtypes[role] for role in roles]
        try:
            dtype = op.dtype(*own, *params)
        except tk.errors.DTypeError:  # ops on integers alone
            own = [tk.int32 for _ in own]
            dtype = op.dtype(*own, *params)
        shape = op.shape(*shapes, *params)
        inputs = tuple([Variable(s, d) for s, d in zip(shapes, own, strict=True)])
        facts = [(shape, dtype)] if op.results == 1 else list(zip(shape, dtype, strict=True))
        results = tuple([Variable(*fact) for fact in facts])
        program = Program(inputs, results, (Equation(op, inputs, params, results),), backend=FUSED)
        function = run_source(program)
        xs = [tk.ones(v.shape, v.dtype) for v in inputs]
        (equation,) = tk.trace(function)(*xs).equations
        assert (equation.op, equation.params) == (op, params)


def test_source_is_a_module_of_its_own(tmp_path):
    program, _, _ = REAL["big constant"]
    file = tmp_path / "module.py"
    file.write_text(
        program.to_python() + "\nprint(function(tk.ones((2, 6))).sum().item())\n", encoding="utf-8"
    )
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, check=True)
    assert float(done.stdout) == pytest.approx(2 * np.asarray(BIG, "float64").sum(), rel=1e-5)


def test_source_of_functions_with_rules_is_written_without_these():
    program = tk.trace(lambda x: softplus(block(x)))(tk.scalar(0.5))
    source = program.to_python()
    assert source.count("# Derivative rules of its own are not written here.") == 2
    assert bits(run_source(program)(tk.scalar(0.5))) == bits(program(tk.scalar(0.5)))


def test_source_of_what_has_no_words_is_one_clear_error():
    def f(a):
        tk.trace(lambda x: x * a)(3.0).to_python()
        return a

    with pytest.raises(
        ProgramError, match=r"belongs to grad, so it has no value to keep; pass it as an argument"
    ):
        tk.grad(f)(2.0)
    program = tk.trace(lambda x: tk.sin(x) * tk.symbol("w"))(tk.symbol("x"))
    with pytest.raises(ProgramError, match=r"to_python: a constant of shape .* has no elements to keep"):
        program.to_python()


def test_names_in_source_do_not_shadow_functions():
    @tk.jit
    def a(x):
        return x * x

    program = tk.trace(lambda x: a(a(x)))(2.0)
    assert run_source(program)(tk.scalar(2.0)).item() == 16.0

    def named(tk_, values, type, match, carry, OPS, _):
        return tk_ * values * type * match * carry * OPS * _

    taken = tk.trace(named)(*[tk.scalar(2.0)] * 7)
    assert run_source(taken)(*[tk.scalar(2.0)] * 7).item() == 128.0
    odd = tk.trace(lambda d: d["class"] * d['q"\n'])({"class": 2.0, 'q"\n': 3.0})
    assert run_source(odd)({"class": tk.scalar(2.0), 'q"\n': tk.scalar(3.0)}).item() == 6.0
    layer = Layer(X, tk.scalar(2.0))
    swapped = tk.trace(lambda layer: Layer(layer.b, layer.w))(layer)
    assert bits(run_source(swapped)(layer)) == bits(swapped(layer))
    keyed = tk.trace(lambda d: {frozenset({1}): d[b"k", frozenset()] * 2.0})({(b"k", frozenset()): 2.0})
    assert run_source(keyed)(tk.scalar(2.0))[0].item() == 4.0


# ---- graphs ------------------------------------------------------------------------------------------------


ODD = 'a"b\\<c>;#`%{}[]|end'


def odd_program() -> Program:
    return tk.trace(lambda d: tk.sin(d[ODD]))({ODD: 1.0})


@each_program
def test_mermaid_names_every_node_before_an_arrow_leads_to_it(name):
    program = REAL[name][0]
    lines = [line.strip() for line in program.to_mermaid().splitlines()]
    assert lines[0] == "flowchart TD"
    frames = {line.split()[1].split("[")[0] for line in lines if line.startswith("subgraph")}
    nodes = {
        m[1]
        for line in lines
        if (m := re.match(r'(p\d+n\d+)(\(\[|\[\(|\[\[|\[)".*"(\]\)|\)\]|\]\]|\])$', line))
    }
    arrows = [m.groups() for line in lines if (m := re.match(r"(\w+) (?:-->|-\.->) (\w+)$", line))]
    assert len(nodes) + len(arrows) + 2 * len(frames) + 1 == len(lines)
    assert {end for pair in arrows for end in pair} <= nodes | frames
    assert len(frames) == len(within(program))
    count = sum(len(p.equations) + len(p.inputs) + len(p.constants) + 1 for p in within(program))
    assert len(nodes) == count


def test_mermaid_escapes_what_would_end_a_label():
    (label,) = set(re.findall(r'n0\(\["(.*)"\]\)', odd_program().to_mermaid()))
    shown = re.sub(r"#(\d+);", lambda m: chr(int(m[1])), label.split("<br/>")[0])
    assert shown == f"d[{json.dumps(ODD)}]"
    assert not set(label.split("<br/>")[0]) & set('"<>`\\')


@each_program
def test_dot_quotes_all_strings(name):
    text = REAL[name][0].to_dot()
    without_strings = re.sub(r'"(?:[^"\\]|\\.)*"', "S", text)
    assert '"' not in without_strings
    assert "\\" not in without_strings
    assert without_strings.count("{") == without_strings.count("}") == 1 + len(within(REAL[name][0]))
    for line in without_strings.splitlines()[1:-1]:
        assert re.fullmatch(
            r"\s*(compound=true;|node \[fontname=S\];|subgraph cluster_p\d+ \{|label=S;|\}"
            r"|p\d+n\d+ \[[\w=, ]+label=S\];|p\d+n\d+ -> p\d+n\d+( \[style=dotted, lhead=cluster_p\d+\])?;)",
            line,
        ), line


def test_dot_escapes_quotation_marks_and_backslashes():
    (label,) = re.findall(r'p0n0 \[.*label="((?:[^"\\]|\\.)*)"\]', odd_program().to_dot())
    assert (
        label.removesuffix("\\nfloat32[]").replace('\\"', '"').replace("\\\\", "\\")
        == f"d[{json.dumps(ODD)}]"
    )


class _Page(html.parser.HTMLParser):
    """Checks that tags are closed in order, and collects places, links and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.places: list[str] = []
        self.links: list[str] = []
        self.text = ""
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        facts = dict(attrs)
        assert not {"src", "onclick"} & facts.keys()
        if "id" in facts:
            self.places.append(facts["id"])
        if "href" in facts:
            self.links.append(facts["href"])

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


@each_program
def test_the_page_of_a_notebook_is_well_formed_and_stands_alone(name):
    program = REAL[name][0]
    page = _Page(program._repr_html_())
    assert len(page.places) == len(set(page.places))
    assert all(link[0] == "#" and link[1:] in page.places for link in page.links)
    assert "http" not in program._repr_html_()
    for equation in program.equations:
        assert f"{equation.op.name}" in page.text


def test_the_page_escapes_names_and_shortens_long_programs():
    page = _Page(odd_program()._repr_html_())
    assert f"d[{json.dumps(ODD)}]" in page.text

    def chain(x):
        for _ in range(1000):
            x = -x
        return x

    page = _Page(tk.trace(chain)(1.0)._repr_html_())
    assert "700 more: print(program) has all" in page.text
    assert page.text.count("neg") == 300


# ---- files -------------------------------------------------------------------------------------------------


def through_file(program: Program, tmp_path: Any, **options: Any) -> Program:
    path = tmp_path / "program.tk"
    program.save(path, **options)
    return Program.load(path)


@each_program
def test_a_file_keeps_the_program_and_its_bits(name, tmp_path):
    program, arguments, keywords = REAL[name]
    again = through_file(program, tmp_path)
    assert same(program, again)
    assert bits(again(*arguments, **keywords)) == bits(program(*arguments, **keywords))
    result = again(*arguments, **keywords)
    assert tk.tree.structure(result) == tk.tree.structure(program(*arguments, **keywords))
    assert written(again) == written(program)


@settings(deadline=None, max_examples=40)
@given(drawn=programs())
def test_files_of_generated_programs(drawn):
    leaves = on(FUSED, drawn)
    program = tk.trace(lambda *xs: drawn.run(*xs))(*leaves)
    again = read(written(program).encode(), "text", FUSED, _make)
    assert same(program, again)
    assert bits(again(*leaves)) == bits(program(*leaves))


def _make(shape: Any, data: Any, dtype: Any) -> Tensor:
    return tk.new(shape, data, dtype, backend=FUSED)


def test_a_loaded_program_is_differentiated_batched_and_jitted(tmp_path):
    program, arguments, _ = REAL["softmax"]
    again = through_file(program, tmp_path)
    assert bits(tk.grad(again)(*arguments)) == bits(tk.grad(program)(*arguments))
    assert bits(tk.jit(again)(*arguments)) == bits(tk.jit(program)(*arguments))
    rows = tk.stack([X, X * 2.0])
    assert bits(tk.vmap(again)(rows)) == bits(tk.vmap(program)(rows))


@pytest.mark.parametrize("dtype", ["bool", "int32", "int64", "float16", "float32", "float64"])
@pytest.mark.parametrize("backend", [FUSED, "reference"], ids=["numpy", "reference"])
def test_constants_keep_their_bits(dtype, backend, tmp_path):
    values = {
        "bool": [True, False, True, True, False, True, False],
        "int32": [2**31 - 1, -(2**31), 0, 1, -1, 5, 7],
        "int64": [2**63 - 1, -(2**63), 0, 1, -1, 5, 7],
    }.get(dtype, [0.1, -0.0, float("inf"), -float("inf"), float("nan"), 6e-8, 1 / 3])
    if (
        dtype == "float16"
        and "float16" not in tk.tensor([1.0], backend=backend).interpreter.capabilities.dtypes
    ):
        pytest.skip("this backend has no float16")
    held = tk.tensor(values, dtype, backend=backend)
    with tk.use_backend(held.interpreter):
        program = tk.trace(lambda: held)()
    path = tmp_path / "program.tk"
    program.save(path)
    again = Program.load(path, backend=backend)()
    assert again.backend == held.backend
    assert struct.pack("7d", *again.tolist()) == struct.pack("7d", *held.tolist())
    assert again.dtype is held.dtype


@pytest.mark.parametrize(
    "value", [0.1, -0.0, float("inf"), -float("inf"), float("nan"), 5e-324, 1.7976931348623157e308]
)
def test_numbers_keep_their_bits(value, tmp_path):
    program = tk.trace(lambda x: x * value)(tk.scalar(1.0, "float64"))
    again = through_file(program, tmp_path)
    (a,), (b,) = (
        [v.value for v in p.equations[0].operands if isinstance(v, Literal)] for p in (program, again)
    )
    assert struct.pack("d", a) == struct.pack("d", b)
    negative = struct.unpack("d", struct.pack("d", float("nan"))[:-1] + b"\xff")[0]
    y = Literal((), tk.float64, negative)
    kept = through_file(Program((), (y,), (), backend=FUSED), tmp_path).outputs[0]
    assert struct.pack("d", kept.value) == struct.pack("d", negative)


@pytest.mark.parametrize(
    "argument",
    [
        {"b": (1.0, None), "a": [2.0]},
        OrderedDict([("z", 1.0), ("a", 2.0)]),
        defaultdict(list, {"k": 1.0}),
        Pair(1.0, (2.0,)),
        Layer(1.0, 2.0, "first"),
        {(1, "x"): 1.0, 2: 2.0, "s": 3.0, 0.5: 4.0, None: 5.0, True: 6.0},
        {slice(0, 2) if sys.version_info >= (3, 12) else b"bytes": 1.0},
        (),
    ],
    ids=lambda x: type(x).__name__,
)
def test_structures_are_kept(argument, tmp_path):
    program = tk.trace(lambda x: {"again": x})(argument)
    again = through_file(program, tmp_path)
    assert again.arguments == program.arguments
    assert again.result == program.result
    assert type(again(argument)["again"]) is type(argument)


def test_what_has_no_form_is_one_clear_error_and_leaves_no_file(tmp_path):
    path = tmp_path / "program.tk"

    def refused(f, *arguments):
        with pytest.raises(ProgramError) as error:
            tk.trace(f)(*arguments).save(path)
        assert "\n" not in str(error.value)
        assert not path.exists()
        return str(error.value)

    class Local(NamedTuple):
        x: Any

    assert "the class" in refused(lambda p: p.x, Local(1.0))
    assert "define it at the top of a module" in refused(lambda p: p.x, Local(1.0))
    assert "kind object has no form" in refused(lambda p: p, {object(): 1.0})
    message = refused(lambda x: softplus(x), 1.0)
    assert "rules of its own" in message
    assert "drop_rules=True" in message
    assert "rules of its own" in refused(lambda x: block(x), 1.0)
    assert "no elements to keep" in refused(lambda x: x * tk.symbol("w"), tk.symbol("x"))

    def inside(a):
        tk.trace(lambda x: x * a)(3.0).save(path)
        return a

    with pytest.raises(
        ProgramError, match="belongs to grad, so it has no value to keep; pass it as an argument"
    ):
        tk.grad(inside)(2.0)


def test_rules_are_dropped_where_that_is_asked_for(tmp_path):
    program = tk.trace(lambda x: softplus(block(x)) + block(x))(tk.scalar(0.5))
    again = through_file(program, tmp_path, drop_rules=True)
    assert bits(again(tk.scalar(0.5))) == bits(program(tk.scalar(0.5)))
    assert tk.grad(again)(0.5).item() == pytest.approx(tk.grad(program)(0.5).item(), rel=1e-6)


def test_scopes_names_and_lines_are_kept(tmp_path):
    program = tk.trace(lambda x, y: tk.sin(x) * y)(1.0, 2.0)
    first, second = program.equations
    program = program.changed(
        equations=(first, dataclasses.replace(second, scope=3)),
        donated=frozenset({1}),
        name='odd "name"\n\u2028',
    )
    again = through_file(program, tmp_path)
    assert same(program, again)
    assert again.equations[1].scope == 3
    assert again.equations[0].origin == first.origin
    assert again.donated == {1}
    assert again.name == program.name


def test_an_op_that_is_not_there_is_named(tmp_path):
    content = json.loads(written(REAL["softmax"][0]))
    content["programs"][-1]["equations"][0]["op"] = "sinc"
    assert "needs the op 'sinc', which is not in the op table" in refusal(with_checksum(content))


def test_a_newer_version_is_refused_as_such():
    content = json.loads(written(REAL["softmax"][0]))
    content["version"] = 2
    assert "the format has version 2, and this Tensorken reads up to 1; use a newer one" in refusal(
        with_checksum(content)
    )


def test_a_class_that_is_not_imported_is_named():
    content = json.loads(written(REAL["named"][0]))
    text = json.dumps(content).replace(f"{__name__}:Pair", "elsewhere.models:Pair")
    message = refusal(with_checksum(json.loads(text)))
    assert "needs the class Pair of elsewhere.models" in message
    assert "elsewhere" not in sys.modules


def with_checksum(content: dict[str, Any]) -> bytes:
    return json.dumps({**content, "checksum": checksum(content)}).encode()


def refusal(data: bytes) -> str:
    with pytest.raises(ProgramError) as error:
        read(data, "program.tk", FUSED, _make)
    message = str(error.value)
    assert message.startswith("load: program.tk: ")
    assert "\n" not in message
    return message


SAVED = {name: written(REAL[name][0]) for name in ("gradient", "jitted", "indices", "named", "many results")}


@pytest.mark.parametrize("name", SAVED)
def test_damage_is_always_noticed(name):
    """Bytes that change, go or come are an error of one line, or do not matter to what the file says."""
    data = SAVED[name].encode()
    chance = random.Random(0)
    meant = json.loads(data)
    for _ in range(150):
        place = chance.randrange(len(data))
        kind = chance.choice(("flip", "cut", "drop", "repeat", "other"))
        damaged = {
            "flip": data[:place] + bytes([data[place] ^ (1 << chance.randrange(8))]) + data[place + 1 :],
            "cut": data[:place],
            "drop": data[:place] + data[place + 1 :],
            "repeat": data[:place] + data[place : place + 40] + data[place:],
            "other": data[:place] + bytes([chance.randrange(256)]) + data[place + 1 :],
        }[kind]
        try:
            unharmed = json.loads(damaged) == meant
        except ValueError:
            unharmed = False
        if unharmed:
            read(damaged, "program.tk", FUSED, _make)
        else:
            refusal(damaged)


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *[place for key, inner in items for place in _places(inner, (*path, key))]]


STRANGE = [
    None,
    True,
    -1,
    0,
    10**30,
    1.5,
    "",
    "x",
    "nan:zz",
    [],
    {},
    [None],
    {"float": "x"},
    {"program": 0},
    [[[]]],
]


@pytest.mark.parametrize("name", SAVED)
def test_what_contradicts_itself_is_an_error_even_with_a_right_checksum(name):
    """Entries that are replaced or removed on purpose: a program that runs or says what is wrong, nothing else."""
    text = SAVED[name]
    chance = random.Random(1)
    places = _places(json.loads(text))
    messages: list[str] = []
    for _ in range(200):
        content = json.loads(text)
        place = chance.choice([p for p in places if p and p[0] != "checksum"])
        holder = content
        for key in place[:-1]:
            holder = holder[key]
        if chance.random() < 0.3:
            del holder[place[-1]]
        else:
            holder[place[-1]] = chance.choice(STRANGE)
        try:
            kept = read(with_checksum(content), "program.tk", FUSED, _make)
            assert str(kept)
            assert kept._repr_html_()
        except ProgramError as error:
            messages.append(str(error))
    assert len(messages) > 100
    assert all("\n" not in message for message in messages)


def test_a_file_without_a_checksum_may_be_changed_by_hand():
    content = json.loads(written(tk.trace(lambda x: x * 2.0)(1.0)))
    del content["checksum"]
    values = content["programs"][0]["values"]
    (place,) = [i for i, row in enumerate(values) if len(row) == 3]
    values[place][2] = (5.0).hex()
    program = read(json.dumps(content).encode(), "text", FUSED, _make)
    assert program(3.0).item() == 15.0


def test_large_constants_take_a_third_more_than_their_bytes_and_are_kept_once():
    held = tk.tensor(np.arange(5000, dtype="float32"))
    program = tk.trace(lambda x: tk.jit(lambda a: a * held)(x) + held)(tk.ones(5000))
    text = written(program)
    assert len(json.loads(text)["constants"]) == 1
    assert len(text) < 1.4 * 20_000 + 3000
    assert (
        base64.b64decode(json.loads(text)["constants"][0]["data"]) == np.arange(5000, dtype="<f4").tobytes()
    )


def test_no_file_and_no_text(tmp_path):
    with pytest.raises(FileNotFoundError):
        Program.load(tmp_path / "nowhere.tk")
    assert "this is no JSON" in refusal(b"\xff\xfe\x00")
    assert "this is no JSON" in refusal(b"[" * 100_000)
    assert "this is no program" in refusal(b"[1, 2]")


def test_an_op_of_a_plugin_is_kept_by_its_name(tmp_path):
    op = Op(
        "thrice_for_a_test",
        1,
        lambda x: x,
        lambda x: x,
        body=lambda x: x * 3.0,
        jvp=(lambda t, y, x: t * 3.0,),
    )
    f = lambda x: x.apply(op)  # noqa: E731
    program = tk.trace(f)(tk.scalar(2.0))
    with pytest.raises(ProgramError, match="drop_rules"):
        program.save(tmp_path / "program.tk")
    OPS[op.name] = op
    try:
        again = through_file(program, tmp_path)
        assert again.equations[0].op is op
        assert again(tk.scalar(2.0)).item() == 6.0
    finally:
        del OPS[op.name]
    with pytest.raises(ProgramError, match="needs the op 'thrice_for_a_test'"):
        Program.load(tmp_path / "program.tk")
