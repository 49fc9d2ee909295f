"""The tour of the article on tensors from scratch: values, shapes and how they print, eye and matmul step by step."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import tensorken as tk

SEEDS = json.loads((Path(__file__).parents[1] / "fixtures" / "seeds.json").read_text(encoding="utf-8"))
STEPS = {step["name"]: step for step in SEEDS["s001_tour"]["steps"]}
RTOL = SEEDS["s001_tour"]["rtol"]


def small(*shape: int) -> tk.Tensor:
    """0, 1, 2, ... in a shape."""
    size = tk.ones(shape).size
    return tk.linspace(0.0, size - 1.0, size).reshape(shape)


def scores() -> tk.Tensor:
    return tk.new((3, 2), [2.0, 1.0, 4.0, 2.0, 8.0, 4.0])


# What each step of the tour does; its expected value, shape and text are in the fixture under the same name.
TOUR: dict[str, Callable[[], tk.Tensor]] = {
    "new([3,2],0..5)": lambda: tk.new((3, 2), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]),
    "exp": lambda: small(3, 2).exp(),
    "log": lambda: small(3, 2).log(),
    "t1+t2": lambda: small(2, 2) + tk.tensor([[6.0, 7.0], [8.0, 9.0]]),
    "t1*t2": lambda: small(2, 2) * tk.tensor([[6.0, 7.0], [8.0, 9.0]]),
    "row+scalar": lambda: scores().reshape(6) + tk.tensor([2.0]),
    "[3,2]+[1,2]": lambda: scores() + tk.tensor([[10.0, 100.0]]),
    "[3,2]+[3,1]": lambda: scores() + tk.tensor([[10.0], [100.0], [1000.0]]),
    "[2,3]+scalar": lambda: scores().reshape(2, 3) + tk.tensor([2.0]),
    "[3,2]+[2]": lambda: scores() + tk.tensor([10.0, 100.0]),
    "[0,1,2,3].sum([0])": lambda: small(4).sum((0,), keepdims=True),
    "sum([0,1])": lambda: small(2, 2).sum((0, 1), keepdims=True),
    "sum([0])": lambda: small(2, 2).sum((0,), keepdims=True),
    "sum([1])": lambda: small(2, 2).sum((1,), keepdims=True),
    "at(1)": lambda: small(2, 2)[1],
    "at([1,0])": lambda: small(2, 2)[1, 0],
    "linspace(0,23,24)": lambda: tk.linspace(0.0, 23.0, 24),
    "reshape[6,4]": lambda: tk.linspace(0.0, 23.0, 24).reshape(6, 4),
    "reshape[3,8]": lambda: tk.linspace(0.0, 23.0, 24).reshape(6, 4).reshape(3, 8),
    "permute[1,0] of [3,8]": lambda: tk.linspace(0.0, 23.0, 24).reshape(3, 8).permute(1, 0),
    "expand[1,2,2]->[5,2,2]": lambda: small(1, 2, 2).expand((5, 2, 2)),
    "crop[(0,2),(1,2)]": lambda: scores().crop([(0, 2), (1, 2)]),
    "pad[(1,2),(1,3)]": lambda: scores().pad([(1, 2), (1, 3)]),
}


def words(text: str) -> list[str]:
    """The lines of a text, with runs of blanks as one: the article's own blanks were lost in print."""
    return [" ".join(line.replace("[", "[ ").replace("]", " ]").split()) for line in text.splitlines()]


def boxes(x: tk.Tensor) -> str:
    """The text of a tensor in the style of the article."""
    with tk.printoptions(style="boxes", linewidth=88):
        return str(x)


def test_no_step_of_the_tour_is_left_out() -> None:
    assert TOUR.keys() == STEPS.keys()


@pytest.mark.feature(3, 8, 12, 14, 15, 17, 18, 19, 21, 24, 25, 27, 29, 30, 31, 32, 33)
@pytest.mark.parametrize("name", TOUR)
def test_a_step_of_the_tour(name: str, backend: str, close: Callable[..., None]) -> None:
    step = STEPS[name]
    result = TOUR[name]()
    assert result.backend == backend
    assert result.dtype is tk.float32
    # The order of the elements is their row-major order, whatever has moved them.
    close(result.reshape(-1), step["expected"], rtol=RTOL)
    assert result.shape == tuple(step["shape"])


@pytest.mark.feature(50, 51)
@pytest.mark.parametrize(
    "name", [name for name in TOUR if STEPS[name]["display"] and name not in ("exp", "log")]
)
def test_a_step_of_the_tour_prints_as_in_the_article(name: str, backend: str) -> None:
    assert words(boxes(TOUR[name]())) == words("\n".join(STEPS[name]["display"]))


@pytest.mark.feature(50, 51)
@pytest.mark.parametrize("name", ["exp", "log"])
def test_transcendental_steps_print_the_nearest_floats(name: str, backend: str) -> None:
    """The article's logarithm, and numpy's, may miss by one unit in the last place; the reference does not."""
    printed, expected = words(boxes(TOUR[name]())), words("\n".join(STEPS[name]["display"]))
    for line, wanted in zip(printed, expected, strict=True):
        for number, near in zip(line.split(), wanted.split(), strict=True):
            if number != near:
                assert float(number) == pytest.approx(float(near), rel=RTOL)
                assert len(number) <= len(near) + 1  # still the shortest text of a float32
    if backend == "reference" and name == "exp":
        assert printed == expected


