"""Forms of programs: text, Python source, diagrams and HTML contain all of the program."""

from __future__ import annotations

import ast
import html.parser
import inspect
import itertools
import json
import re
import subprocess
import sys
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import tensorken as tk
from core.tests.each import each_of
from core.tests.examples import examples
from core.tests.known_programs import BIG, REAL, Layer, X, bits, block, softplus
from core.tests.random_programs.strategies import of_the_table, programs, traced
from core.tests.support import FUSED
from tensorken.programs.forms.layers import layout
from tensorken.programs.methods import METHODS
from tensorken.programs.names import Names, all_programs
from tensorken_core.errors import ProgramError
from tensorken_core.language.op import OPS
from tensorken_core.program.program import Equation, Program, Variable

each_program = pytest.mark.parametrize("name", REAL)


@pytest.fixture(autouse=True)
def _on_numpy():
    with tk.use_backend(FUSED):
        yield


def test_program_declares_the_methods_that_are_attached() -> None:
    def arguments(node: ast.arguments) -> list[tuple[str, bool, str]]:
        defaults = [ast.unparse(d) for d in node.defaults]
        positional = [a.arg for a in node.args]
        padded = [""] * (len(positional) - len(defaults)) + defaults
        named = [
            (a.arg, True, ast.unparse(d)) for a, d in zip(node.kwonlyargs, node.kw_defaults, strict=True) if d
        ]
        return [*[(a, False, d) for a, d in zip(positional, padded, strict=True)], *named]

    def attached(method: Any) -> list[tuple[str, bool, str]]:
        parameters = inspect.signature(method).parameters.values()
        return [
            (p.name, p.kind is p.KEYWORD_ONLY, "" if p.default is p.empty else repr(p.default))
            for p in parameters
            if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        ]

    [body] = [n for n in ast.parse(inspect.getsource(Program)).body if isinstance(n, ast.ClassDef)]
    [block] = [n for n in body.body if isinstance(n, ast.If)]
    declared = {n.name: arguments(n.args) for n in block.body if isinstance(n, ast.FunctionDef)}
    assert declared.keys() | {"__repr__", "__str__"} == METHODS.keys()
    for name, expected in declared.items():
        static = isinstance(METHODS[name], staticmethod)
        assert attached(getattr(Program, name))[not static :] == expected[not static :], name
        assert name == "_repr_html_" or getattr(Program, name).__doc__


