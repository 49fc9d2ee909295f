"""A fixed point whose derivative is implicit: the loop that finds it is not differentiated."""

from __future__ import annotations

from functools import partial

import tensorken as tk


@partial(tk.custom_vjp, nondiff_argnums=(0,))
def fixed_point(f, a, x):
    """The x with f(a, x) = x, by iteration."""

    def unfinished(carry):
        before, now = carry
        return tk.abs(before - now) > 1e-12

    def step(carry):
        _, now = carry
        return now, f(a, now)

    return tk.while_loop(unfinished, step, (x, f(a, x)))[1]


def forward(f, a, x):
    """The fixed point, and the values for its derivative."""
    result = fixed_point(f, a, x)
    return result, (a, result)


def backward(f, kept, cotangent):
    """The derivative by the implicit function theorem, itself a fixed point."""
    a, result = kept
    adjoint = fixed_point(partial(adjoint_step, f), (a, result, cotangent), cotangent)
    _, pull_back = tk.vjp(lambda a: f(a, result), a)
    return pull_back(adjoint)[0], tk.zeros_like(result)


def adjoint_step(f, packed, u):
    """The step whose fixed point is the derivative; all its tensors are arguments, so that it has derivatives too."""
    a, result, cotangent = packed
    _, pull_back = tk.vjp(lambda x: f(a, x), result)
    return cotangent + pull_back(u)[0]


fixed_point.defvjp(forward, backward)


def root(a: tk.Tensor) -> tk.Tensor:
    """The square root of a by Newton's iteration."""
    return fixed_point(lambda a, x: 0.5 * (x + a / x), a, a)


a = tk.tensor(2.0, dtype="float64")
print(f"root {root(a):.8f}, by sqrt {tk.sqrt(a):.8f}")
print(f"slope {tk.grad(root)(a):.8f}, by formula {0.5 / tk.sqrt(a):.8f}")
print(f"curvature {tk.grad(tk.grad(root))(a):.8f}, by formula {-0.25 * a**-1.5:.8f}")
several = tk.tensor([1.0, 4.0, 9.0], dtype="float64")
print(f"of several: roots {tk.vmap(root)(several):.6f}, slopes {tk.vmap(tk.grad(root))(several):.6f}")


def kepler(eccentricity: tk.Tensor) -> tk.Tensor:
    """The eccentric anomaly at mean anomaly 1: Kepler's equation E = 1 + e sin(E)."""
    return fixed_point(lambda e, x: 1.0 + e * tk.sin(x), eccentricity, tk.ones_like(eccentricity))


e = tk.tensor(0.3, dtype="float64")
anomaly = kepler(e)
formula = tk.sin(anomaly) / (1 - e * tk.cos(anomaly))
print(f"Kepler: {anomaly:.8f}, slope {tk.grad(kepler)(e):.8f}, by formula {formula:.8f}")


def draw(figure) -> None:
    """The root of a from 0.2 to 4, its slope and its curvature: two implicit derivatives of the same loop."""
    axes = figure.subplots()
    several = tk.linspace(0.2, 4.0, 60, dtype="float64")
    for name, function in (("root", root), ("slope", tk.grad(root)), ("curvature", tk.grad(tk.grad(root)))):
        axes.plot(several, tk.vmap(function)(several), label=name)
    axes.set(xlabel="a", ylim=(-1.5, 2.2))
    axes.legend()
