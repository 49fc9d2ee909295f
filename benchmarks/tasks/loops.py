"""Loops: an LSTM, an ordinary differential equation, and Hamiltonian Monte Carlo."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from tasks.case import normal, task

STEPS, BATCH, FEATURES, HIDDEN = 200, 32, 64, 128

ODE_STEPS = 10_000

TRAJECTORIES, LEAPFROGS, DIMENSIONS, EXAMPLES = 50, 20, 20, 100


def _lstm_arguments() -> tuple[Any, ...]:
    """Weights as in PyTorch, with the gates input, forget, cell and output one after the other; and the sequences."""
    scale = HIDDEN**-0.5
    weights = (
        normal(4 * HIDDEN, FEATURES, seed=1, scale=scale),
        normal(4 * HIDDEN, HIDDEN, seed=2, scale=scale),
    )
    return *weights, np.zeros(4 * HIDDEN, np.float32), normal(STEPS, BATCH, FEATURES)


@task("lstm_200")
def lstm(lib: Any) -> Any:
    """The hidden states of 200 steps of an LSTM (Hochreiter and Schmidhuber, 1997), with a batch of 32."""
    return lib.lstm, _lstm_arguments()


@task("lstm_gradient_200", 1e-3)
def lstm_gradient(lib: Any) -> Any:
    """The gradient of their mean square with respect to the weights.

    A loss of the last state alone would have gradients that vanish into subnormal numbers, which XLA takes as zeros and
    a processor multiplies a hundred times slower.
    """

    def loss(*arguments: Any) -> Any:
        return (lib.lstm(*arguments) ** 2).mean()

    return lib.grad(loss, (0, 1, 2)), _lstm_arguments()


@task("ode_10000", 1e-3)
def ode(lib: Any) -> Any:
    """10,000 Runge-Kutta steps of the Hénon-Heiles system: the position and momentum of a star, from which the
    trajectory is kept.
    """
    step = 0.01

    def derivative(state: Any) -> Any:
        x, y, p, q = state[0], state[1], state[2], state[3]
        return lib.xp.stack([p, q, -x - 2.0 * x * y, -y - x * x + y * y])

    def advance(state: Any, _: Any) -> Any:
        a = derivative(state)
        b = derivative(state + 0.5 * step * a)
        c = derivative(state + 0.5 * step * b)
        d = derivative(state + step * c)
        state = state + (step / 6.0) * (a + 2.0 * b + 2.0 * c + d)
        return state, state

    def trajectory(state: Any) -> Any:
        return lib.scan(advance, state, None, ODE_STEPS)

    return trajectory, (np.array([0.1, 0.2, 0.15, -0.1], np.float32),)


def _potential(lib: Any, x: Any, targets: Any, position: Any) -> Any:
    """Minus the logarithm of the posterior of a logistic regression with a normal prior."""
    z = x @ position
    return (
        -(targets * lib.log_sigmoid(z) + (1.0 - targets) * lib.log_sigmoid(-z)).sum()
        + 0.5 * (position * position).sum()
    )


@task("hmc_1000", 1e-3)
def hmc(lib: Any) -> Any:
    """Hamiltonian Monte Carlo (Neal, 2011) on a posterior of 20 dimensions: 50 proposals of 20 leapfrog steps each."""
    step = 0.05

    def sample(position: Any, x: Any, targets: Any, momenta: Any, logarithms: Any) -> Any:
        potential = functools.partial(_potential, lib, x, targets)
        gradient = lib.grad(potential)

        def leapfrog(state: Any, _: Any) -> Any:
            position, momentum = state
            momentum = momentum - 0.5 * step * gradient(position)
            position = position + step * momentum
            return (position, momentum - 0.5 * step * gradient(position)), None

        def propose(position: Any, random: Any) -> Any:
            momentum, logarithm = random
            (after, turned), _ = lib.scan(leapfrog, (position, momentum), None, LEAPFROGS)
            energy = potential(position) + 0.5 * (momentum * momentum).sum()
            change = potential(after) + 0.5 * (turned * turned).sum() - energy
            position = lib.xp.where(logarithm < -change, after, position)
            return position, position

        return lib.scan(propose, position, (momenta, logarithms), TRAJECTORIES)[1]

    return sample, _hmc_arguments()


def _hmc_arguments() -> tuple[Any, ...]:
    """The first position, the examples, and the random numbers, so that all libraries take the same samples."""
    x = normal(EXAMPLES, DIMENSIONS, seed=1)
    targets = (x @ normal(DIMENSIONS, seed=2) > 0).astype(np.float32)
    uniform = np.random.default_rng(3).uniform(1e-3, 1.0, TRAJECTORIES)
    momenta = normal(TRAJECTORIES, DIMENSIONS, seed=4)
    return np.zeros(DIMENSIONS, np.float32), x, targets, momenta, np.log(uniform).astype(np.float32)
