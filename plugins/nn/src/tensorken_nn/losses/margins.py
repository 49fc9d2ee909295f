"""Losses that stop at a margin, and the similarities and distances that they compare."""

from __future__ import annotations

import tensorken as tk
from tensorken import Tensor
from tensorken_core.errors import ArgumentError, DTypeError, ShapeError
from tensorken_nn.losses.reduction import (
    Reduction,
    check_classes,
    check_float,
    match_targets,
    reduce_losses,
    rescale,
)
from tensorken_nn.precision import widen

# ---- similarities and distances ----------------------------------------------------------------------------


def cosine_similarity(x: Tensor, y: Tensor, axis: int = -1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between vectors along an axis: `sum(x * y) / (|x| * |y|)`.

    Args:
        x, y: of shapes that broadcast, float.
        axis: the axis of the vectors.
        eps: the smallest length that a vector counts as having, so that the divisor is not 0.

    Raises:
        ShapeError: if the shapes do not broadcast.
        DTypeError: if x is not of floats.

    >>> print(f"{cosine_similarity(tk.tensor([[3.0, 4.0], [0.0, 0.0]]), tk.tensor([4.0, 3.0])):.4f}")
    [0.9600 0.0000]
    """
    check_float("cosine_similarity", x)
    wide = [widen(v) for v in tk.broadcast_arrays(x, y)]  # eps is 0 in float16
    unit_x, unit_y = [
        v / tk.linalg.vector_norm(v, axis=axis, keepdims=True).maximum(eps) for v in wide
    ]  # their products do not overflow
    return (unit_x * unit_y).sum(axis).astype(tk.result_type(x, y))


def pairwise_distance(x: Tensor, y: Tensor, p: float = 2.0, eps: float = 1e-6) -> Tensor:
    """The norm of x - y + eps along the last axis, of order p.

    Args:
        x, y: of shapes that broadcast, float.
        p: the order of the norm, positive; may be infinite.
        eps: added to differences, so that the derivative of equal vectors is finite.

    Raises:
        ShapeError: if the shapes do not broadcast.
        DTypeError: if x is not of floats.

    >>> print(f"{pairwise_distance(tk.tensor([[3.0, 4.0]]), tk.zeros((1, 2))):.4f}")
    [5.0000]
    """
    check_float("pairwise_distance", x)
    return tk.linalg.vector_norm(x - y + eps, ord=p, axis=-1)


# ---- losses ------------------------------------------------------------------------------------------------


def hinge(outputs: Tensor, targets: Tensor, *, reduction: Reduction = "mean") -> Tensor:
    """max(0, 1 - output * target): 0 for outputs on the right side of the margin.

    Source: Cortes and Vapnik, Support-Vector Networks (1995).

    Args:
        outputs: any shape, float.
        targets: of the same shape: 1 or -1.
        reduction: "mean", "sum" or "none".

    Raises:
        ShapeError, DTypeError, ArgumentError: if an argument is invalid.

    >>> hinge(tk.tensor([2.0, 0.5, 0.5]), tk.tensor([1, 1, -1]), reduction="none").tolist()
    [0.0, 0.5, 1.5]
    """
    return reduce_losses(
        "hinge", tk.relu(1.0 - outputs * match_targets("hinge", outputs, targets)), reduction
    )


def soft_margin(outputs: Tensor, targets: Tensor, *, reduction: Reduction = "mean") -> Tensor:
    """log(1 + exp(-output * target)).

    Args:
        outputs, targets, reduction: as for `hinge`.

    Raises:
        ShapeError, DTypeError, ArgumentError: if an argument is invalid.

    >>> soft_margin(tk.tensor([0.0, 100.0]), tk.tensor([1, -1]), reduction="none").tolist()
    [0.6931471824645996, 100.0]
    """
    exponents = -outputs * match_targets("soft_margin", outputs, targets)
    return reduce_losses("soft_margin", tk.softplus(exponents), reduction)


def hinge_embedding(
    distances: Tensor, targets: Tensor, margin: float = 1.0, *, reduction: Reduction = "mean"
) -> Tensor:
    """The distance where the target is 1, max(0, margin - distance) where it is -1.

    Args:
        distances: any shape, float.
        targets: of the same shape: 1 for similar pairs, -1 for others.
        margin: the distance from which on pairs that are not similar add nothing.
        reduction: "mean", "sum" or "none".

    Raises:
        ShapeError, DTypeError, ArgumentError: if an argument is invalid.

    >>> hinge_embedding(tk.tensor([0.25, 0.25]), tk.tensor([1, -1]), reduction="none").tolist()
    [0.25, 0.75]
    """
    targets = match_targets("hinge_embedding", distances, targets)
    losses = (targets > 0.0).where(distances, tk.relu(margin - distances))
    return reduce_losses("hinge_embedding", losses, reduction)


def cosine_embedding(
    x: Tensor, y: Tensor, targets: Tensor, margin: float = 0.0, *, reduction: Reduction = "mean"
) -> Tensor:
    """1 - cosine where the target is 1, max(0, cosine - margin) where it is -1, with `cosine_similarity`.

    Args:
        x, y: shape (..., size), float.
        targets: shape (...): 1 for similar pairs, -1 for others.
        margin: the cosine up to which pairs that are not similar add nothing.
        reduction: "mean", "sum" or "none".

    Raises:
        ShapeError, DTypeError, ArgumentError: if an argument is invalid.

    >>> x, y = tk.tensor([[1.0, 0.0], [1.0, 0.0]]), tk.tensor([[0.0, 1.0], [0.0, 1.0]])
    >>> cosine_embedding(x, y, tk.tensor([1, -1]), reduction="none").tolist()
    [1.0, 0.0]
    """
    cosines = cosine_similarity(x, y)
    targets = match_targets("cosine_embedding", cosines, targets)
    losses = (targets > 0.0).where(1.0 - cosines, tk.relu(cosines - margin))
    return reduce_losses("cosine_embedding", losses, reduction)


def margin_ranking(
    x: Tensor, y: Tensor, targets: Tensor, margin: float = 0.0, *, reduction: Reduction = "mean"
) -> Tensor:
    """max(0, margin - target * (x - y)): of pairs in the wrong order.

    Args:
        x, y: scores of one shape, float.
        targets: of the same shape: 1 if x should be larger, -1 if y should be.
        margin: the difference from which on pairs add nothing.
        reduction: "mean", "sum" or "none".

    Raises:
        ShapeError, DTypeError, ArgumentError: if an argument is invalid.

    >>> margin_ranking(tk.tensor([1.0]), tk.tensor([3.0]), tk.tensor([1]), margin=0.5).item()
    2.5
    """
    differences = x - match_targets("margin_ranking", x, y)
    targets = match_targets("margin_ranking", differences, targets)
    return reduce_losses("margin_ranking", tk.relu(margin - targets * differences), reduction)


def multi_margin(
    outputs: Tensor,
    labels: Tensor,
    p: int = 1,
    margin: float = 1.0,
    *,
    weight: Tensor | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """The sum over other classes of max(0, margin - output[label] + output[class])**p, divided by the classes.

    Source: Crammer and Singer, On the Algorithmic Implementation of Multiclass Kernel-Based Vector Machines (2001).

    Args:
        outputs: shape (..., classes), float.
        labels: shape (...), int, each in [0, classes), which is checked where they are known.
        p: 1 or 2.
        margin: the difference from which on a class adds nothing.
        weight: shape (classes,), a factor for each label.
        reduction: "mean", "sum" or "none".

    Raises:
        ShapeError, DTypeError, ArgumentError: if an argument is invalid.

    >>> multi_margin(tk.tensor([[0.5, 2.0, 1.0]]), tk.tensor([0])).item()
    1.3333333730697632
    """
    check_float("multi_margin", outputs)
    if p not in (1, 2):
        raise ArgumentError(f"multi_margin: p must be 1 or 2, got {p}")
    if not outputs.ndim or labels.shape != outputs.shape[:-1]:
        raise ShapeError(
            f"multi_margin: labels of shape {labels.shape} for outputs of shape {outputs.shape}; need one label a row"
        )
    if labels.dtype.kind != "int":
        raise DTypeError(f"multi_margin: labels must be ints, got {labels.dtype}; cast them (labels.astype)")
    check_classes("multi_margin", labels, outputs.shape[-1])
    is_class = labels.reshape((*labels.shape, 1)) == list(range(outputs.shape[-1]))
    chosen = is_class.where(outputs, 0.0).sum(-1, keepdims=True)
    terms = tk.relu(margin - chosen + outputs)
    losses = is_class.where(0.0, terms if p == 1 else terms * terms).sum(-1) / outputs.shape[-1]
    if weight is not None:
        factors = rescale("multi_margin", tk.ones_like(outputs), weight)
        losses = losses * is_class.where(factors, 0.0).sum(-1)
    return reduce_losses("multi_margin", losses, reduction)


def triplet_margin(
    anchors: Tensor,
    positives: Tensor,
    negatives: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    *,
    reduction: Reduction = "mean",
) -> Tensor:
    """max(0, margin + distance to the positive example - distance to the negative one), by `pairwise_distance`.

    Source: Schroff, Kalenichenko, Philbin, FaceNet (2015); `swap`: Balntas et al., Learning Local Feature Descriptors
    with Triplets and Shallow Convolutional Neural Networks (2016).

    Args:
        anchors, positives, negatives: shape (..., size), float.
        margin: by how much a negative example should be farther away.
        p, eps: as for `pairwise_distance`.
        swap: whether the distance between the positive and the negative example counts if it is smaller than that of
            the negative one to the anchor.
        reduction: "mean", "sum" or "none".

    Raises:
        ShapeError, DTypeError, ArgumentError: if an argument is invalid.

    >>> zeros = tk.zeros((1, 2))
    >>> print(f"{triplet_margin(zeros, tk.tensor([[3.0, 4.0]]), tk.tensor([[0.0, 2.0]])):.4f}")
    4.0000
    """
    near = pairwise_distance(anchors, positives, p, eps)
    far = pairwise_distance(anchors, negatives, p, eps)
    if swap:
        far = far.minimum(pairwise_distance(positives, negatives, p, eps))
    return reduce_losses("triplet_margin", tk.relu(margin + near - far), reduction)
