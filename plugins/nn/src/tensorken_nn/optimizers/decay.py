"""Weight decay, and masks that select the parameters it applies to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from tensorken import Tensor
from tensorken_core import tree
from tensorken_nn.module import named_parameters

Mask: TypeAlias = Callable[[str, Tensor], bool] | Any
"""A function of a parameter's name, as in `named_parameters`, and the parameter; or a tree of bools; or None for
all.
"""


def weight_decays(weight_decay: float, mask: Mask, parameters: Any) -> Any:
    """The weight decay of each parameter; 0 where the mask is false.

    Raises:
        StructureError: if the mask is a tree of another structure than the parameters.

    >>> import tensorken as tk
    >>> weight_decays(0.1, only_matrices, {"weight": tk.ones((2, 3)), "bias": tk.ones(2)})
    {'bias': 0.0, 'weight': 0.1}
    """
    structure = tree.structure(parameters)
    if mask is None or not weight_decay:
        selected = [True] * structure.size
    elif callable(mask) and tree.structure(mask) == tree.LEAF:  # a module is callable, too
        selected = [bool(mask(name, parameter)) for name, parameter in named_parameters(parameters).items()]
    else:
        selected = [bool(x) for x in tree.flatten_up_to(structure, mask, "update: the mask")]
    return tree.unflatten(structure, [weight_decay if x else 0.0 for x in selected])


def only_matrices(name: str, parameter: Tensor) -> bool:
    """A mask for weight decay of parameters with two axes or more, but not of biases and weights of normalisations.

    >>> from tensorken_nn import AdamW
    >>> optimizer = AdamW(3e-4, weight_decay=0.1, mask=only_matrices)
    """
    return parameter.ndim > 1
