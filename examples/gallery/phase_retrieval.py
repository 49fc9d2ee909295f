"""Phase retrieval: a complex signal from the magnitudes of its masked Fourier transforms, by complex gradients."""

from __future__ import annotations

import numpy as np

import tensorken as tk

rng = np.random.default_rng(5)
SIZE, MASKS = 16, 8
signal = tk.asarray(rng.normal(size=SIZE) + 1j * rng.normal(size=SIZE))
masks = tk.asarray(np.exp(2j * np.pi * rng.integers(0, 4, size=(MASKS, SIZE)) / 4))
power = tk.abs(tk.fft.fft(masks * signal)) ** 2


def loss(guess: tk.Tensor) -> tk.Tensor:
    """The mean square difference of the powers."""
    return ((tk.abs(tk.fft.fft(masks * guess)) ** 2 - power) ** 2).mean()


def error(guess: tk.Tensor) -> tk.Tensor:
    """The distance to the signal, up to a common phase, which no power shows."""
    overlap = tk.vdot(guess, signal)
    return tk.linalg.norm(guess * (overlap / tk.abs(overlap)) - signal) / tk.linalg.norm(signal)


# The start: the leading eigenvector of the mean of power-weighted projections, by the power method.
guess = tk.ones(SIZE, dtype="complex128")
for _ in range(100):
    guess = (tk.fft.ifft(power * tk.fft.fft(masks * guess)) * masks.conj()).mean(axis=0)
    guess = guess / tk.linalg.norm(guess)
guess = guess * tk.sqrt(power.mean())  # by Parseval, the square of its length is the mean power
start = guess

step = tk.jit(tk.value_and_grad(loss))
for i in range(201):
    value, gradient = step(guess)
    if i % 40 == 0:
        print(f"step {i:3}: loss {value:.3e}, relative error {error(guess):.3e}")
    guess = guess - 1e-3 * gradient.conj()  # the gradient of a real loss is df/dx - i df/dy, as in JAX


def draw(figure) -> None:
    """The complex numbers of the signal, of the start and of the result, which meets the signal."""
    axes = figure.subplots()
    for name, values, style in (("signal", signal, "o"), ("start", start, "^"), ("result", guess, ".")):
        overlap = tk.vdot(values, signal)
        values = values * (overlap / tk.abs(overlap))
        hollow = {"fillstyle": "none", "markersize": 10} if values.shape and name == "signal" else {}
        axes.plot(tk.real(values), tk.imag(values), style, label=name, **hollow)
    axes.set(xlabel="real part", ylabel="imaginary part")
    axes.set_aspect("equal")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