def run_source(program: Program) -> Any:
    """The function in the source that `to_python` returns."""
    source = program.to_python()
    names: dict[str, Any] = {}
    exec(compile(source, "<source>", "exec"), names)
    functions = [node.name for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
    return names[[name for name in functions if name != "elements_of"][-1]]


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


def test_the_users_line_is_printed_where_it_changes():
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


def test_an_inner_program_that_runs_twice_is_shown_once():
    inner = tk.jit(lambda a: a * a)
    text = str(tk.trace(lambda x: inner(x) + inner(x))(2.0))
    assert text.count("mul(a, a)") == 1
    assert text.count("call(x, program=<lambda>_2)") == 2


@each_of(
    ("function", "shown"),
    [
        (
            lambda x: tk.scan(lambda c, y: (c + y, c), x, tk.ones(3), reverse=True),
            "inputs=('carry', 0), outputs=('carry', 0), length=3, reverse=True)",
        ),
        (
            lambda x: tk.while_loop(lambda c: c < 3, lambda c: c + 1, x),
            "while_loop(x, condition=<lambda>_2, body=<lambda>_3, inputs=('carry',))",
        ),
        (lambda x: tk.cond(x > 0, tk.sin, tk.cos, x), "if_true=sin, if_false=cos)"),
        (lambda x: tk.linalg.svd(x.reshape((1, 1))), ", full_matrices=True)"),
        (lambda x: tk.expand_dims(x, 0).sum(0), "sum(a, axes=(0,))"),
    ],
)
def test_params_are_shown_by_their_names(function, shown):
    program = tk.trace(function)(1.0)
    assert shown in " ".join(str(program).split())
    assert "data=" not in str(program)
    for op in {e.op for p in all_programs(program) for e in p.equations}:
        assert len(set(op.param_names or op.params)) == len(op.params)


def test_the_params_of_each_op_have_different_names():
    for op in OPS.values():
        names = op.param_names or op.params
        assert len(set(names)) == len(names) == len(op.params), op
        assert "data" not in names, op


def test_long_lines_are_wrapped():
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
@settings(deadline=None, max_examples=examples(60))
@given(draft=st.booleans().flatmap(lambda whole: programs(whole=whole)))
def test_source_of_random_programs(draft):
    """Equal bits where nothing is rounded; elsewhere the memory layout of constants may change the order of sums."""
    program, leaves = traced(draft, FUSED)
    function = run_source(program)
    found, expected = function(*leaves), program(*leaves)
    facts = [[(x.shape, x.dtype) for x in tk.tree.leaves(xs)] for xs in (found, expected)]
    assert facts[0] == facts[1]
    if draft.program.whole:
        assert bits(found) == bits(expected)
    if leaves and of_the_table(program, loops=False):  # without inputs nothing is traced
        again = tk.trace(function)(*leaves)
        kinds = [e.op.name for e in again.equations]
        assert kinds == [e.op.name for e in program.equations if not _is_nothing(e)]


def test_names_within_the_source_of_a_scan_hide_no_value():
    """There are enough values to use all short names, and the scan uses them all."""

    def everything(v):
        values = [v]
        for _ in range(60):
            values.append(tk.sin(values[-1]))
        return tk.scan(lambda carry, row: (sum(values, carry) * row, None), v, tk.stack([v, v + 1.0]))[0]

    v = tk.tensor([0.25, 0.5])
    program = tk.trace(everything)(v)
    assert bits(run_source(program)(v)) == bits(program(v))


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
        roles = op.operand_kinds or ("data",) * len(shapes)
        dtypes = {"data": tk.float32, "condition": tk.bool_, "indices": tk.int32}
        own: list[Any] = [dtypes[role] for role in roles]
        try:
            dtype = op.dtype(*own, *params)
        except tk.errors.DTypeError:  # ops only for integers
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


def test_source_of_functions_with_rules_omits_the_rules():
    program = tk.trace(lambda x: softplus(block(x)))(tk.scalar(0.5))
    source = program.to_python()
    assert source.count("# Custom derivative rules are not written here.") == 2
    assert bits(run_source(program)(tk.scalar(0.5))) == bits(program(tk.scalar(0.5)))


def test_values_without_a_python_form_are_one_clear_error():
    def f(a):
        tk.trace(lambda x: x * a)(3.0).to_python()
        return a

    with pytest.raises(
        ProgramError, match=r"belongs to grad, so it has no value to save; pass it as an argument"
    ):
        tk.grad(f)(2.0)
    program = tk.trace(lambda x: tk.sin(x) * tk.symbol("w"))(tk.symbol("x"))
    with pytest.raises(ProgramError, match=r"to_python: a constant of shape .* has no elements to save"):
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
def test_mermaid_declares_every_node_before_its_arrows(name):
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
    assert len(frames) == len(all_programs(program))
    count = sum(len(p.equations) + len(p.inputs) + len(p.constants) + 1 for p in all_programs(program))
    assert len(nodes) == count


def test_mermaid_escapes_labels():
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
    assert without_strings.count("{") == without_strings.count("}") == 1 + len(all_programs(REAL[name][0]))
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


@each_program
def test_svg_has_separate_boxes_within_its_edges_and_arrows_downwards(name):
    program = REAL[name][0]
    root = ElementTree.fromstring(program.to_svg())
    ground, *rectangles = root.iter("{http://www.w3.org/2000/svg}rect")
    boxes = [[float(r.get(a)) for a in ("x", "y", "width", "height")] for r in rectangles]
    assert len(boxes) == sum(
        len(p.equations) + len(p.inputs) + len(p.constants) + 1 for p in all_programs(program)
    )
    right, below = float(ground.get("width")), float(ground.get("height"))
    assert all(x > 0 and y > 0 and x + w < right and y + h < below for x, y, w, h in boxes)
    for (x, y, w, h), (x2, y2, w2, h2) in itertools.combinations(boxes, 2):
        assert x + w < x2 or x2 + w2 < x or y + h < y2 or y2 + h2 < y
    lower_edges = {(round(x + w / 2, 1), round(y + h, 1)) for x, y, w, h in boxes}
    upper_edges = {(round(x + w / 2, 1), round(y, 1)) for x, y, w, h in boxes}
    paths = [p.get("d") for p in root.iter("{http://www.w3.org/2000/svg}path")]
    arrows = [(re.findall(NUMBER, line), re.findall(NUMBER, head)) for line, head in batched(paths, 2)]
    for (x, y, *_), (end, bottom, *_) in arrows:
        assert near((float(x), float(y)), lower_edges)
        assert near((float(end), float(bottom)), upper_edges)
        assert float(y) < float(bottom)


NUMBER = r"-?\d+\.\d+"


def batched(items, n):
    return zip(*[iter(items)] * n, strict=True)


def near(point, points):
    """Whether a point is one of these, to the last printed digit."""
    return any(abs(point[0] - x) < 0.11 and abs(point[1] - y) < 0.11 for x, y in points)


def test_svg_marks_variables_of_the_program_only():
    program = tk.trace(lambda x: tk.sin(x) * x)(1.0)
    assert program.to_svg(mark=["b"]).count("tk-marked") == program.to_svg().count("tk-marked") + 1
    with pytest.raises(
        tk.errors.ArgumentError, match=r"^to_svg: mark has 'c', and <lambda> has no such variable"
    ):
        program.to_svg(mark="ac")
    assert "&lt;lambda&gt;" in program.to_svg()


def test_layers_have_few_crossings_and_straight_arrows():
    """A ladder has a layout without crossings; a chain is straight."""
    size = (40.0, 20.0)
    nodes = [f"{side}{i}" for i in range(5) for side in "ab"]
    rails = [(f"{side}{i}", f"{side}{i + 1}") for i in range(4) for side in "ab"]
    mixed = layout(dict.fromkeys(nodes, size), [*rails[::-1], ("a0", "b4")])
    assert {mixed.centers[f"a{i}"][0] < mixed.centers[f"b{i}"][0] for i in range(5)} in ({True}, {False})
    (a, _), (b, _), (c, _), (d, _) = layout(
        dict.fromkeys("abcd", size), [("a", "d"), ("b", "c")]
    ).centers.values()
    assert (a < b) == (d < c)  # in the given order the two would cross
    fork = layout(dict.fromkeys("abcd", size), [("a", "b"), ("a", "c"), ("a", "d")]).centers
    assert fork["a"][0] == pytest.approx(fork["c"][0])  # above the mean of those that it leads to
    chain = layout(dict.fromkeys("abc", size), [("a", "b"), ("b", "c")])
    assert [x for x, _ in chain.centers.values()] == [20.0] * 3


def test_texts_have_no_addresses_of_objects():
    program = tk.trace(lambda x: Layer(x, x, odd_program))(1.0)
    assert " at 0x" in repr(odd_program)
    assert "<function odd_program>" in str(program)
    assert "0x" not in str(program) + program.to_svg()


class _Page(html.parser.HTMLParser):
    """Checks that tags are closed in order, and collects anchors, links and text."""

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
def test_the_html_is_well_formed_and_self_contained(name):
    program = REAL[name][0]
    page = _Page(program._repr_html_())
    assert len(page.places) == len(set(page.places))
    assert all(link[0] == "#" and link[1:] in page.places for link in page.links)
    assert "http" not in program._repr_html_()
    for equation in program.equations:
        assert f"{equation.op.name}" in page.text


def test_the_html_escapes_names_and_shortens_long_programs():
    page = _Page(odd_program()._repr_html_())
    assert f"d[{json.dumps(ODD)}]" in page.text

    def chain(x):
        for _ in range(1000):
            x = -x
        return x

    page = _Page(tk.trace(chain)(1.0)._repr_html_())
    assert "700 more: print(program) shows all" in page.text
    assert page.text.count("neg") == 300
