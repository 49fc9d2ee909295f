"""Read and write tensors as JSON, `{"shape": [2, 3], "values": [...]}`, the format of Tensorken for Rust.

The values are the elements in row-major order. The format has no dtype: numbers with a decimal point are floats, others
are ints.
"""

from __future__ import annotations

import json
import math
import os
from typing import Any

import tensorken as tk
from tensorken import Tensor
from tensorken_core.errors import ExchangeError
from tensorken_nn.files import atomic_write, read

__all__ = ["load_json", "save_json"]


def save_json(path: str | os.PathLike[str], tensor: Tensor) -> None:
    """Save a tensor to a JSON file, atomically: if the process is killed, the old file remains.

    Raises:
        ExchangeError: if an element is infinite or NaN, which JSON cannot represent.
        FileError: if the file cannot be written.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "matrix.json")
    ...     save_json(path, tk.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]).T)
    ...     path.read_text()
    '{"shape": [3, 2], "values": [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]}'
    """
    values = tensor.ravel().tolist()
    try:
        text = json.dumps({"shape": tensor.shape, "values": values}, allow_nan=False)
    except ValueError:
        index = next(i for i, value in enumerate(values) if not math.isfinite(value))
        raise ExchangeError(
            f"save_json: element {index} is {values[index]}, which JSON cannot represent; use checkpoints.save"
        ) from None
    with atomic_write(path) as file:
        file.write(text.encode("ascii"))


def load_json(
    path: str | os.PathLike[str], dtype: Any = None, *, backend: Any = None, device: str | None = None
) -> Tensor:
    """Load a tensor from a JSON file.

    Args:
        path: of the file.
        dtype: of the tensor; by default float32, int32 or bool, depending on the values.
        backend, device: of the tensor, as in `tk.tensor`.

    Raises:
        ExchangeError: if the file is not JSON of this form, or the number of values does not fit the shape.
        ScalarRangeError: if a value does not fit the dtype.
        FileError: if the file cannot be read.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "matrix.json")
    ...     _ = path.write_text('{"shape":[2,2],"values":[1,2,3,4]}')
    ...     load_json(path).tolist()
    [[1, 2], [3, 4]]
    """
    try:
        content = json.loads(read(path))
    except (ValueError, RecursionError) as error:
        raise ExchangeError(f"load_json: {path} is not JSON: {' '.join(str(error).split()):.120}") from None
    if not isinstance(content, dict) or not {"shape", "values"} <= content.keys():
        raise ExchangeError(
            f"load_json: {path} is not a tensor: need an object with the entries shape and values"
        )
    shape, values = content["shape"], content["values"]
    if not isinstance(shape, list) or not all([type(size) is int and size >= 0 for size in shape]):
        raise ExchangeError(f"load_json: {path}: the shape is {_brief(shape)}, need a list of sizes")
    if not isinstance(values, list):
        raise ExchangeError(
            f"load_json: {path}: the values are {_brief(values)}, need a flat list of numbers"
        )
    for i, value in enumerate(values):
        if type(value) not in (bool, int, float) or (type(value) is float and not math.isfinite(value)):
            raise ExchangeError(f"load_json: {path}: value {i} is {_brief(value)}, need a finite number")
    if len(values) != math.prod(shape):
        raise ExchangeError(
            f"load_json: {path}: shape {tuple(shape)} needs {math.prod(shape)} values, the file has {len(values)}; "
            f"one of them is damaged"
        )
    return tk.new(shape, values, dtype, backend=backend, device=device)


def _brief(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:40]}..."
