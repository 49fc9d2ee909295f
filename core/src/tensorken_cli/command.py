"""The command `tensorken`: lists and checks the installed plugins, and runs the subcommands of plugins.

It prints no tracebacks (TENSORKEN_TRACE_PLUGINS=1 shows them).  A plugin is imported when its subcommand runs.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import traceback
from collections.abc import Sequence

from tensorken_cli import plugin_commands
from tensorken_cli.parser import FAILURE, INTERRUPTED, OK
from tensorken_cli.parsers import OWN_COMMANDS, own_parser, root_parser
from tensorken_core.errors import TensorkenError
from tensorken_core.host.discovery import describe, trace_enabled
from tensorken_core.host.load_monitor import write_message


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command `tensorken` with these arguments (None: the process's arguments); return its exit status.

    >>> main(["backends", "--colour"])
    Traceback (most recent call last):
    SystemExit: 2
    """
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    try:
        try:
            return _run(arguments)
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except KeyboardInterrupt:
        write_message("interrupted")
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001, users see no traceback
        if _is_broken_pipe(error):
            _abandon_output()
        else:
            _report(error, arguments[0] if arguments else "help")
        return FAILURE


def _run(arguments: list[str]) -> int:
    command = arguments[0] if arguments and not arguments[0].startswith("-") else ""
    if command == "help":
        return _run([*arguments[1:], "--help"])
    if command in OWN_COMMANDS:
        options = own_parser(command).parse_args(arguments[1:])
        status: int = options.run(options)
        return status
    if command:
        return plugin_commands.run(command, arguments[1:], OWN_COMMANDS)
    parser = root_parser()
    options = parser.parse_args(arguments)
    if options.json and not options.version:
        parser.error("--json needs --version or a subcommand")
    if options.version:
        from tensorken_cli import versions

        print(versions.as_json() if options.json else versions.as_line())
    else:
        parser.print_help()
    return OK


def _report(error: Exception, command: str) -> None:
    if trace_enabled():
        traceback.print_exception(error)
    if isinstance(error, TensorkenError):
        write_message(str(error))
    else:
        hint = "" if trace_enabled() else "; TENSORKEN_TRACE_PLUGINS=1 shows where"
        write_message(f"{command}: {describe(error)}{hint}")


def _is_broken_pipe(error: Exception) -> bool:
    """Whether the reader of stdout has exited, as in `tensorken ... | head`; Windows reports EINVAL."""
    on_windows = sys.platform == "win32" and isinstance(error, OSError) and error.errno == errno.EINVAL
    return isinstance(error, BrokenPipeError) or on_windows


def _abandon_output() -> None:
    """Send later output, such as the flush at exit, to the null device."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
