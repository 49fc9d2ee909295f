"""Modules: immutable trees of tensors, and their repr."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import pytest

import tensorken as tk
import tensorken_nn as nn
from tensorken import Tensor
from tensorken_core import tree
from tensorken_core.errors import ArgumentError

KEY = tk.random.key(0)


class Pair(nn.Module):
    """Two modules, a size, and a name with a default."""

    left: Any
    right: Any
    size: int = nn.static()
    name: str = nn.static(default="pair")


def pair() -> Pair:
    return Pair(nn.Linear(2, 3, key=KEY), {"deep": [tk.ones((2,))]}, 7)


@pytest.mark.feature(153)
def test_a_module_is_a_tree_of_its_tensors() -> None:
    module = pair()
    leaves, structure = tree.flatten(module)
    assert [leaf.shape for leaf in leaves] == [(3, 2), (3,), (2,)]
    again = tree.unflatten(structure, leaves)
    assert isinstance(again, Pair) and again.size == 7 and again.name == "pair"
    assert isinstance(again.left, nn.Linear) and again.right["deep"][0] is module.right["deep"][0]


def test_static_fields_belong_to_the_structure() -> None:
    module = pair()
    assert tree.structure(module) == tree.structure(pair())
    assert tree.structure(module) != tree.structure(module.replace(size=8))
    calls = []

    @tk.jit
    def compiled(module: Pair) -> Tensor:
        calls.append(module.size)
        return module.right["deep"][0] * module.size

    for size in (7, 8, 7):
        assert compiled(module.replace(size=size)).tolist() == [float(size)] * 2
    assert calls == [7, 8]


def test_fields_are_set_once() -> None:
    module = pair()
    with pytest.raises(
        AttributeError,
        match=r"'size' is already set and modules are immutable; .* module.replace\(size=\.\.\.\)",
    ):
        module.size = 3
    with pytest.raises(AttributeError, match=r"'sise' is not a field; .*; did you mean size"):
        module.sise = 3  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="immutable"):
        tree.map(lambda x: x, module).left = None


def test_fields_cannot_be_deleted_or_left_unset() -> None:
    class Half(nn.Module):
        left: Any
        right: Any

        def __init__(self) -> None:
            self.left = tk.ones(2)

    with pytest.raises(AttributeError, match="'left' cannot be deleted, as modules are immutable"):
        del Half().left
    with pytest.raises(AttributeError, match="Half: the field 'right' was not set; set it in __init__"):
        tree.leaves(Half())
    with pytest.raises(AttributeError, match="'Half' object has no attribute 'middle'"):
        Half().middle  # noqa: B018
    assert not hasattr(Half(), "initial_state")


def test_replace_makes_another_module() -> None:
    module = pair()
    other = module.replace(right=None)
    assert other.right is None and other.left is module.left and module.right is not None
    with pytest.raises(ArgumentError, match=r"replace: Pair has no field 'rigth'; .*did you mean right"):
        module.replace(rigth=1)


@pytest.mark.feature(153)
def test_parameters_are_named_by_their_path_in_the_tree() -> None:
    assert list(nn.named_parameters(pair())) == ["left.weight", "left.bias", "right.deep.0"]
    assert nn.named_parameters(pair())["right.deep.0"].tolist() == [1.0, 1.0]
    assert nn.size(pair()) == 2 * 3 + 3 + 2


def test_modules_go_through_transforms(backend: str) -> None:
    key = tk.random.key(1)
    model = nn.mlp((3, 4, 2), tk.tanh, key=key, dtype=tk.float64)
    x, labels = tk.random.normal(key, (5, 3), tk.float64), tk.tensor([0, 1, 1, 0, 1])

    def loss(model: Any) -> Tensor:
        return nn.cross_entropy(model(x), labels, 0.1)

    gradient = tk.grad(loss)(model)
    assert isinstance(gradient, nn.Sequential) and tree.structure(gradient) == tree.structure(model)
    tk.testing.check_grads(loss, (model,), order=1)
    stacked = tk.vmap(lambda key: nn.mlp((3, 4, 2), tk.tanh, key=key))(tk.random.split(key, 6))
    assert stacked[0].weight.shape == (6, 4, 3)
    assert tk.vmap(lambda model: model(tk.ones((3,))))(stacked).shape == (6, 2)


def test_a_module_without_own_fields_keeps_the_inherited_constructor() -> None:
    class Doubled(nn.Linear):
        """A pair of linear layers."""

        def __call__(self, x: Tensor) -> Tensor:
            return super().__call__(x) * 2.0

    class Named(Pair):
        """A pair under another name."""

    layer = Doubled(2, 3, key=KEY)
    x = tk.ones((1, 2))
    assert layer(x).tolist() == (nn.Linear(2, 3, key=KEY)(x) * 2.0).tolist()
    assert Named(1, 2, 3).name == "pair"


def test_the_repr_of_a_module_has_its_shapes() -> None:
    assert repr(nn.Linear(2, 3, key=KEY)) == "Linear(weight=float32 (3, 2), bias=float32 (3,))"
    lines = repr(nn.Sequential(nn.mlp((2, 3, 1), key=KEY), tk.relu)).splitlines()
    assert lines == [
        "Sequential(",
        "  Sequential(",
        "    Linear(weight=float32 (3, 2), bias=float32 (3,)),",
        "    Function(relu),",
        "    Linear(weight=float32 (1, 3), bias=float32 (1,)),",
        "  ),",
        "  Function(relu),",
        ")",
    ]


def test_an_unknown_name_suggests_a_replacement() -> None:
    with pytest.raises(
        AttributeError, match=r"tensorken_nn' has no attribute 'MSELoss'; use nn\.squared_error"
    ):
        attrgetter("MSELoss")(nn)
    with pytest.raises(AttributeError, match=r"^module 'tensorken_nn' has no attribute 'no_such_name'$"):
        attrgetter("no_such_name")(nn)
