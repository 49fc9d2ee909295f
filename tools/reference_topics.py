"""The topics of the reference: which modules share a page, in which order. A module of no topic has its own page."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Topic:
    """A page of the reference.

    Args:
        page: its name.
        title: its title.
        about: a sentence for the index.
        modules: the names of the pages that the modules would have alone; each is a section.
    """

    page: str
    title: str
    about: str
    modules: tuple[str, ...]


TOPICS = (
    Topic(
        "derivatives",
        "Derivatives",
        "`grad` and its relatives: gradients, Jacobians, Hessians, and rules of your own.",
        ("grad", "jacobian", "derivatives", "linearize", "custom_rules", "checkpoint", "stop_gradient"),
    ),
    Topic(
        "vectorization",
        "Vectorization and collectives",
        "`vmap`, and functions over its named axes.",
        ("vmap", "collectives", "spread", "placement"),
    ),
    Topic(
        "compilation",
        "Compilation and control flow",
        "`jit`, `trace`, loops and branches in programs, and calls of Python from them.",
        ("jit", "control_flow", "trace", "callbacks", "eager", "debugging"),
    ),
    Topic(
        "creation",
        "Creation",
        "Tensors from numbers, arrays, ranges and files.",
        ("creation", "constants", "ranges", "grids", "diagonals", "interchange", "files", "array_like"),
    ),
    Topic(
        "dtypes",
        "Dtypes and printing",
        "Dtypes, their promotion and limits; constants, and how tensors are printed.",
        ("dtypes", "promotion", "options", "namespace"),
    ),
    Topic(
        "arithmetic",
        "Arithmetic",
        "Sums, products, rounding, remainders; parts of complex numbers, floats and integers.",
        ("arithmetic", "complex_parts", "floats", "float_parts", "integers", "bits"),
    ),
    Topic(
        "elementary",
        "Elementary functions and activations",
        "Exponentials, logarithms, trigonometry; the activations of networks.",
        ("elementary", "activations"),
    ),
    Topic(
        "logic",
        "Comparisons, choices and sets",
        "Comparisons, bits, choices by conditions, sets.",
        ("logic", "searching", "choices", "sets", "set_operations"),
    ),
    Topic(
        "reductions",
        "Reductions and statistics",
        "Sums, means, extremes, cumulative sums, quantiles, histograms.",
        (
            "reductions",
            "statistics",
            "nans",
            "cumulative",
            "running_extremes",
            "covariances",
            "counting",
            "bins",
        ),
    ),
    Topic(
        "shaping",
        "Shapes",
        "Reshaping, joining, splitting, repeating, padding and broadcasting.",
        (
            "shaping",
            "joining",
            "broadcasting",
            "repeating",
            "reordering",
            "editing",
            "blocks",
            "shape_queries",
            "mapping",
        ),
    ),
    Topic(
        "indexing",
        "Indexing and sorting",
        "Functions that read, write and sort by indices.",
        ("indexing", "sorting", "orders", "index_vectors", "strides"),
    ),
    Topic(
        "products",
        "Products, convolutions and signals",
        "Products of matrices, `einsum`, convolutions, polynomials, windows.",
        ("products", "einsum", "convolution", "signals", "polynomials", "windows"),
    ),
    Topic(
        "interpreters",
        "Choosing backends and interpreters",
        "The backend of new tensors, and interpreters around one.",
        ("registry", "fuse", "shape_tracker", "interpreter"),
    ),
)

FIRST = (
    *(
        "tensor",
        "creation",
        "dtypes",
        "derivatives",
        "vectorization",
        "compilation",
        "random",
        "linalg",
        "fft",
    ),
    *(
        "special",
        "arithmetic",
        "elementary",
        "logic",
        "reductions",
        "shaping",
        "indexing",
        "products",
        "tree",
    ),
    *("testing", "errors", "interpreters", "programs", "debug", "distributed", "ops", "backends", "plugin"),
)
"""The first pages of the index, in order; the others follow."""

LEADING = (
    "grad",
    "value_and_grad",
    "jvp",
    "vjp",
    "tensor",
    "hessian",
    "jacrev",
    "jacfwd",
    "cond",
    "scan",
    "trace",
)
"""The names that come first in their sections; the others follow in alphabetical order."""

PARTS = {
    "layers": ("tensorken_nn: layers", "Layers, and the functions that they call.", ("layers",)),
    "losses": ("tensorken_nn: losses", "Losses and metrics.", ("losses", "metrics")),
    "optimizers": (
        "tensorken_nn: optimizers",
        "Optimizers, schedules of learning rates, clipping.",
        ("optimizers", "schedules", "clipping", "accumulation"),
    ),
}
"""The names of tensorken_nn from these modules have pages of their own: titles, sentences for the index, modules."""
