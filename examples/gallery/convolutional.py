"""A convolutional network: it learns to tell horizontal from vertical stripes."""

from __future__ import annotations

import tensorken as tk
import tensorken_nn as nn


class Network(nn.Module):
    """Two convolutions, the mean of each channel, and a linear layer."""

    first: nn.Conv2d
    second: nn.Conv2d
    last: nn.Linear

    def __init__(self, key: tk.Tensor, dtype=tk.float64) -> None:
        a, b, c = tk.random.split(key, 3)
        self.first = nn.Conv2d(1, 4, 3, key=a, dtype=dtype)
        self.second = nn.Conv2d(4, 8, 3, stride=2, key=b, dtype=dtype)
        self.last = nn.Linear(8, 2, key=c, dtype=dtype)

    def __call__(self, x: tk.Tensor) -> tk.Tensor:
        """From images of shape (n, 1, rows, columns) to scores of the two classes."""
        x = tk.relu(self.first(x))
        x = tk.relu(self.second(x))
        return self.last(x.mean(axis=(-2, -1)))


def stripes(count: int, key: tk.Tensor) -> tuple[tk.Tensor, tk.Tensor]:
    """Noisy images of 8 by 8 with stripes of different widths, and whether they are vertical."""
    for_noise, for_width, for_class = tk.random.split(key, 3)
    labels = tk.random.randint(for_class, (count,), 0, 2)
    width = tk.random.uniform(for_width, (count, 1, 1), "float64", minval=1.5, maxval=3.0)
    i, j = tk.meshgrid(tk.arange(8), tk.arange(8), indexing="ij")
    along = tk.where(labels[:, None, None] == 1, j, i)
    noise = 0.3 * tk.random.normal(for_noise, (count, 8, 8), "float64")
    return (tk.sin(along * width) + noise)[:, None], labels


def loss(model: Network, images: tk.Tensor, labels: tk.Tensor) -> tk.Tensor:
    """The mean cross-entropy."""
    return nn.cross_entropy(model(images), labels)


for_model, for_training, for_test = tk.random.split(tk.random.key(3), 3)
model, (images, labels) = Network(for_model), stripes(64, for_training)
print(model)
optimizer = nn.Adam(0.02)
state = optimizer.init(model)


@tk.jit
def step(model: Network, state):
    """The loss, and the model and the state of the optimizer after a step."""
    value, gradient = tk.value_and_grad(loss)(model, images, labels)
    return value, *optimizer.update(model, gradient, state)


for i in range(31):
    value, model, state = step(model, state)
    if i % 10 == 0:
        print(f"step {i:2}: loss {value:.3f}")
images, labels = stripes(100, for_test)
print(f"accuracy on other images: {(model(images).argmax(axis=1) == labels).mean():.2f}")


def draw(figure) -> None:
    """Four noisy images of stripes, and the four kernels of three by three weights that the network has learned."""
    for column in range(4):
        axes = figure.add_subplot(2, 4, column + 1)
        axes.imshow(images[column, 0], cmap="gray")
        axes.set_title("vertical" if labels[column] else "horizontal")
        axes.set_axis_off()
        axes = figure.add_subplot(2, 4, column + 5)
        axes.imshow(model.first.weight[column, 0], cmap="PuOr", vmin=-1, vmax=1)
        axes.set_title(f"kernel {column + 1}")
        axes.set_axis_off()
