"""Many rows in one test: pytest's overhead for a parametrized test is larger than the time of most rows."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

Test = Callable[..., None]
Row = Mapping[str, Any]


def each_of(names: str | tuple[str, ...], rows: Iterable[Any]) -> Callable[[Test], Test]:
    """Like `pytest.mark.parametrize`, but in one test: all rows run, and all failures are reported.

    All rows share the fixtures of the test, so a row must not change them.
    """
    keys = (names,) if isinstance(names, str) else names
    table = [dict(zip(keys, (row,) if isinstance(names, str) else row, strict=True)) for row in rows]
    assert table, f"no rows of {names}"
    return lambda test: with_rows(test, keys, lambda **given: table)


def with_rows(test: Test, keys: Sequence[str], rows: Callable[..., Sequence[Row]]) -> Test:
    """A test without the arguments that these keys name: it takes them from rows, which the others may choose."""
    assert not hasattr(test, "hypothesis"), "write the rows above what hypothesis draws"
    signature = inspect.signature(test)
    left = [argument for name, argument in signature.parameters.items() if name not in keys]

    @functools.wraps(test)
    def in_turn(**given: Any) -> None:
        failed: list[Exception] = []
        table = rows(**given)
        for row in table:
            try:
                test(**given, **row)
            except Exception as error:  # noqa: BLE001, reported below, with the row
                error.add_note(f"with {', '.join(f'{name}={value!r}' for name, value in row.items())}")
                failed.append(error)
        if len(failed) == 1:
            raise failed[0]
        if failed:
            raise ExceptionGroup(f"{len(failed)} of {len(table)} rows failed", failed)

    in_turn.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]  # pytest reads it
    return in_turn
