"""A tour of tensors: making them, computing with them, moving their elements about, and what strides have to do
with it.

    python examples/tour.py

Everything runs on whichever backend TENSORKEN_BACKEND names. The examples are those of the article "Fun and
Hackable Tensors in Rust, From Scratch" (2023) about Tensorken's Rust ancestor, and print what it prints. Each line
after `>>>` is evaluated as it stands, and what it gives is printed below it.
"""

from __future__ import annotations

import tensorken as tk
from tensorken_core.rewriting.view import View

NAMES: dict[str, object] = {"tk": tk, "View": View}
"""What the lines of the tour may speak of."""


def title(text: str) -> None:
    """Print a heading."""
    print(f"\n{text}\n{'-' * len(text)}")


def show(*lines: str) -> None:
    """Evaluate each line, which is an expression or gives one a name, and print its value."""
    for line in lines:
        print(f">>> {line}")
        name, is_named, expression = line.partition(" = ")
        if is_named and name.isidentifier():
            NAMES[name] = value = eval(expression, NAMES)
        else:
            value = eval(line, NAMES)
        print(value)


# ---- the operations ----------------------------------------------------------------------------------------


def creation() -> None:
    """A tensor is its elements, one after the other with the last index running fastest, and a shape."""
    title("Creation")
    show(
        "tk.new((3, 2), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0])",
        "t = tk.tensor([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])",
        "(t.shape, t.ndim, t.size)",
        "t.dtype",
        "t.ravel()",
    )


def unary() -> None:
    """These make a new tensor of the same shape, element by element. Nothing ever changes a tensor in place."""
    title("Unary operations")
    show("t.exp()", "t.log()")


def binary() -> None:
    """These take the elements of two tensors pairwise; `*` is no matrix product, `@` is."""
    title("Binary operations")
    show(
        "t1 = tk.new((2, 2), [0.0, 1.0, 2.0, 3.0])",
        "t2 = tk.new((2, 2), [6.0, 7.0, 8.0, 9.0])",
        "t1 + t2",
        "t1 * t2",
    )


def broadcasting() -> None:
    """Along an axis where one operand has size 1, its element is used again and again; missing axes count as 1.

    Missing axes are added in front: (2,) is taken for (1, 2) beside (3, 2), never for (2, 1).
    """
    title("Broadcasting")
    show(
        "t1 = tk.new((6,), [2.0, 1.0, 4.0, 2.0, 8.0, 4.0])",
        "s1 = tk.scalar(2.0)",
        "t1 + s1",
        "t1 + 2.0",
        "t1 = t1.reshape(3, 2)",
        "row = tk.tensor([[10.0, 100.0]])",
        "t1 + row",
        "column = tk.tensor([[10.0], [100.0], [1000.0]])",
        "t1 + column",
        "t1.reshape(2, 3) + s1",
        "t2 = tk.tensor([10.0, 100.0])",
        "(t1.shape, t2.shape)",
        "t1 + t2",
    )


def reductions() -> None:
    """A sum along an axis drops that axis, or keeps it with size 1, so that the result still broadcasts."""
    title("Reductions")
    show(
        "tk.tensor([0.0, 1.0, 2.0, 3.0]).sum()",
        "t = tk.new((2, 2), [0.0, 1.0, 2.0, 3.0])",
        "t.sum()",
        "t.sum((0, 1), keepdims=True)",
        "t.sum(0, keepdims=True)",
        "t.sum(1, keepdims=True)",
        "t.sum(1)",
        "t.max(1)",
    )

    # How often does one letter follow another? The counts of a row, divided by its sum, are the answer. A row's sum
    # must stand in its row: with keepdims it does, and without, each column would be divided by it.
    show(
        "counts = tk.tensor([[1.0, 3.0], [7.0, 5.0]])",
        "counts / counts.sum(1, keepdims=True)",
        "(counts / counts.sum(1, keepdims=True)).sum(1)",
        "(counts / counts.sum(1)).sum(1)",
    )


