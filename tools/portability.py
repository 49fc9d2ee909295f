"""Find code that works on POSIX systems only: `python -m tools.portability` prints it, and fails if there is any.

It reads the sources of all distributions.  These are faults:

* a module or a name that Windows or macOS lacks, such as `fcntl`, `os.killpg` or `signal.SIGKILL`;
* an absolute path of POSIX systems, such as `/tmp`, and a file's path that is split or tested at `/`;
* a text file, or the text of a process, without an encoding;
* processes by multiprocessing's default method, which is `fork` on some systems and versions of Python.

A name or a path may stand behind a guard: a condition that asks `sys.platform`, `os.name`, `hasattr` or `getattr`, an
earlier branch on such a condition that leaves the block, or a `try` that catches the error of a system without it.
There is no list of exceptions.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tools.workspace import ROOT, distributions

MODULES = frozenset(
    "_winapi curses fcntl grp msvcrt nt posix pty pwd resource syslog termios tty winreg winsound".split()
)
"""Modules that some system lacks."""

NAMES = {
    "os": "O_CLOEXEC O_DIRECTORY O_NOFOLLOW O_NONBLOCK O_TMPFILE WEXITSTATUS WIFEXITED WNOHANG chown chroot eventfd "
    "fchmod fchown fork forkpty getegid geteuid getgid getloadavg getpgid getpgrp getpriority getuid initgroups "
    "killpg lchown major memfd_create mkfifo mknod nice openpty pipe2 posix_fadvise posix_spawn pread pwrite readv "
    "register_at_fork sched_getaffinity sched_setaffinity sendfile setegid seteuid setgid setpgid setpriority "
    "setsid setuid startfile statvfs sync sysconf tcgetpgrp ttyname uname wait wait3 wait4 waitid writev",
    "select": "devpoll epoll kevent kqueue poll",
    "signal": "CTRL_BREAK_EVENT CTRL_C_EVENT ITIMER_REAL SIGALRM SIGBUS SIGCHLD SIGCONT SIGHUP SIGKILL SIGPIPE SIGPROF "
    "SIGQUIT SIGSTOP SIGTSTP SIGTTIN SIGTTOU SIGUSR1 SIGUSR2 SIGVTALRM SIGWINCH SIGXCPU alarm getitimer pause "
    "pthread_kill pthread_sigmask setitimer siginterrupt sigpending sigtimedwait sigwait",
    "socket": "AF_UNIX SO_REUSEPORT",
    "subprocess": "CREATE_NEW_PROCESS_GROUP CREATE_NO_WINDOW DETACHED_PROCESS STARTUPINFO",
    "time": "clock_getres clock_gettime clock_gettime_ns pthread_getcpuclockid tzset",
}
"""Names that some system lacks, by their modules."""

LACKING = {module: frozenset(names.split()) for module, names in NAMES.items()}
PATHS = re.compile(r"/(bin|dev|etc|home|lib|opt|proc|root|run|sys|tmp|usr|var)(/|$)")
ERRORS = {
    "module": {"ImportError", "ModuleNotFoundError"},
    "name": {"AttributeError"},
    "path": {"OSError", "FileNotFoundError"},
}
"""For each kind of fault the errors of a system that lacks it."""

CALLS = frozenset(
    "read_text write_text open run Popen check_output check_call NamedTemporaryFile TemporaryFile fdopen Process Pool "
    "ProcessPoolExecutor get_context set_start_method split rsplit partition rpartition startswith endswith".split()
)
"""The functions whose calls are looked at."""

KINDS = frozenset(ERRORS)

LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)
TEXT_MODE = re.compile(r"[rwxa]t?\+?t?")
OF_FILES = re.compile(
    r"\b(__file__|co_filename|fspath|Path)\b|\bstr\(\w*(path|file|folder)\w*\)|\.filename\b"
)


def faults(source: str) -> list[tuple[int, str]]:
    """The lines of a module with faults, and what the faults are."""
    tree = ast.parse(source)
    docstrings = {
        node.body[0].value
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
        and isinstance(node.body[0].value, ast.Constant)
    }
    found: set[tuple[int, str]] = set()

    def visit(node: ast.AST, guards: frozenset[str]) -> None:
        """Look at a node and all below it, which is guarded against these kinds of faults."""
        if isinstance(node, ast.expr | ast.stmt) and node not in docstrings:
            found.update((node.lineno, what) for kind, what in _faults_of(node) if kind not in guards)
        conditions = [node.test] if isinstance(node, ast.If | ast.IfExp | ast.While) else []
        if any(map(_asks, node.values if isinstance(node, ast.BoolOp) else conditions)):
            guards |= KINDS
        for field, value in ast.iter_fields(node):
            inner = guards | _caught(node) if field == "body" else guards
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    visit(child, inner)
                if isinstance(child, ast.If) and isinstance(child.body[-1], LEAVES) and _asks(child.test):
                    inner |= KINDS  # the statements after it

    visit(tree, frozenset())
    return sorted(found)


def _caught(node: ast.AST) -> frozenset[str]:
    """The kinds of faults whose errors a `try` or a `with suppress(...)` catches."""
    names: set[str] = set()
    if isinstance(node, ast.Try):
        for handler in node.handlers:
            caught = handler.type or ast.Name("Exception")
            names.update(map(ast.unparse, caught.elts if isinstance(caught, ast.Tuple) else [caught]))
    elif isinstance(node, ast.With):
        for item in node.items:
            call = item.context_expr
            if isinstance(call, ast.Call) and _dotted(call.func).endswith("suppress"):
                names.update(map(ast.unparse, call.args))
    return frozenset(kind for kind, errors in ERRORS.items() if names & (errors | {"Exception"}))


def _asks(test: ast.expr) -> bool:
    """Whether a condition depends on the system: `sys.platform`, a variable `platform`, `os.name`, `hasattr(...)`."""
    for node in ast.walk(test):
        if isinstance(node, ast.Name) and node.id in ("platform", "hasattr", "getattr"):
            return True
        if isinstance(node, ast.Attribute) and (node.attr == "platform" or _dotted(node) == "os.name"):
            return True
    return False


def _faults_of(node: ast.AST) -> Iterator[tuple[str, str]]:
    """The faults of one node, each with its kind."""
    if isinstance(node, ast.Import):
        imported = [alias.name.split(".")[0] for alias in node.names]
        yield from (("module", f"not every system has {name}") for name in imported if name in MODULES)
    elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
        if node.module.split(".")[0] in MODULES:
            yield "module", f"not every system has {node.module}"
        lacking = LACKING.get(node.module, frozenset())
        yield from (
            ("module", f"not every system has {node.module}.{alias.name}")
            for alias in node.names
            if alias.name in lacking
        )
    elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        if node.attr in LACKING.get(node.value.id, frozenset()):
            yield "name", f"not every system has {node.value.id}.{node.attr}"
    elif isinstance(node, ast.Constant) and isinstance(node.value, str) and PATHS.match(node.value):
        yield "path", f"not every system has {node.value!r}"
    elif isinstance(node, ast.Call):
        yield from _faults_of_call(node)


def _faults_of_call(call: ast.Call) -> Iterator[tuple[str, str]]:
    function = _dotted(call.func)
    name = function.rpartition(".")[2]
    if name not in CALLS:
        return
    given = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    if name in ("read_text", "write_text") and isinstance(call.func, ast.Attribute):
        if "encoding" not in given and len(call.args) < (1 if name == "read_text" else 2):
            yield "encoding", f"{function} without an encoding"
    elif name == "open" and "encoding" not in given and _is_text(call, given):
        yield "encoding", f"{function} of a text file without an encoding"
    elif name in ("run", "Popen", "check_output", "check_call") and function.startswith("subprocess."):
        if ({"text", "universal_newlines"} & set(given)) and "encoding" not in given:
            yield "encoding", f"{function} with text, but without an encoding"
    elif name in ("NamedTemporaryFile", "TemporaryFile", "fdopen"):
        mode = (
            call.args[1]
            if name == "fdopen" and len(call.args) > 1
            else given.get("mode", call.args[0] if call.args else None)
        )
        if (
            isinstance(mode, ast.Constant)
            and TEXT_MODE.fullmatch(str(mode.value))
            and "encoding" not in given
        ):
            yield "encoding", f"{function} of a text file without an encoding"
    elif name == "ProcessPoolExecutor" and "mp_context" not in given:
        yield "method", f"{function} without mp_context: the default method is fork on some systems"
    elif function in ("multiprocessing.Process", "multiprocessing.Pool", "mp.Process", "mp.Pool"):
        yield "method", f"{function}: the default method is fork on some systems; use get_context('spawn')"
    elif name in ("get_context", "set_start_method"):
        method = given.get("method", call.args[0] if call.args else ast.Constant(None))
        if (
            not (isinstance(method, ast.Constant) and method.value == "spawn")
            and "multiprocessing" in function
        ):
            yield "method", f"{function} of a method that not every system has; use 'spawn'"
    elif name in ("split", "rsplit", "partition", "rpartition", "startswith", "endswith") and call.args:
        first = call.args[0]
        is_slash = isinstance(first, ast.Constant) and isinstance(first.value, str) and "/" in first.value
        if is_slash and isinstance(call.func, ast.Attribute) and _is_path(call.func.value):
            yield "slash", f"{ast.unparse(call)} expects / in a path; use pathlib, or as_posix()"


def _dotted(function: ast.expr) -> str:
    """The name of a function with dots; of another expression only its last attribute."""
    names = []
    while isinstance(function, ast.Attribute):
        names.append(function.attr)
        function = function.value
    return ".".join(reversed([*names, function.id] if isinstance(function, ast.Name) else names))


def _is_path(value: ast.expr) -> bool:
    text = ast.unparse(value)
    return bool(OF_FILES.search(text)) and "as_posix" not in text


def _is_text(call: ast.Call, given: dict[str, ast.expr]) -> bool:
    """Whether a call of `open` opens a text file, as far as it shows."""
    if isinstance(call.func, ast.Name):  # the built-in
        mode = given.get("mode", call.args[1] if len(call.args) > 1 else ast.Constant("r"))
        return isinstance(mode, ast.Constant) and bool(TEXT_MODE.fullmatch(str(mode.value)))
    if _dotted(call.func) in ("os.open", "webbrowser.open"):
        return False
    mode = given.get("mode", call.args[0] if call.args else ast.Constant("r"))
    return isinstance(mode, ast.Constant) and bool(TEXT_MODE.fullmatch(str(mode.value)))


def main(arguments: Sequence[str] | None = None) -> int:
    """Check these files and folders, or the sources of all distributions; returns the exit status."""
    places = [Path(one) for one in (sys.argv[1:] if arguments is None else arguments)]
    places = places or [folder / "src" for folder in distributions(optional=True)]
    count = 0
    for place in places:
        for file in [place] if place.is_file() else sorted(place.rglob("*.py")):
            for line, what in faults(file.read_text(encoding="utf-8")):
                path = file.relative_to(ROOT) if file.is_relative_to(ROOT) else file
                print(f"{path.as_posix()}:{line}: {what}", file=sys.stderr)
                count += 1
    return int(bool(count))


if __name__ == "__main__":
    sys.exit(main())
