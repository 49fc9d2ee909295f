"""Grids that change step by step: the Game of Life, the Mandelbrot set, heat and a walk of many particles."""

from __future__ import annotations

import numpy as np

import tensorken as tk

tk.set_printoptions(precision=4, suppress=True)

# The Game of Life: a glider moves by one cell along the diagonal in four steps.
board = tk.zeros((8, 8), dtype="uint8")
glider = tk.array([[0, 1, 0], [0, 0, 1], [1, 1, 1]], dtype="uint8")
board = tk.pad(glider, ((1, 4), (1, 4)))


def neighbours(board: tk.Tensor) -> tk.Tensor:
    """The number of living cells around each cell of a torus."""
    steps = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)]
    return sum(tk.roll(board, step, axis=(0, 1)) for step in steps)


start = board
for _ in range(4):
    count = neighbours(board)
    board = ((count == 3) | ((board == 1) & (count == 2))).astype("uint8")
print("\n".join("".join(".#"[cell] for cell in row) for row in board[:6]))
print("moved by one cell:", tk.array_equal(board, tk.roll(start, (1, 1), axis=(0, 1))))


# The Mandelbrot set.
def steps_inside(c: tk.Tensor) -> tk.Tensor:
    """The steps, up to 30, for which z * z + c stays in the disk of radius two."""
    z, steps = tk.zeros_like(c), tk.zeros(c.shape, dtype="int32")
    for _ in range(30):
        inside = tk.abs(z) <= 2
        z = tk.where(inside, z * z + c, z)
        steps = steps + inside
    return steps


c = tk.linspace(-2, 0.6, 40, dtype="float64") + 1j * tk.linspace(1.2, -1.2, 13, dtype="float64")[:, None]
print("\n".join("".join(" .:-=+*#"[n * 7 // 30] for n in row) for row in steps_inside(c).tolist()))

# Heat in a plate with one hot side: the mean of the neighbours, until nothing changes.
plate = tk.pad(tk.zeros((6, 8), dtype="float64"), 1)
hot = tk.arange(8) == 0
for _ in range(400):
    inner = (plate[:-2, 1:-1] + plate[2:, 1:-1] + plate[1:-1, :-2] + plate[1:-1, 2:]) / 4
    plate = tk.pad(inner, 1)
    plate = tk.where(hot[:, None], 100.0, plate)
print("temperatures:")
print(plate[:4, :5].round(2))

# A random walk of 1000 particles.
moves = tk.asarray(np.random.default_rng(2).choice([-1, 1], size=(1000, 100)))
paths = tk.cumsum(moves, axis=1)
print("mean square distance after 25, 50 and 100 steps:", (paths**2).mean(axis=0)[[24, 49, 99]])
print("share that returned to 0:", (paths == 0).any(axis=1).mean(), "farthest:", tk.abs(paths).max())


def draw(figure) -> None:
    """The Mandelbrot set, coloured by the steps after which points leave the disk of radius two."""
    axes = figure.subplots()
    c = (
        tk.linspace(-2, 0.6, 260, dtype="float64")
        + 1j * tk.linspace(1.2, -1.2, 240, dtype="float64")[:, None]
    )
    axes.imshow(steps_inside(c), extent=(-2, 0.6, -1.2, 1.2), cmap="cividis")
    axes.set(xlabel="real part", ylabel="imaginary part")
