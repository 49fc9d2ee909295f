"""Training in five steps, with only tensors and `value_and_grad`: a small network learns a sine wave.

Run it with `python examples/train.py`; TENSORKEN_BACKEND chooses the backend.
"""

import math
import random

import tensorken as tk

STEPS, RATE = 300, 0.2

# 1. Data: inputs and targets.
inputs = tk.linspace(-math.pi, math.pi, 32).reshape(32, 1)
targets = tk.sin(inputs)

# 2. The model: parameters in a dict, and a function that predicts with them.
rng = random.Random(0)
parameters = {
    "hidden": tk.randn((1, 16), rng),
    "shift": tk.randn((16,), rng),
    "out": tk.randn((16, 1), rng) * 0.25,
}


def predict(parameters: dict[str, tk.Tensor], inputs: tk.Tensor) -> tk.Tensor:
    """A network with one hidden layer."""
    return tk.tanh(inputs @ parameters["hidden"] + parameters["shift"]) @ parameters["out"]


# 3. The loss: a number that is small for good predictions.
def loss(parameters: dict[str, tk.Tensor]) -> tk.Tensor:
    """The mean squared error."""
    error = predict(parameters, inputs) - targets
    return (error * error).mean()


for step in range(STEPS + 1):
    # 4. The gradient of the loss: a dict with the same keys as the parameters.
    value, gradient = tk.value_and_grad(loss)(parameters)
    if step % 60 == 0:
        print(f"step {step:3d}: loss {value.item():.4f}")
    # 5. A step against the gradient.
    parameters = tk.tree.map(lambda p, g: p - RATE * g, parameters, gradient)

for x in (-2.0, 0.5, 1.5):
    predicted = predict(parameters, tk.tensor([[x]])).item()
    print(f"sin({x:4.1f}) is {math.sin(x):6.3f}, the network says {predicted:6.3f}")


def draw(figure) -> None:
    """The sine wave and the network's prediction, which is close to it."""
    axes = figure.subplots()
    axes.plot(inputs.ravel(), targets.ravel(), "o", color="C1", label="sine")
    axes.plot(inputs.ravel(), predict(parameters, inputs).ravel(), label="network")
    axes.set(xlabel="x", ylabel="y")
    axes.legend()