def movement() -> None:
    """These give the same elements other places; where strides can say that, none of them is copied."""
    title("Movement: slices")
    show("t", "t[1]", "t[1, 0]", "t[:, -1]", "t[::-1]")

    title("Movement: reshape and permute")
    show(
        "t = tk.linspace(0.0, 23.0, 24)",
        "t6x4 = t.reshape(6, 4)",
        "t3x8 = t6x4.reshape(3, 8)",
        "t3x8.permute(1, 0)",
    )

    # From three axes on, matrices stand side by side in a box.
    title("Movement: expand, crop and pad")
    show(
        "t = tk.new((1, 2, 2), [0.0, 1.0, 2.0, 3.0])",
        "t.expand((5, 2, 2))",
        "t = tk.new((3, 2), [2.0, 1.0, 4.0, 2.0, 8.0, 4.0])",
        "t.crop([(0, 2), (1, 2)])",
        "t.pad([(1, 2), (1, 3)])",
    )


# ---- two constructions -------------------------------------------------------------------------------------


def eye() -> None:
    """The identity matrix without a loop: ones, each n + 1 places after the last, fall on the diagonal."""
    title("The identity matrix, step by step")
    show(
        "n = 3",
        "t = tk.ones(1)",
        "t = t.pad([(0, n)])",
        "t = t.reshape(1, n + 1)",
        "t = t.expand((n, n + 1))",
        "t = t.reshape(n * (n + 1))",
        "t = t.crop([(0, n * n)])",
        "t = t.reshape(n, n)",
        "tk.eye(n)",
    )


def matmul() -> None:
    """The matrix product out of one multiplication and one sum, once the rows meet the columns by broadcasting.

    Here the product of all pairs is built because it is printed. When nobody looks at it on the way, the backend sees
    one contraction instead.
    """
    title("The matrix product, step by step")
    show(
        "l = tk.linspace(0.0, 11.0, 12).reshape(3, 4)",
        "r = tk.linspace(12.0, 23.0, 12).reshape(4, 3)",
        "l @ r",
    )
    show(
        "rows = l.reshape(3, 1, 4)",
        "columns = r.reshape(1, 4, 3).permute(0, 2, 1)",
        "(rows.shape, columns.shape)",
        "product = rows * columns",
        "product.shape",
        "total = product.sum(-1, keepdims=True)",
        "total.shape",
        "total.reshape(3, 3)",
    )


# ---- strides -----------------------------------------------------------------------------------------------


def strides() -> None:
    """How a backend without arrays of its own can move elements that lie still.

    A View maps an index to a place in a flat buffer: the offset, and for each axis its stride times the index.
    Movements are arithmetic on shape, strides and offset.
    """
    title("Strides: row-major order")
    show(
        "View.contiguous((3, 3)).strides",
        "View.contiguous((2, 3, 4)).strides",
        "View.contiguous((3, 3)).buffer_index((1, 2))",
    )

    title("Strides: what movements do to them")
    show(
        "View.contiguous((3, 2)).crop(((0, 2), (1, 2)))",
        "View.contiguous((1, 3)).expand((10, 3))",
        "View.contiguous((6,)).flip((0,))",
        "v = View.contiguous((6, 2)).permute((1, 0))",
        "list(v.indices())",
        "v.is_contiguous",
    )

    # Reshape splits axes and joins them. An axis can always be split; two can be joined if the outer one continues
    # where the inner one ends. The article has the first of these copy, which the strides 1, 6, 2 save.
    title("Strides: when a reshape must copy")
    show(
        "v.reshape((2, 2, 3))",
        "v.reshape((12,)) is None",
        "v.reshape((4, 3)) is None",
        "View.contiguous((24,)).reshape((3, 2, 4))",
    )

    # The article's way back, quotient and remainder by axis, goes astray after a crop: it would say (1, 0) here.
    title("Strides: from the buffer back to the index")
    show(
        "c = View.contiguous((2, 3)).crop(((0, 2), (1, 3)))",
        "c.buffer_index((1, 1))",
        "c.tensor_index(5)",
        "list(View.contiguous((1, 3)).expand((2, 3)).tensor_indices(1))",
    )


def main() -> None:
    """Go through everything."""
    print("A tour of tensors")
    for part in (creation, unary, binary, broadcasting, reductions, movement, eye, matmul, strides):
        part()


if __name__ == "__main__":
    main()
