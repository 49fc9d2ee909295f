"""Burgers' equation u_t + u u_x = nu u_xx on a circle, by Fourier transforms, and how its energy depends on the start.

The term with second derivatives is exact by an integrating factor, and the other one takes steps of Runge and Kutta of
order four.  Products are free of aliases by the rule of two thirds.
"""

from __future__ import annotations

import math

import tensorken as tk

POINTS, STEPS, DT, VISCOSITY = 32, 40, 0.025, 0.1

x = tk.arange(POINTS, dtype="float64") * (2.0 * math.pi / POINTS)
k = tk.fft.rfftfreq(POINTS, 1.0 / POINTS, dtype="float64")
kept = (k < POINTS / 3).astype("float64")
decay = tk.exp(-VISCOSITY * DT / 2.0 * k * k)


def slope(v: tk.Tensor) -> tk.Tensor:
    """The transform of -u u_x = -(u**2)_x / 2, times the step, for v the transform of u."""
    u = tk.fft.irfft(v, POINTS)
    return tk.fft.rfft(u * u) * (-0.5j * DT) * (k * kept)


@tk.jit
def step(v: tk.Tensor) -> tk.Tensor:
    """The transform of u one step later."""
    a = slope(v)
    b = slope(decay * (v + a * 0.5))
    c = slope(decay * v + b * 0.5)
    d = slope(decay * (decay * v + c))
    return decay * decay * (v + a / 6.0) + decay * (b + c) / 3.0 + d / 6.0


def energy(u: tk.Tensor) -> tk.Tensor:
    """The mean of u**2 / 2."""
    return (u * u).mean() * 0.5


def solve(u: tk.Tensor) -> tk.Tensor:
    """u after all steps."""
    v = tk.fft.rfft(u)
    for _ in range(STEPS):
        v = step(v)
    return tk.fft.irfft(v, POINTS)


start = tk.sin(x) + 0.5 * tk.cos(2.0 * x)
v = tk.fft.rfft(start)
for i in range(STEPS + 1):
    u = tk.fft.irfft(v, POINTS)
    if i % 10 == 0:
        steepest = tk.fft.irfft(v * 1j * k, POINTS).min()
        print(f"time {i * DT:.2f}: energy {energy(u).item():.8f}, steepest descent {steepest.item():.8f}")
    v = step(v)
print("u at every fourth point:")
print(f"{solve(start)[::4]:.6f}")
print("the derivative of the energy with respect to the start, at every fourth point:")
print(f"{tk.grad(lambda u: energy(solve(u)) * POINTS)(start)[::4]:.6f}")


def draw(figure) -> None:
    """The wave at five times: its front becomes steep, and its height falls."""
    axes = figure.subplots()
    v = tk.fft.rfft(start)
    for i in range(STEPS + 1):
        if i % 10 == 0:
            axes.plot(x, tk.fft.irfft(v, POINTS), label=f"time {i * DT:.2f}")
        v = step(v)
    axes.set(xlabel="x", ylabel="u")
    axes.legend()
