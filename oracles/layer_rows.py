"""Calls of functions of `torch.nn.functional` and of their equivalents in `tensorken_nn`, with the same arguments."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from oracles.numbers import Shape


@dataclass(frozen=True, slots=True)
class Row:
    """A call of one function of each library.

    Args:
        there: the name in PyTorch.
        here: the name in `tensorken_nn`.
        arguments: the operands to differentiate for: a list of numbers, or a shape, which `numbers` fills.
        options: the other arguments; a list is a tensor.
        options_there: arguments that are different in PyTorch.
        smooth: whether both derivatives exist everywhere near the operands.
    """

    there: str
    here: str
    arguments: dict[str, Shape | list[float]]
    options: dict[str, Any]
    options_there: dict[str, Any] = field(default_factory=dict)
    smooth: bool = True


ROWS: dict[str, Row] = {}


def row(
    name: str,
    there: str,
    *shapes: Shape | list[float],
    here: str = "",
    options_there: dict[str, Any] | None = None,
    smooth: bool = True,
    **options: Any,
) -> None:
    """Add a row whose operands are `x`, and then `weight` and `bias`."""
    arguments = dict(zip(("x", "weight", "bias"), shapes, strict=False))
    ROWS[name] = Row(there, here or there, arguments, options, options_there or {}, smooth)


# ---- convolutions ------------------------------------------------------------------------------------------

row("conv1d", "conv1d", (2, 2, 7), (4, 1, 3), (4,), stride=2, padding=1, dilation=2, groups=2)
row("conv1d same", "conv1d", (1, 1, 5), (1, 1, 4), (1,), padding="same")
row("conv3d", "conv3d", (1, 2, 3, 4, 3), (2, 2, 2, 3, 2), (2,), stride=(1, 2, 1), padding=(1, 0, 1))
row("conv_transpose1d", "conv_transpose1d", (2, 2, 3), (2, 3, 2), (3,))
row("conv_transpose1d groups", "conv_transpose1d", (1, 4, 3), (4, 1, 3), (2,), groups=2, stride=2, padding=1)
row(
    "conv_transpose2d", "conv_transpose2d", (2, 2, 3, 2), (2, 2, 3, 2), (2,),
    stride=(2, 3), padding=(1, 0), output_padding=(1, 2), dilation=(2, 1),
)  # fmt: skip
row("conv_transpose2d one", "conv_transpose2d", (2, 2, 2), (2, 1, 2, 2), (1,), padding=1, dilation=2)
row(
    "conv_transpose3d", "conv_transpose3d", (1, 1, 2, 1, 2), (1, 2, 2, 2, 1), (2,), stride=2, output_padding=1
)

# ---- pools -------------------------------------------------------------------------------------------------

row("max_pool1d", "max_pool1d", (2, 1, 7), kernel_size=3, stride=2, padding=1, dilation=2)
row("max_pool1d ceil", "max_pool1d", (1, 2, 6), kernel_size=3, stride=2, ceil_mode=True)
row("max_pool1d short", "max_pool1d", (1, 2, 2), kernel_size=3, stride=2, ceil_mode=True)
row(
    "max_pool2d ceil",
    "max_pool2d",
    (1, 2, 5, 6),
    kernel_size=(2, 3),
    stride=(3, 2),
    padding=1,
    ceil_mode=True,
)
row("max_pool3d", "max_pool3d", (1, 1, 3, 4, 3), kernel_size=2, stride=1)
row("avg_pool1d", "avg_pool1d", (2, 1, 7), kernel_size=3, stride=2, padding=1, ceil_mode=True)
row(
    "avg_pool2d ceil", "avg_pool2d", (1, 2, 5, 6),
    kernel_size=(3, 2), stride=(2, 4), padding=(1, 0), ceil_mode=True,
)  # fmt: skip
row(
    "avg_pool2d ceil without", "avg_pool2d", (1, 1, 6, 5),
    kernel_size=3, stride=2, padding=1, ceil_mode=True, count_include_pad=False,
)  # fmt: skip
row("avg_pool2d divisor", "avg_pool2d", (1, 1, 3, 4), kernel_size=2, padding=1, divisor_override=3)
row("avg_pool3d", "avg_pool3d", (1, 1, 2, 3, 4), kernel_size=2, padding=1, count_include_pad=False)
row("lp_pool1d", "lp_pool1d", (2, 1, 7), norm_type=2, kernel_size=3, stride=2, ceil_mode=True, smooth=False)
row("lp_pool2d", "lp_pool2d", (1, 2, 5, 4), norm_type=4.0, kernel_size=(3, 2))
row("lp_pool2d largest", "lp_pool2d", (1, 2, 3, 4), norm_type=math.inf, kernel_size=2, stride=1, smooth=False)
row("lp_pool3d", "lp_pool3d", (1, 1, 2, 4, 3), norm_type=2, kernel_size=2, stride=1)
row("adaptive_max_pool1d", "adaptive_max_pool1d", (2, 2, 7), output_size=3)
row("adaptive_max_pool2d", "adaptive_max_pool2d", (1, 2, 5, 6), output_size=(3, 2))
row("adaptive_max_pool3d", "adaptive_max_pool3d", (1, 1, 2, 3, 4), output_size=(2, 2, 1))
row("adaptive_avg_pool1d", "adaptive_avg_pool1d", (2, 2, 6), output_size=4)
row("adaptive_avg_pool2d", "adaptive_avg_pool2d", (1, 2, 5, 4), output_size=(None, 2))
row("adaptive_avg_pool2d larger", "adaptive_avg_pool2d", (1, 1, 2, 3), output_size=(3, 5))
row("adaptive_avg_pool3d", "adaptive_avg_pool3d", (1, 1, 3, 2, 4), output_size=(2, 1, 3))

# ---- interpolation and shuffling ---------------------------------------------------------------------------

row("interpolate nearest", "interpolate", (1, 2, 3), scale_factor=2.5)
row("interpolate nearest sizes", "interpolate", (1, 1, 5, 3), size=(3, 7))
row("interpolate nearest-exact", "interpolate", (1, 1, 5), size=3, mode="nearest-exact")
row("interpolate linear", "interpolate", (2, 1, 4), size=7, mode="linear")
row("interpolate linear factor", "interpolate", (1, 1, 5), scale_factor=0.7, mode="linear")
row("interpolate bilinear", "interpolate", (1, 2, 3, 4), size=(5, 2), mode="bilinear")
row(
    "interpolate bilinear corners",
    "interpolate",
    (1, 1, 3, 4),
    size=(5, 1),
    mode="bilinear",
    align_corners=True,
)
row("interpolate trilinear", "interpolate", (1, 1, 2, 3, 2), size=(3, 2, 4), mode="trilinear")
row("interpolate bicubic", "interpolate", (1, 1, 4, 3), size=(7, 2), mode="bicubic")
row(
    "interpolate bicubic corners",
    "interpolate",
    (1, 1, 4, 3),
    scale_factor=2,
    mode="bicubic",
    align_corners=True,
)
row("interpolate bilinear smooth", "interpolate", (1, 1, 7, 5), size=(3, 6), mode="bilinear", antialias=True)
row("interpolate bicubic smooth", "interpolate", (1, 1, 9, 6), size=(4, 3), mode="bicubic", antialias=True)
row("interpolate area", "interpolate", (1, 2, 5, 4), size=(2, 3), mode="area")
row("pixel_shuffle", "pixel_shuffle", (1, 8, 2, 3), upscale_factor=2)
row("pixel_unshuffle", "pixel_unshuffle", (2, 1, 4, 6), downscale_factor=2)
row("channel_shuffle", "channel_shuffle", (1, 6, 2, 2), groups=3)

# ---- normalisation -----------------------------------------------------------------------------------------

row("local_response_norm", "local_response_norm", (2, 4, 3), size=3, alpha=0.5, k=2.0)
row("local_response_norm even", "local_response_norm", (1, 3, 2, 2), size=4, alpha=2.0, beta=0.5)

# ---- attention ---------------------------------------------------------------------------------------------


def attention(name: str, *shapes: Shape, **options: Any) -> None:
    """Add a row of attention with these queries, keys and values."""
    arguments: dict[str, Any] = dict(zip(("query", "key", "value", "attn_mask"), shapes, strict=False))
    function = "scaled_dot_product_attention"
    ROWS[f"attention {name}"] = Row(function, function, arguments, options)


attention("plain", (2, 3, 2), (2, 4, 2), (2, 4, 3))
attention("causal", (1, 2, 4, 2), (1, 2, 4, 2), (1, 2, 4, 2), is_causal=True, scale=0.5)
attention("causal wide", (1, 2, 2), (1, 4, 2), (1, 4, 2), is_causal=True)
attention("added mask", (2, 3, 2), (2, 4, 2), (2, 4, 2), (3, 4))
attention("mask", (2, 2, 2), (2, 3, 2), (2, 3, 2), attn_mask=[[True, False, True], [False, True, False]])
attention("hidden row", (1, 2, 2), (1, 3, 2), (1, 3, 2), attn_mask=[[False] * 3, [True, True, False]])
attention("groups", (1, 4, 2, 2), (1, 2, 3, 2), (1, 2, 3, 2), enable_gqa=True)

# ---- losses ------------------------------------------------------------------------------------------------


def loss(name: str, there: str, here: str, *operands: str, smooth: bool = True, **options: Any) -> None:
    """Add a row of a loss of operands of shape (4, 3), by name."""
    shapes: dict[str, Any] = dict.fromkeys(operands, (4, 3))
    there_alone = options.pop("options_there", {})
    ROWS[name] = Row(there, here, shapes, options, there_alone, smooth)


LABELS = [2, 0, 1, 2]
CHANCES = [[0.2, 0.3, 0.5], [1.0, 0.0, 0.0], [0.1, 0.8, 0.1], [0.25, 0.25, 0.5]]
SIGNS = [[1.0, -1.0, 1.0], [-1.0, -1.0, 1.0], [1.0, 1.0, -1.0], [-1.0, 1.0, -1.0]]
CLASSES = [0.5, 2.0, 1.25]
SMOOTHED = {"label_smoothing": 0.2, "weight": CLASSES}

loss("cross_entropy weight", "cross_entropy", "cross_entropy", "x", target=LABELS, weight=CLASSES)
loss("cross_entropy smoothed", "cross_entropy", "cross_entropy", "x", target=LABELS, **SMOOTHED)
loss(
    "cross_entropy ignoring", "cross_entropy", "cross_entropy", "x", target=LABELS, ignore_index=2, **SMOOTHED
)
loss("cross_entropy sum", "cross_entropy", "cross_entropy", "x", target=LABELS, reduction="sum", **SMOOTHED)
loss("cross_entropy chances", "cross_entropy", "cross_entropy", "x", target=CHANCES)
loss("cross_entropy chances smoothed", "cross_entropy", "cross_entropy", "x", target=CHANCES, **SMOOTHED)
loss("nll", "nll_loss", "negative_log_likelihood", "x", target=LABELS)
loss("nll weight", "nll_loss", "negative_log_likelihood", "x", target=LABELS, weight=CLASSES, ignore_index=1)
loss(
    "bce logits", "binary_cross_entropy_with_logits", "binary_cross_entropy_with_logits", "x",
    target=CHANCES, weight=[[0.5], [1.0], [2.0], [3.0]], pos_weight=CLASSES,
)  # fmt: skip
ROWS["bce"] = Row(
    "binary_cross_entropy", "binary_cross_entropy", {"x": [0.1, 0.5, 0.75, 0.999]},
    {"target": [1.0, 0.0, 0.3, 1.0], "weight": [1.0, 2.0, 0.5, 3.0]},
)  # fmt: skip
loss("kl", "kl_div", "kl_divergence", "x", target=CHANCES, options_there={"reduction": "batchmean"})
ROWS["kl log"] = Row(
    "kl_div", "kl_divergence", {"x": (4, 3), "target": (4, 3)},
    {"log_target": True}, {"reduction": "batchmean"},
)  # fmt: skip
for _name, _there, _here in (
    ("mse", "mse_loss", "squared_error"),
    ("l1", "l1_loss", "l1"),
    ("huber", "huber_loss", "huber"),
    ("smooth l1", "smooth_l1_loss", "smooth_l1"),
):
    loss(_name, _there, _here, "x", "target", smooth=_name == "mse")
loss("smooth l1 beta", "smooth_l1_loss", "smooth_l1", "x", "target", beta=0.5, reduction="sum", smooth=False)
ROWS["gaussian nll"] = Row(
    "gaussian_nll_loss", "gaussian_negative_log_likelihood", {"x": (3,), "target": (3,)},
    {"var": [0.5, 1.0, 2.0], "full": True},
)  # fmt: skip
loss("poisson nll", "poisson_nll_loss", "poisson_negative_log_likelihood", "x", target=[[0.0, 1.0, 4.0]] * 4)
ROWS["poisson nll full"] = Row(
    "poisson_nll_loss", "poisson_negative_log_likelihood", {"x": [0.5, 1.0, 3.0]},
    {"target": [0.0, 2.0, 5.0], "log_input": False, "full": True},
)  # fmt: skip
loss("cosine", "cosine_similarity", "cosine_similarity", "x1", "x2", options_there={"dim": -1})
loss("distance", "pairwise_distance", "pairwise_distance", "x1", "x2")
loss("distance 1", "pairwise_distance", "pairwise_distance", "x1", "x2", p=1.0, smooth=False)
loss("soft margin", "soft_margin_loss", "soft_margin", "x", target=SIGNS)
loss("hinge embedding", "hinge_embedding_loss", "hinge_embedding", "x", target=SIGNS, smooth=False)
loss(
    "cosine embedding", "cosine_embedding_loss", "cosine_embedding", "x1", "x2",
    target=[1.0, -1.0, -1.0, 1.0], margin=0.25, smooth=False,
)  # fmt: skip
loss("ranking", "margin_ranking_loss", "margin_ranking", "x1", "x2", target=SIGNS, margin=0.5, smooth=False)
loss("multi margin", "multi_margin_loss", "multi_margin", "x", target=LABELS, smooth=False)
loss(
    "multi margin 2", "multi_margin_loss", "multi_margin", "x",
    target=LABELS, p=2, margin=0.5, weight=CLASSES, smooth=False,
)  # fmt: skip
loss("triplet", "triplet_margin_loss", "triplet_margin", "x1", "x2", "x3", smooth=False)
loss(
    "triplet swap",
    "triplet_margin_loss",
    "triplet_margin",
    "x1",
    "x2",
    "x3",
    swap=True,
    reduction="none",
    smooth=False,
)
