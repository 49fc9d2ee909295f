"""Execution: run a program on a backend, compiled by a plugin or by the backend, else op by op."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, Protocol, runtime_checkable

from tensorken.programs.code import Code
from tensorken.programs.compiler_choice import chosen_compilers
from tensorken.programs.compiler_output import printing_to_stderr
from tensorken.programs.passes.inlining import inline
from tensorken.programs.passes.pipeline import optimised
from tensorken.programs.pieces import joined, pieces, runner_of
from tensorken_core.errors import BackendError, SettingError
from tensorken_core.host.backend_choice import warn_user
from tensorken_core.host.discovery import describe
from tensorken_core.host.loading import Registry
from tensorken_core.host.plugin import hookimpl
from tensorken_core.host.registry import REGISTRY
from tensorken_core.language.observe import OBSERVERS, UNOBSERVED, notify
from tensorken_core.language.op import Op
from tensorken_core.language.raw import RawTensor
from tensorken_core.program.program import Equation, Program
from tensorken_core.rewriting.wrapper import Wrapper

Run = Callable[[Sequence[Any]], Sequence[Any]]
"""From representations of the inputs of a program to representations of its outputs."""


class Compiler(Protocol):
    """The compiler plugins."""

    def __call__(
        self, optimised: Callable[[], Program], backend: RawTensor[Any], traced: Program | None = None
    ) -> Run | None:
        """A function that runs a program; None if no plugin compiles it.

        Args:
            optimised: returns the program after the passes.
            backend: the backend.
            traced: the program before the passes, if all of it is compiled at once.
        """


def prepared(program: Program, backend: RawTensor[Any], is_checked: bool = False) -> Run:
    """A function that runs the program on a backend, cached.  Observers see each run as one op, PROGRAM.

    Args:
        program: the program.
        backend: the backend.
        is_checked: whether the caller knows that representations have the shapes and dtypes of the inputs; else the
            function checks them, and raises a ProgramError.
    """
    run = _observed(program, backend) if OBSERVERS else runner(program, backend)
    return run if is_checked else _checking(run, program, backend)


def _observed(program: Program, backend: RawTensor[Any]) -> Run:
    return lambda xs: notify(_run, backend, PROGRAM, xs, (program,))


def _checking(run: Run, program: Program, backend: RawTensor[Any]) -> Run:
    def checked(xs: Sequence[Any]) -> Sequence[Any]:
        program.check_inputs(backend, xs)
        return run(xs)

    return checked


def runner(program: Program, backend: RawTensor[Any]) -> Run:
    """The function of `prepared`, unobserved."""
    return program.once(("run", backend), lambda: _prepare(program, backend))


def _run(backend: RawTensor[Any], _: Op, xs: Sequence[Any], params: tuple[Any, ...]) -> Sequence[Any]:
    return runner(params[0], backend)(xs)


PROGRAM = Op(
    "program",
    None,
    shape=lambda *args: tuple([v.shape for v in args[-1].outputs]),
    dtype=lambda *args: tuple([v.dtype for v in args[-1].outputs]),
    params=("program",),
    results=None,
)
"""A run of a prepared program, as observers see it; no interpreter runs this op."""


@contextmanager
def unobserved() -> Iterator[None]:
    """Hide the ops that run within the block from all observers, for example the ops that passes run."""
    token = UNOBSERVED.set(True)
    try:
        yield
    finally:
        UNOBSERVED.reset(token)


def _prepare(program: Program, backend: RawTensor[Any]) -> Run:
    with unobserved():
        run = compiled(program, backend)
    if run is not None:
        return run
    flat = inline(program)
    return lambda xs: flat.replay(backend, xs)


def compiled(program: Program, backend: RawTensor[Any]) -> Run | None:
    """The program compiled by a compiler plugin, else by the backend; None if neither compiles it."""
    if isinstance(backend, Wrapper):
        run_wrapped: Run | None = backend.compile_below(compiled, program)
        return run_wrapped
    plugin_compiler = compiler_of(REGISTRY)
    if plugin_compiler is None and type(backend).compile is RawTensor.compile:
        return None
    after_passes = functools.cache(lambda: optimised(program, backend))
    run: Run | None
    if program.opaque and after_passes().opaque:
        run = _compiled_with_opaque_ops(after_passes(), backend, plugin_compiler)
    else:
        run = plugin_compiler(after_passes, backend, program) if plugin_compiler is not None else None
        if run is None:
            run = backend.compile(after_passes())
    if run is not None:
        program.derived[(_COMPILED, backend)] = run
    return run


def _compiled_with_opaque_ops(
    program: Program, backend: RawTensor[Any], plugin_compiler: Compiler | None
) -> Run:
    """The program compiled by the backend if it takes opaque ops, and no plugin compiles a piece; else it is cut."""
    parts: list[tuple[Equation | Program, Run | None]] = [
        (part, _compiled_piece(part, backend, plugin_compiler) if isinstance(part, Program) else None)
        for part in pieces(program)
    ]
    if backend.compiles_opaque_ops and not any([run for _, run in parts]):
        whole = backend.compile(program)
        if whole is not None:
            return whole

    def run_of(part: Equation | Program) -> Run:
        if isinstance(part, Equation):
            return runner_of(part, backend)
        return backend.compile(part) or (lambda xs: part.replay(backend, xs))

    return joined(program, [(part, run or run_of(part)) for part, run in parts], backend)


def _compiled_piece(program: Program, backend: RawTensor[Any], compiler: Compiler | None) -> Run | None:
    return None if compiler is None else compiler(lambda: program, backend)


_COMPILED = "compiled"


@runtime_checkable
class Writable(Protocol):
    """A compiled function that may write its calls into a function that is generated; a compiler need not have any."""

    def write_call(self, code: Code, inputs: Sequence[str]) -> list[str] | None:
        """Write statements that do what a call does, and return the names of the outputs; None if it must be called.

        Args:
            code: gets the statements.
            inputs: expressions for the inputs, which may have size 1 along axes whose elements repeat.
        """


def write_call(
    code: Code, program: Program, backend: RawTensor[Any], inputs: Sequence[str]
) -> Sequence[str] | None:
    """Write statements that do what the function of `prepared` does, unobserved.

    Args:
        code: gets the statements.
        program: the program.
        backend: as in `prepared`.
        inputs: expressions for the representations of the inputs.

    Returns:
        Expressions for the representations of the outputs; None if the function must be called.
    """
    run: Any = compiled_function(program, backend)
    if not isinstance(run, Writable):
        return None
    before = len(code.lines)
    outputs = _write_below(code, program, backend, run, inputs)
    if outputs is None:
        del code.lines[before:]
    return outputs


def _write_below(
    code: Code, program: Program, backend: RawTensor[Any], run: Writable, inputs: Sequence[str]
) -> Sequence[str] | None:
    if isinstance(backend, Wrapper):
        outputs: Sequence[str] | None = backend.write_call(
            code, program, inputs, lambda values: _write_below(code, program, backend.raw, run, values)
        )
        return outputs
    return run.write_call(code, inputs)


def compiled_function(program: Program, backend: RawTensor[Any]) -> Run | None:
    """The function from a compiler or the backend, without the code of wrappers around it; None if there is none."""
    runner(program, backend)
    while isinstance(backend, Wrapper):
        backend = backend.raw
    run: Run | None = program.derived.get((_COMPILED, backend))
    return run


def compiled_functions(program: Program) -> list[Run]:
    """The compiled functions of the program, for all backends."""
    return [run for key, run in program.derived.items() if isinstance(key, tuple) and key[0] == _COMPILED]


@functools.cache
def _hook_of(registry: Registry) -> Any:
    """The hook of the compiler plugins, which are loaded first."""
    registry.load_plugins()
    return registry.hook.tensorken_compile


def compiler_of(registry: Registry) -> Compiler | None:
    """A function that calls the compiler plugins of a registry in turn; None if there are none.

    The first call loads the plugins.
    """
    hook = _hook_of(registry)
    chosen = chosen_compilers(hook.get_hookimpls()[::-1])
    if not chosen:
        return None

    before_passes = {
        impl.plugin_name: impl for impl in registry.hook.tensorken_compile_traced.get_hookimpls()
    }

    def compile_(
        optimised: Callable[[], Program], backend: RawTensor[Any], traced: Program | None = None
    ) -> Run | None:
        arguments = {"backend": backend, "optimised": optimised}
        # in pluggy's order, but one by one, so that the error can name the plugin that failed
        for hook_impl in chosen:
            is_before = traced is not None and hook_impl.plugin_name in before_passes
            hook_impl = before_passes[hook_impl.plugin_name] if is_before else hook_impl
            program = traced if is_before and traced is not None else optimised()
            arguments["program"] = program
            function: Any = hook_impl.function
            try:
                with printing_to_stderr():
                    run: Run | None = function(*[arguments[name] for name in hook_impl.argnames])
            except SettingError:
                raise  # the user's fault, not the compiler's
            except Exception as error:
                optimised()  # an error of the passes is not the compiler's
                message = (
                    f"compiler {hook_impl.plugin_name} failed on program {program.name!r}: {describe(error)}; "
                    f"report it to its author, or uninstall {hook_impl.plugin_name.rpartition('@')[2]}"
                )
                if _FAILING:
                    raise BackendError(message) from error
                warn_user(f"{message}; the program runs without it")
                continue
            for note in _OFFER_OBSERVERS:
                note(hook_impl.plugin_name, program, run is not None)
            if run is not None:
                return run
        return None

    return compile_


_FAILING: list[None] = []
"""One entry for each running block of `failing_compilers`, in any thread."""


@contextmanager
def failing_compilers() -> Iterator[None]:
    """Within the block, in any thread, a compiler plugin that raises is a BackendError.

    Otherwise it is a warning, and the next compiler or the backend runs the program.
    """
    _FAILING.append(None)
    try:
        yield
    finally:
        _FAILING.pop()


_OFFER_OBSERVERS: list[Callable[[str, Program, bool], None]] = []


@contextmanager
def observe_compilers(note: Callable[[str, Program, bool], None]) -> Iterator[None]:
    """Within the block, call `note(name, program, compiled)` after each call of a compiler plugin, in any thread.

    Args:
        note: a function of the name of the plugin, the program, and whether the plugin compiled it.
    """
    _OFFER_OBSERVERS.append(note)
    try:
        yield
    finally:
        _OFFER_OBSERVERS.remove(note)


def compiler_plugins() -> list[tuple[str, Callable[..., Run | None]]]:
    """The names and hooks of the chosen compiler plugins, in the order in which they are called."""
    hooks = _hook_of(REGISTRY).get_hookimpls()[::-1]
    return [(hook_impl.plugin_name, hook_impl.function) for hook_impl in chosen_compilers(hooks)]


@contextmanager
def with_compiler(compiler: Callable[..., Run | None], name: str) -> Iterator[None]:
    """Register a compiler within the block, as if it were installed; it is called before installed ones.

    Args:
        compiler: a function with the parameters of the hook `tensorken_compile`.
        name: the name of the plugin, for messages.
    """
    if not hasattr(compiler, "tensorken_impl"):
        compiler = hookimpl(compiler)
    plugin = SimpleNamespace(tensorken_compile=compiler)
    REGISTRY.load_plugins()
    REGISTRY.plugins.register(plugin, name)
    try:
        yield
    finally:
        REGISTRY.plugins.unregister(plugin)
