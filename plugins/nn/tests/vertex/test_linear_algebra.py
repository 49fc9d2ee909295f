"""Vectors and matrices of vertices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tensorken_core.errors import ArgumentError, ShapeError
from tensorken_nn.vertex import ElementError, Matrix, Vector, Vertex, tanh

A, B = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], [[1.0, -1.0], [0.5, 2.0], [3.0, 0.0]]


def numbers(x: Any) -> Any:
    """A vertex, vector or matrix as numbers, nested."""
    return x.value if isinstance(x, Vertex) else [numbers(part) for part in x]


# ---- vectors ---------------------------------------------------------------------------------------------------


@pytest.mark.feature(150)
@pytest.mark.parametrize(
    "vector",
    [
        Vector(1.0, 2.0),
        Vector([1.0, 2.0]),
        Vector((1.0, Vertex(2.0))),
        Vector(Vector(1.0, 2.0)),
        Vector(x / 2.0 for x in (2, 4)),
        Vector(np.array([1.0, 2.0])),
    ],
    ids=repr,
)
def test_a_vector_is_made_of_arguments_or_of_one_sequence(vector: Vector) -> None:
    assert len(vector) == 2 and repr(vector) == "Vector(1.0, 2.0)"
    assert (vector[0].value, vector[-1].value, numbers(vector[:1])) == (1.0, 2.0, [1.0])
    assert all(isinstance(v, Vertex) for v in vector)
    with pytest.raises(IndexError):
        vector[2]


@pytest.mark.feature(150)
def test_a_vector_keeps_its_vertices() -> None:
    x = Vertex(3.0)
    assert Vector(1.0, x)[1] is x and Vector(x)[0] is x


@pytest.mark.feature(150)
@pytest.mark.parametrize(
    ("elements", "message"),
    [
        (("1.0",), "element 0 is of type str, need a float or a Vertex"),
        ((1.0, 2), "element 1 is of type int, need a float or a Vertex; write 2.0"),
        ((3,), "element 0 is of type int"),
        (([1.0], [2.0]), "element 0 is of type list"),
        ((None,), "element 0 is of type NoneType"),
    ],
)
def test_other_elements_are_refused(elements: tuple[Any, ...], message: str) -> None:
    for error in (TypeError, ValueError, ElementError):
        with pytest.raises(error, match=message):
            Vector(*elements)


@pytest.mark.feature(150)
@pytest.mark.parametrize("elements", [(), ([],)])
def test_an_empty_vector_is_refused(elements: tuple[Any, ...]) -> None:
    with pytest.raises(ValueError, match="Vector: need at least one element, got none"):
        Vector(*elements)


@pytest.mark.feature(150)
def test_vectors_compute_elementwise() -> None:
    v, w, x = Vector(1.0, -2.0), Vector(4.0, 5.0), Vertex(2.0)
    for result, expected in [
        (v + w, [5.0, 3.0]),
        (v - w, [-3.0, -7.0]),
        (v * w, [4.0, -10.0]),
        (w / v, [4.0, -2.5]),
        (w**v, [4.0, 5.0**-2]),
        (-v, [-1.0, 2.0]),
        (v + 1.0, [2.0, -1.0]),
        (1 - v, [0.0, 3.0]),
        (x * v, [2.0, -4.0]),
        (v * x, [2.0, -4.0]),
        (x / v, [2.0, -1.0]),
        (2.0**v, [2.0, 0.25]),
        (v**2, [1.0, 4.0]),
        (np.float64(2.0) * v, [2.0, -4.0]),
        (v.map(abs), [1.0, 2.0]),
    ]:
        assert isinstance(result, Vector) and numbers(result) == expected
    with pytest.raises(ShapeError, match="Vector: sizes 2 and 3 differ; they must be equal"):
        v + Vector(1.0, 2.0, 3.0)
    for other in ("text", [1.0, 2.0], Matrix([[1.0, 2.0]])):
        with pytest.raises(TypeError):
            v + other


@pytest.mark.feature(150)
def test_dot_and_its_derivatives() -> None:
    v, w = Vector(1.0, -2.0, 0.0), Vector(4.0, 5.0, 6.0)
    for product in (v.dot(w), v @ w):
        product.zero_grad()
        product.backward()
        assert product.value == -6.0
        assert [x.grad for x in v] == numbers(w) and [x.grad for x in w] == numbers(v)
    with pytest.raises(ShapeError, match="sizes 3 and 1 differ"):
        v.dot(Vector(1.0))
    with pytest.raises(ArgumentError, match="dot: need a Vector, got list"):
        v.dot([1.0, 2.0, 3.0])  # type: ignore[arg-type]


# ---- matrices --------------------------------------------------------------------------------------------------


@pytest.mark.feature(151)
def test_a_matrix_has_rows_and_columns_of_the_same_vertices() -> None:
    m = Matrix(A)
    assert m.shape == (2, 3) and len(m) == 2 and numbers(m) == A
    assert [numbers(row) for row in m.rows] == A
    assert [numbers(col) for col in m.cols] == [[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]
    assert m[1, 2] is m[1][2] is m.rows[1][2] is m.cols[2][1] is m.T[2, 1] is m[-1, -1]
    assert isinstance(m[0], Vector) and numbers(m[1]) == A[1]
    assert isinstance(m[1:], Matrix) and numbers(m[1:]) == A[1:]
    assert repr(m) == "Matrix([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])"
    assert numbers(Matrix(np.array(A))) == numbers(Matrix(list(m))) == A
    x = Vertex(1.0)
    assert Matrix([[x, 2.0]])[0, 0] is x


@pytest.mark.feature(151)
@pytest.mark.parametrize("key", [2, (0, 3), (2, 0), -3])
def test_indices_out_of_range_are_refused(key: Any) -> None:
    with pytest.raises(IndexError):
        Matrix(A)[key]


@pytest.mark.feature(151)
@pytest.mark.parametrize("key", [1.0, (0, 1, 2), (0,), (0.0, 1), "0", None])
def test_keys_of_another_type_are_refused(key: Any) -> None:
    with pytest.raises(IndexError, match="Matrix: need a row r, or a row and a column r, c, got"):
        Matrix(A)[key]


@pytest.mark.feature(151)
@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        (
            [[1.0, 2.0], [3.0]],
            ValueError,
            "at least one element in each, got rows of sizes 1, 2",
        ),
        ([], ValueError, "got no elements"),
        ([[]], ValueError, "got no elements"),
        ([[], [1.0]], ValueError, "got rows of sizes 0, 1"),
        ([[1.0], [2]], TypeError, r"element \(1, 0\) is of type int, need a float or a Vertex; write 2.0"),
        ([[1.0], ["2"]], ValueError, r"element \(1, 0\) is of type str"),
        ([1.0, 2.0], TypeError, "row 0 is of type float, need a sequence of floats or vertices"),
    ],
)
def test_malformed_matrices_are_refused(data: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"Matrix: .*{message}"):
        Matrix(data)


@pytest.mark.feature(151)
def test_matrices_compute_elementwise() -> None:
    m, a = Matrix(A), np.array(A)
    for result, expected in [
        (m + m, a + a),
        (m - 1.0, a - 1),
        (2 * m, 2 * a),
        (Vertex(1.0) / m, 1 / a),
        (m / m, a / a),
        (-m, -a),
        (m**2, a**2),
    ]:
        assert isinstance(result, Matrix) and numbers(result) == expected.tolist()
    with pytest.raises(ShapeError, match=r"Matrix: shapes \(2, 3\) and \(3, 2\) differ; they must be equal"):
        m + Matrix(B)
    with pytest.raises(TypeError):
        m + Vector(1.0, 2.0, 3.0)


@pytest.mark.feature(151)
def test_matrix_products() -> None:
    a, b = Matrix(A), Matrix(B)
    product = a @ b
    assert isinstance(product, Matrix) and numbers(product) == (np.array(A) @ np.array(B)).tolist()
    assert numbers(a.dot(b)) == numbers(product)
    v = Vector(1.0, 2.0, -1.0)
    assert isinstance(a @ v, Vector) and numbers(a @ v) == (np.array(A) @ [1, 2, -1]).tolist()
    assert isinstance(v @ b, Vector) and numbers(v @ b) == ([1, 2, -1] @ np.array(B)).tolist()


@pytest.mark.feature(151)
def test_derivatives_of_a_matrix_product() -> None:
    a, b = Matrix(A), Matrix(B)
    t = np.array([[1.0, -1.0], [0.5, 2.0]])
    for row, ts in zip(a @ b, t, strict=True):
        for v, x in zip(row, ts, strict=True):
            v.backward(x)
    assert [[v.grad for v in row] for row in a] == (t @ np.array(B).T).tolist()
    assert [[v.grad for v in row] for row in b] == (np.array(A).T @ t).tolist()


@pytest.mark.feature(151)
@pytest.mark.parametrize(
    ("other", "message"),
    [
        (Matrix(A), r"matmul: \(2, 3\) @ \(2, 3\): 3 columns and 2 rows; the numbers must be equal"),
        (Vector(1.0, 2.0), r"matmul: \(2, 3\) @ \(2,\): 3 columns and 2 rows"),
    ],
)
def test_products_of_other_shapes_are_refused(other: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Matrix(A) @ other
    with pytest.raises(ShapeError, match=message):
        Matrix(A).dot(other)


def test_products_with_other_types_are_refused() -> None:
    with pytest.raises(ArgumentError, match="dot: need a Vector or a Matrix, got list"):
        Matrix(A).dot(A)  # type: ignore[call-overload]
    for other in (A, 2.0, Vertex(2.0)):
        with pytest.raises(TypeError):
            Matrix(A) @ other


def test_functions_map_over_elements() -> None:
    assert numbers(Matrix([[0.0]]).map(tanh)) == [[0.0]]
