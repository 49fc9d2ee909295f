"""Value: the base class of Tensor: an interpreter, its representation, a shape and a dtype."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self, TypeVar

from tensorken_core.errors import ArgumentError, ShapeError
from tensorken_core.language.dtypes import DType
from tensorken_core.language.interpreter import Interpreter
from tensorken_core.language.shapes import Shape, short_repr

V = TypeVar("V", bound="Value")


class Value:
    """An operand of ops: a representation, and the interpreter that runs ops on it.

    Attributes:
        interpreter: a backend, or a level of a transform.
        representation: the interpreter's representation of the value.
    """

    __slots__ = ("__weakref__", "_dtype", "_shape", "interpreter", "representation")
    __array_ufunc__: Any = None  # numpy arrays leave mixed operators to this class

    def __init__(
        self,
        interpreter: Interpreter[Any],
        representation: Any = None,
        shape: Shape | None = None,
        dtype: DType | None = None,
    ) -> None:
        if shape is None and not isinstance(interpreter, Interpreter):
            raise ArgumentError(
                f"{type(self).__name__}: need an interpreter and a representation, got {short_repr(interpreter)}; "
                f"use tk.tensor(data) or tk.zeros(shape)"
            )
        self.interpreter = interpreter
        self.representation = representation
        self._shape = shape  # if None, computed when it is first read
        self._dtype = dtype

    # ---- shape and dtype -------------------------------------------------------------------------------------

    @property
    def shape(self) -> Shape:
        """The size along each axis.

        >>> import tensorken as tk
        >>> tk.zeros((2, 3)).shape
        (2, 3)
        """
        shape = self._shape
        if shape is None:
            self._shape = shape = self.interpreter.shape(self.representation)
        return shape

    @property
    def dtype(self) -> DType:
        """The type of the elements.

        >>> import tensorken as tk
        >>> tk.tensor([1.0, 2.0]).dtype
        tensorken.float32
        """
        dtype = self._dtype
        if dtype is None:
            self._dtype = dtype = self.interpreter.dtype(self.representation)
        return dtype

    @property
    def ndim(self) -> int:
        """The number of axes.

        >>> import tensorken as tk
        >>> tk.zeros((2, 3)).ndim
        2
        """
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements.

        >>> import tensorken as tk
        >>> tk.zeros((2, 3)).size
        6
        """
        return math.prod(self.shape)

    @property
    def is_number(self) -> bool:
        """Whether it stands for a Python number, which takes the dtype of the tensors that it is combined with.

        >>> import tensorken as tk
        >>> tk.tensor(2).is_number, tk.jit(lambda n: tk.tensor(n.is_number))(2).item()
        (False, True)
        """
        return False

    def item(self) -> Any:
        """The one element as a Python number.

        Raises:
            ShapeError: if there is not exactly one element.

        >>> import tensorken as tk
        >>> tk.tensor([2.5]).item()
        2.5
        """
        if self.size != 1:
            raise ShapeError(
                f"item: shape {self.shape} has {self.size} elements, need exactly 1; use tolist()"
            )
        value = self.flat()[0]
        if self._dtype is None or self._dtype.inexact:
            for level in (*self.interpreter.levels_below, self.interpreter)[1:]:  # the first is the backend
                level.gave_number = True
        return value.item() if hasattr(value, "item") else value

    # ---- methods that are called here and by dispatch; tensor.py defines them --------------------------------

    if TYPE_CHECKING:

        def astype(self, dtype: Any) -> Self: ...
        def scalar(self, value: bool | int | float) -> Self: ...
        def broadcast_to(self, shape: Shape) -> Self: ...
        def where(self, a: Any, b: Any) -> Self: ...
        def flat(self) -> Any: ...