@pytest.mark.feature(21, 23)
def test_dividing_rows_by_their_sums(backend: str, close: Callable[..., None]) -> None:
    counts = tk.tensor([[1.0, 3.0], [1.0, 1.0]])
    by_rows = counts / counts.sum(1, keepdims=True)
    by_columns = counts / counts.sum(0, keepdims=True)
    close(by_rows.sum(1), [1.0, 1.0], rtol=1e-6)
    close(by_columns.sum(0), [1.0, 1.0], rtol=1e-6)
    assert by_columns.sum(1).tolist() != pytest.approx([1.0, 1.0])
    # Without the kept axis, the sums of the rows would divide the columns.
    close(counts / counts.sum(1), [[0.25, 1.5], [0.25, 0.5]], rtol=1e-6)


@pytest.mark.feature(47)
def test_eye_step_by_step(backend: str, close: Callable[..., None]) -> None:
    n = 3
    one = tk.ones((1,))
    row = one.pad([(0, n)])
    flat_row = row.reshape(1, n + 1)
    rows = flat_row.expand((n, n + 1))
    flat = rows.reshape(n * (n + 1))
    cut = flat.crop([(0, n * n)])
    steps = [one, row, flat_row, rows, flat, cut, cut.reshape(n, n)]
    for result, step in zip(steps, SEEDS["s001_eye_steps"], strict=True):
        close(result.reshape(-1), step["data"], rtol=0.0)
        assert result.shape == tuple(step["shape"])
        assert words(boxes(result)) == words("\n".join(step["display"]))
    close(tk.eye(n), steps[-1].tolist(), rtol=0.0)


@pytest.mark.feature(47)
@pytest.mark.parametrize("n", range(1, 9))
def test_eye_of_every_size(n: int, backend: str, close: Callable[..., None]) -> None:
    close(tk.eye(n), [[float(i == j) for j in range(n)] for i in range(n)], rtol=0.0)


@pytest.mark.feature(48, 50)
def test_matmul_step_by_step(backend: str, close: Callable[..., None]) -> None:
    expected = SEEDS["s001_matmul_steps"]
    left = tk.linspace(0.0, 11.0, 12).reshape(3, 4)
    right = tk.linspace(12.0, 23.0, 12).reshape(4, 3)
    close(left, expected["l"], rtol=0.0)
    close(right, expected["r"], rtol=0.0)
    rows = left.reshape(3, 1, 4)
    assert rows.shape == tuple(expected["l_reshaped_shape"])
    assert words(boxes(rows)) == words("\n".join(expected["display_l"]))
    columns = right.reshape(1, 4, 3)
    assert columns.shape == tuple(expected["r_reshaped_shape"])
    columns = columns.permute(0, 2, 1)
    assert columns.shape == tuple(expected["r_transposed_shape"])
    assert words(boxes(columns)) == words("\n".join(expected["display_r"]))
    product = rows * columns
    assert product.shape == tuple(expected["prod_shape"])
    close(product, expected["prod"], rtol=0.0)
    total = product.sum(-1, keepdims=True)
    assert total.shape == tuple(expected["sum_shape"])
    close(total.reshape(3, 3), expected["result"], rtol=0.0)
    close(left @ right, expected["result"], rtol=0.0)


@pytest.mark.feature(9, 13)
def test_what_goes_in_comes_out_and_nothing_changes(backend: str) -> None:
    data = [2.0, 1.0, 4.0, 2.0, 8.0, 4.0]
    t = tk.new((3, 2), data)
    assert t.ravel().tolist() == data
    results = [t.exp(), t + t, t.sum(), t.reshape(2, 3), t.permute(1, 0), t[1], t.pad([(0, 1), (0, 0)])]
    data[0] = 100.0
    assert t.ravel().tolist() == [2.0, 1.0, 4.0, 2.0, 8.0, 4.0]
    assert all(result is not t for result in results)
    with pytest.raises(TypeError, match=r"immutable; x\.at\[i\]\.set\(v\)"):
        t[0] = 1.0


@pytest.mark.feature(10, 35, 55)
def test_errors_leave_everything_usable(backend: str) -> None:
    t = scores()
    with pytest.raises(ValueError, match=r"new: shape \(2, 2\) needs 4 values"):
        tk.new((2, 2), [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match=r"add: .*\(3, 2\).*\(3,\)"):
        t + tk.ones(3)
    with pytest.raises(ValueError, match="crop: "):
        t.crop([(0, 4), (0, 2)])
    with pytest.raises(ValueError, match="crop: "):
        t.crop([(-1, 2), (0, 2)])
    assert (t + 1.0).tolist() == [[3.0, 2.0], [5.0, 3.0], [9.0, 5.0]]


@pytest.mark.feature(193)
def test_a_precision_in_the_format(backend: str) -> None:
    e = small(3, 2).exp()
    assert words(f"{e:.3f}") == words("[[1.000 2.718]\n[7.389 20.086]\n[54.598 148.413]]")
    assert f"{e[0, 1]:.2f}" == "2.72"
