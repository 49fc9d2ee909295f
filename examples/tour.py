"""A tour of tensors: creation, computation, movement of elements, and strides.

    python examples/tour.py

TENSORKEN_BACKEND chooses the backend. The examples and their output are those of the article "Fun and Hackable
Tensors in Rust, From Scratch" (2023) about Tensorken's Rust ancestor. Each line after `>>>` is evaluated, and its
value is printed below.
"""

from __future__ import annotations

import tensorken as tk
from tensorken_core.rewriting.view import View

NAMES: dict[str, object] = {"tk": tk, "View": View}
"""The variables of the tour."""


def title(text: str) -> None:
    """Print a heading."""
    print(f"\n{text}\n{'-' * len(text)}")


def show(*lines: str) -> None:
    """Evaluate each line, an expression or an assignment, and print its value."""
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
    """A tensor consists of a shape and its elements in row-major order, in which the last index changes fastest."""
    title("Creation")
    show(
        "tk.new((3, 2), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0])",
        "t = tk.tensor([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])",
        "(t.shape, t.ndim, t.size)",
        "t.dtype",
        "t.ravel()",
    )


def unary() -> None:
    """Unary operations make a new tensor of the same shape, elementwise. Tensors are never changed in place."""
    title("Unary operations")
    show("t.exp()", "t.log()")


def binary() -> None:
    """Binary operations combine the elements of two tensors pairwise; `*` is elementwise, `@` is the matrix product."""
    title("Binary operations")
    show(
        "t1 = tk.new((2, 2), [0.0, 1.0, 2.0, 3.0])",
        "t2 = tk.new((2, 2), [6.0, 7.0, 8.0, 9.0])",
        "t1 + t2",
        "t1 * t2",
    )


def broadcasting() -> None:
    """Along an axis where one operand has size 1, its element is repeated; missing axes count as size 1.

    Missing axes are added in front: with (3, 2), (2,) is taken as (1, 2), never as (2, 1).
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
    """A sum along an axis removes that axis, or keeps it with size 1, so that the result broadcasts."""
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

    # How often does one letter follow another? The frequencies are the counts of each row divided by the row's sum.
    # With keepdims, the sums broadcast along rows; without, each column would be divided by them.
    show(
        "counts = tk.tensor([[1.0, 3.0], [7.0, 5.0]])",
        "counts / counts.sum(1, keepdims=True)",
        "(counts / counts.sum(1, keepdims=True)).sum(1)",
        "(counts / counts.sum(1)).sum(1)",
    )


def movement() -> None:
    """Movement operations rearrange elements; if strides can express that, nothing is copied."""
    title("Movement: slices")
    show("t", "t[1]", "t[1, 0]", "t[:, -1]", "t[::-1]")

    title("Movement: reshape and permute")
    show(
        "t = tk.linspace(0.0, 23.0, 24)",
        "t6x4 = t.reshape(6, 4)",
        "t3x8 = t6x4.reshape(3, 8)",
        "t3x8.permute(1, 0)",
    )

    # With three axes or more, matrices are printed side by side in a box.
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
    """The identity matrix without a loop: ones at a distance of n + 1 elements fall on the diagonal."""
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
    """The matrix product as one multiplication and one sum, after broadcasting rows against columns.

    Here the product of all pairs is computed because its shape is read step by step. Without these steps, the
    backend runs a single contraction.
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
    """How a backend without its own arrays can implement movement operations without moving elements.

    A View maps an index to a position in a flat buffer: the offset plus, for each axis, its stride times the index.
    Movement operations are arithmetic on shape, strides and offset.
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

    # Reshape splits and joins axes. An axis can always be split; two can be joined if the outer one continues where the
    # inner one ends. The article copies in the first example; the strides 1, 6, 2 make that unnecessary.
    title("Strides: when a reshape must copy")
    show(
        "v.reshape((2, 2, 3))",
        "v.reshape((12,)) is None",
        "v.reshape((4, 3)) is None",
        "View.contiguous((24,)).reshape((3, 2, 4))",
    )

    # The article's inverse, by quotient and remainder for each axis, is wrong after a crop: it would give (1, 0) here.
    title("Strides: from the buffer back to the index")
    show(
        "c = View.contiguous((2, 3)).crop(((0, 2), (1, 3)))",
        "c.buffer_index((1, 1))",
        "c.tensor_index(5)",
        "list(View.contiguous((1, 3)).expand((2, 3)).tensor_indices(1))",
    )


def draw(figure) -> None:
    """A matrix of two rows of three numbers, reshaped, permuted, flipped, cropped and padded: its numbers move."""
    t = tk.arange(1, 7).reshape(2, 3)
    moved = {
        "t": t,
        "reshape": t.reshape(3, 2),
        "permute": t.permute((1, 0)),
        "flip": t.flip((1,)),
        "crop": t.crop(((0, 2), (1, 3))),
        "pad": t.pad(((0, 1), (1, 0))),
    }
    for axes, (name, matrix) in zip(figure.subplots(2, 3).flat, moved.items(), strict=True):
        axes.imshow(matrix, vmin=0, vmax=6, cmap="cividis")
        for i, row in enumerate(matrix.tolist()):
            for j, value in enumerate(row):
                axes.text(j, i, value, color="white" if value < 4 else "black", ha="center", va="center")
        axes.set_title(name)
        axes.set_axis_off()


def main() -> None:
    """Run all parts; matrices are printed in boxes, as in the article."""
    print("A tour of tensors")
    with tk.printoptions(style="boxes", linewidth=88):
        for part in (creation, unary, binary, broadcasting, reductions, movement, eye, matmul, strides):
            part()


if __name__ == "__main__":
    main()
