"""CSV files: they are read as written by spreadsheets, and errors name the line."""

from __future__ import annotations

from pathlib import Path

import pytest

import tensorken as tk
from tensorken_nn.files import ContentError, FileError
from tensorken_nn.tables import read_csv


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "table.csv"


def test_a_table_of_numbers(backend: str, file: Path) -> None:
    file.write_text("height,weight\n1.5,60\n\n -2e1 , .5\n")
    table = read_csv(file)
    assert table.columns == ("height", "weight") and table.classes == ()
    assert table.inputs.tolist() == [[1.5], [-20.0]] and table.targets.tolist() == [60.0, 0.5]
    assert table.inputs.dtype == table.targets.dtype == tk.float32
    assert {table.inputs.backend, table.targets.backend} == {backend}


def test_without_a_header_columns_are_numbered(file: Path) -> None:
    file.write_text("1,2,3\n4,5,6\n")
    table = read_csv(file)
    assert table.columns == ("column 1", "column 2", "column 3")
    assert table.inputs.shape == (2, 2)


@pytest.mark.parametrize(("header", "rows"), [(None, 2), (False, 2), (True, 1)])
def test_a_header_may_consist_of_numbers(header: bool | None, rows: int, file: Path) -> None:
    file.write_text("2023,2024\n1,2\n")
    table = read_csv(file, header=header)
    assert table.targets.size == rows
    assert table.columns == (("2023", "2024") if header else ("column 1", "column 2"))


@pytest.mark.parametrize(
    ("column", "classes", "indices"),
    [
        (["rose", "lily", "rose"], ("lily", "rose"), [1, 0, 1]),
        (["10", "9", "10.0"], ("9", "10"), [1, 0, 1]),
        (["10", "9", "x"], ("10", "9", "x"), [0, 1, 2]),
        (["nan", "1", "nan"], ("1", "nan"), [1, 0, 1]),
    ],
)
def test_labels_are_numbered(
    column: list[str], classes: tuple[str, ...], indices: list[int], file: Path
) -> None:
    file.write_text("".join([f"0.5,{label}\n" for label in column]))
    table = read_csv(file, labels=True)
    assert table.classes == classes and table.targets.tolist() == indices
    assert table.targets.dtype == tk.int32
    assert table.columns == ("column 1", "column 2")


@pytest.mark.parametrize(
    ("data", "delimiter"),
    [
        (b"\xef\xbb\xbfa,kind\r\n1,x\r\n2,y\r\n", ","),
        (b'"a", "kind"\n"1", "x"\n2, "y"', ","),
        (b"a;kind\n1;x\n2;y\n;\n", ";"),
        (b"a\tkind\n1\tx\n2\ty\n", "\t"),
    ],
)
def test_files_are_as_spreadsheets_write_them(data: bytes, delimiter: str, file: Path) -> None:
    file.write_bytes(data)
    table = read_csv(file, labels=True, delimiter=delimiter)
    assert (table.columns, table.classes) == (("a", "kind"), ("x", "y"))
    assert table.inputs.tolist() == [[1.0], [2.0]] and table.targets.tolist() == [0, 1]


def test_quoted_words_may_contain_line_ends(file: Path) -> None:
    file.write_text('1,"a\n,b"\n2,x\n')
    assert read_csv(file, labels=True).classes == ("a\n,b", "x")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b,c\n1,2,3\n1,x,3\n", r"line 3, b: 'x' is not a number; correct the cell"),
        ("a,b,c\n\n1,2,x\n", r"line 3, c: 'x' is not a number"),
        ("1,x,3\n", r"line 1, column 2: 'x' is not a number"),
        ('"a","b\nc",d\n1,x,3\n', r"line 3, 'b\\nc': 'x' is not a number"),
        ("1,,3\n", r"line 1, column 2: '' is not a number"),
        ("1_000,2\n", r"there are no rows after the names"),
        ("1,2\n1_000,2\n", r"line 2, column 1: '1_000' is not a number"),
        ("1,2\nnan,2\n", r"line 2, column 1: 'nan' is not a finite float32"),
        ("1,2\n-inf,2\n", r"line 2, column 1: '-inf' is not a finite float32"),
        ("1,2\n1e39,2\n", r"line 2, column 1: '1e39' is not a finite float32"),
        ("1,2\n\n1,2,3\n", r"line 3: there are 3 cells, need 2 as in the first"),
        ("1,2\n1\n", r"line 2: there are 1 cells, need 2"),
        ("1;2\n3;4\n", r"line 1: there is only one cell.*delimiter is ','"),
        ("a,b\n", r"there are no rows after the names of the columns"),
        ("\n,\n", r"there are no rows"),
        ("", r"the file is empty"),
        ('1,2\n"1,2\n', r"line 2: unexpected end of data"),
    ],
)
def test_errors_name_the_line(text: str, message: str, file: Path) -> None:
    file.write_text(text)
    with pytest.raises(ContentError, match=rf"table\.csv(, |: ){message}") as caught:
        read_csv(file)
    assert "\n" not in str(caught.value)


def test_every_row_has_a_label(file: Path) -> None:
    file.write_text("1,x\n2, \n")
    with pytest.raises(ContentError, match="line 2: the label is empty"):
        read_csv(file, labels=True)


def test_invalid_text_is_refused(file: Path) -> None:
    file.write_bytes(b"1,2\n\xff,3\n")
    with pytest.raises(ContentError, match="line 2: byte 0xff is not UTF-8"):
        read_csv(file)
    with pytest.raises(FileError, match="cannot read"):
        read_csv(file.with_name("nowhere"))
