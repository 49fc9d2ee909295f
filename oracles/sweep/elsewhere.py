"""The public functions that the sweep does not call, with the reason of each group."""

from __future__ import annotations

GROUPS: dict[str, str] = {
    "a transform, which takes functions; the modes of the sweep are made of them": (
        "derivative elementwise elementwise_grad eval_shape grad hessian hvp jacfwd jacrev jvp linearize spread trace "
        "value_and_grad vjp"
    ),
    "a question about dtypes, shapes or Python objects, whose answer is no tensor": (
        "broadcast_shapes can_cast einsum_path finfo iinfo iscomplexobj isdtype isrealobj isscalar iterable "
        "promote_types result_type"
    ),
    "a setting, a backend or a file": (
        "backends debug_nans default_backend devices disable_jit get_printoptions load printoptions profile save savez "
        "savez_compressed set_printoptions symbol use_backend with_placement"
    ),
    "a call of Python code": "io_callback pure_callback",
    "positions made of sizes, always int32": "axis_index axis_size diag_indices mask_indices tril_indices triu_indices",
    "a collective that moves parts of a tensor, tested with groups of workers": "all_to_all psum_scatter",
    "it takes functions of users along several axes": "apply_over_axes",
    "a key, or numbers of Python's generator": "randn random.fold_in random.key random.split",
}

ELSEWHERE: dict[str, str] = {
    f"tk.{name}": reason for reason, names in GROUPS.items() for name in names.split()
}
"""The reason of each function."""
