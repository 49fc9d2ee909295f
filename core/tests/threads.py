"""Threads: run a function in several threads at once."""

from __future__ import annotations

import threading
from collections.abc import Callable


def together(count: int, run: Callable[[int], None]) -> None:
    """Run a function in several threads that start together, and raise an exception of any of them."""
    begin, errors = threading.Barrier(count), []

    def body(number: int) -> None:
        begin.wait()
        try:
            run(number)
        except Exception as error:  # noqa: BLE001, the test raises it
            errors.append(error)

    threads = [threading.Thread(target=body, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
