"""Threads: long loops of machine code are divided among the threads of one pool.

A loop is published as a function of a range of its iterations.  The calling thread and the workers take ranges from a
counter, so a worker that the system does not run delays nothing.  Workers sleep when there is nothing to do.  They are
threads without a Python state, and run machine code alone.  If several Python threads run programs at once, one of them
has the pool, and the others run their loops by themselves.

TENSORKEN_LLVM_THREADS is the number of threads; by default, as many as processors that this process may use.
"""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from llvmlite import ir

from tensorken_core.host import variables
from tensorken_llvm.builder import Builder, declared, new_function
from tensorken_llvm.dtypes import INT64, POINTER, index_number
from tensorken_llvm.machine import define_symbol, load_text, triple

VARIABLE = "TENSORKEN_LLVM_THREADS"

MAX_WORKERS = 255

SPINS = 400
"""How often a thread looks for work, or for the end of it, before it sleeps: some 20 microseconds."""

RUN = "tensorken_run_parts"
"""The function that runs a loop.

Its arguments are the function of a range, its frame, the number of iterations, and the least size of a range.
"""

_PAUSES = {"x86_64": "call void @llvm.x86.sse2.pause()", "aarch64": "call void @llvm.aarch64.hint(i32 1)"}

_POOL = """
@owned = internal global i64 0, align 64
@state = internal global i64 0, align 64    ; bit 32: open; below: the number of workers that take ranges
@next = internal global i64 0, align 64     ; of the ranges
@waiting = internal global i64 0, align 64  ; whether the thread with the pool sleeps until the workers are done
@function = internal global ptr null, align 64
@frame = internal global ptr null
@count = internal global i64 0
@size = internal global i64 0               ; of a range
@workers = internal global i64 0
@lock = internal global ptr null            ; on which the thread with the pool sleeps
@locks = internal global [{most} x ptr] zeroinitializer, align 64
@asleep = internal global [{most} x i64] zeroinitializer, align 64

declare i32 @PyThread_acquire_lock(ptr, i32)
declare void @PyThread_release_lock(ptr)
{declaration}

define void @reset(ptr %lock, ptr %locks, i64 %workers) {{
  store i64 0, ptr @owned
  store i64 0, ptr @state
  store i64 0, ptr @waiting
  store i64 %workers, ptr @workers
  store ptr %lock, ptr @lock
  br label %head
head:
  %i = phi i64 [0, %0], [%following, %body]
  %more = icmp ult i64 %i, %workers
  br i1 %more, label %body, label %done
body:
  %from = getelementptr ptr, ptr %locks, i64 %i
  %one = load ptr, ptr %from
  %to = getelementptr ptr, ptr @locks, i64 %i
  store ptr %one, ptr %to
  %flag = getelementptr i64, ptr @asleep, i64 %i
  store i64 0, ptr %flag
  %following = add i64 %i, 1
  br label %head
done:
  ret void
}}

; Take ranges until there are none.
define internal void @take() {{
  %function = load ptr, ptr @function
  %frame = load ptr, ptr @frame
  %count = load i64, ptr @count
  %size = load i64, ptr @size
  br label %head
head:
  %i = atomicrmw add ptr @next, i64 1 seq_cst
  %begin = mul i64 %i, %size
  %more = icmp ult i64 %begin, %count
  br i1 %more, label %body, label %done
body:
  %whole = add i64 %begin, %size
  %end = call i64 @llvm.umin.i64(i64 %whole, i64 %count)
  call void %function(ptr %frame, i64 %begin, i64 %end)
  br label %head
done:
  ret void
}}

; Whether there is a range to take.
define internal i1 @is_open() {{
  %state = load atomic i64, ptr @state seq_cst, align 8
  %bit = and i64 %state, {open}
  %is_open = icmp ne i64 %bit, 0
  %i = load atomic i64, ptr @next seq_cst, align 8
  %size = load atomic i64, ptr @size monotonic, align 8
  %count = load atomic i64, ptr @count monotonic, align 8
  %begin = mul i64 %i, %size
  %more = icmp ult i64 %begin, %count
  %both = and i1 %is_open, %more
  ret i1 %both
}}

; Become one of the workers that take ranges; the loop stays the same until they leave.
define internal i1 @join() {{
  br label %head
head:
  %state = load atomic i64, ptr @state seq_cst, align 8
  %bit = and i64 %state, {open}
  %is_open = icmp ne i64 %bit, 0
  br i1 %is_open, label %body, label %closed
body:
  %joined = add i64 %state, 1
  %pair = cmpxchg ptr @state, i64 %state, i64 %joined seq_cst seq_cst
  %done = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %done, label %inside, label %head
inside:
  ret i1 true
closed:
  ret i1 false
}}

define internal void @leave() {{
  %before = atomicrmw sub ptr @state, i64 1 seq_cst
  %is_last = icmp eq i64 %before, 1
  br i1 %is_last, label %last, label %done
last:
  %pair = cmpxchg ptr @waiting, i64 1, i64 0 seq_cst seq_cst
  %waits = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %waits, label %wake, label %done
wake:
  %lock = load ptr, ptr @lock
  call void @PyThread_release_lock(ptr %lock)
  br label %done
done:
  ret void
}}

define void @work(ptr %argument) {{
  %k = ptrtoint ptr %argument to i64
  %flag = getelementptr i64, ptr @asleep, i64 %k
  %place = getelementptr ptr, ptr @locks, i64 %k
  %lock = load ptr, ptr %place
  br label %start
start:
  br label %look
look:
  %spins = phi i64 [0, %start], [%following, %spin]
  %is_open = call i1 @is_open()
  br i1 %is_open, label %try, label %spin
spin:
  {pause}
  %following = add i64 %spins, 1
  %again = icmp ult i64 %following, {spins}
  br i1 %again, label %look, label %sleep
try:
  %joined = call i1 @join()
  br i1 %joined, label %inside, label %start
inside:
  call void @take()
  call void @leave()
  br label %start
sleep:
  store atomic i64 1, ptr %flag seq_cst, align 8
  %is_open_now = call i1 @is_open()
  br i1 %is_open_now, label %cancel, label %wait
cancel:
  %pair = cmpxchg ptr %flag, i64 1, i64 0 seq_cst seq_cst
  %cancelled = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %cancelled, label %start, label %wait
wait:
  %got = call i32 @PyThread_acquire_lock(ptr %lock, i32 1)
  br label %start
}}

; Wake workers that sleep, at most this many.
define internal void @wake(i64 %most) {{
  %workers = load i64, ptr @workers
  %some = call i64 @llvm.umin.i64(i64 %workers, i64 %most)
  br label %head
head:
  %k = phi i64 [0, %0], [%following, %next]
  %more = icmp ult i64 %k, %some
  br i1 %more, label %body, label %done
body:
  %flag = getelementptr i64, ptr @asleep, i64 %k
  %pair = cmpxchg ptr %flag, i64 1, i64 0 seq_cst seq_cst
  %slept = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %slept, label %release, label %next
release:
  %place = getelementptr ptr, ptr @locks, i64 %k
  %lock = load ptr, ptr %place
  call void @PyThread_release_lock(ptr %lock)
  br label %next
next:
  %following = add i64 %k, 1
  br label %head
done:
  ret void
}}

; Wait until no worker takes ranges.
define internal void @wait() {{
  br label %look
look:
  %spins = phi i64 [0, %0], [%following, %spin]
  %state = load atomic i64, ptr @state seq_cst, align 8
  %is_done = icmp eq i64 %state, 0
  br i1 %is_done, label %done, label %spin
spin:
  {pause}
  %following = add i64 %spins, 1
  %again = icmp ult i64 %following, {spins}
  br i1 %again, label %look, label %sleep
sleep:
  store atomic i64 1, ptr @waiting seq_cst, align 8
  %state_now = load atomic i64, ptr @state seq_cst, align 8
  %is_done_now = icmp eq i64 %state_now, 0
  br i1 %is_done_now, label %cancel, label %acquire
cancel:
  %pair = cmpxchg ptr @waiting, i64 1, i64 0 seq_cst seq_cst
  %cancelled = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %cancelled, label %done, label %acquire
acquire:
  %lock = load ptr, ptr @lock
  %got = call i32 @PyThread_acquire_lock(ptr %lock, i32 1)
  %state_after = load atomic i64, ptr @state seq_cst, align 8
  %is_done_after = icmp eq i64 %state_after, 0
  br i1 %is_done_after, label %done, label %sleep
done:
  ret void
}}

define void @{run}(ptr %function, ptr %frame, i64 %count, i64 %grain) {{
  %workers = load i64, ptr @workers
  %alone = icmp eq i64 %workers, 0
  %short = icmp ule i64 %count, %grain
  %serial = or i1 %alone, %short
  br i1 %serial, label %all, label %own
own:
  %pair = cmpxchg ptr @owned, i64 0, i64 1 seq_cst seq_cst
  %has_pool = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %has_pool, label %publish, label %all
all:
  call void %function(ptr %frame, i64 0, i64 %count)
  ret void
publish:
  %threads = add i64 %workers, 1
  %wanted = mul i64 %threads, {parts}
  %units = mul i64 %wanted, %grain
  %above = sub i64 %units, 1
  %rounded = add i64 %count, %above
  %grains = udiv i64 %rounded, %units
  %size = mul i64 %grains, %grain
  store ptr %function, ptr @function
  store ptr %frame, ptr @frame
  store atomic i64 %count, ptr @count monotonic, align 8
  store atomic i64 %size, ptr @size monotonic, align 8
  store atomic i64 0, ptr @next seq_cst, align 8
  store atomic i64 {open}, ptr @state seq_cst, align 8
  %others = sub i64 %count, 1
  %most = udiv i64 %others, %size
  call void @wake(i64 %most)
  call void @take()
  %before = atomicrmw sub ptr @state, i64 {open} seq_cst
  call void @wait()
  store atomic i64 0, ptr @owned seq_cst, align 8
  ret void
}}

declare i64 @llvm.umin.i64(i64, i64)
"""

PARTS = 4
"""Ranges for each thread."""


@dataclass(frozen=True, slots=True)
class Split:
    """How a loop is divided.

    Attributes:
        count: of iterations.
        grain: the least iterations of a range; the size of each range is a multiple.
    """

    count: int
    grain: int


def write_split(
    module: ir.Module, name: str, part: ir.Function, arguments: Sequence[Any], split: Split, b: Builder
) -> None:
    """Write a loop of which threads run parts.

    Args:
        module: with the functions.
        name: of a new function.
        part: runs some iterations; its arguments are pointers, and the first iteration and the one after the last.
        arguments: the pointers.
        split: how to divide the loop.
        b: writes the call.
    """
    chunk = new_function(module, name, [POINTER, INT64, INT64])
    inner = Builder(chunk.append_basic_block("entry"))
    frame, *bounds = chunk.args
    pointers = [
        inner.load(inner.gep(frame, [index_number(i)], source_etype=POINTER), typ=POINTER)
        for i in range(len(arguments))
    ]
    inner.call(part, [*pointers, *bounds])
    inner.ret_void()
    with b.goto_entry_block():
        given = b.alloca(POINTER, len(arguments))
    for i, argument in enumerate(arguments):
        b.store(argument, b.gep(given, [index_number(i)], source_etype=POINTER))
    run = declared(module, RUN, ir.VoidType(), [POINTER, POINTER, INT64, INT64])
    b.call(run, [chunk, given, index_number(split.count), index_number(split.grain)])


# ---- the pool ----------------------------------------------------------------------------------------------


def thread_count() -> int:
    """The number of threads, with the one that calls a program.

    Raises:
        SettingError: if TENSORKEN_LLVM_THREADS is no positive integer.
    """
    chosen = variables.count(VARIABLE)
    if chosen is None:
        affinity = getattr(os, "sched_getaffinity", None)
        return len(affinity(0)) if affinity is not None else os.cpu_count() or 1
    return min(chosen, MAX_WORKERS + 1)


@functools.cache
def start() -> int:
    """Start the pool, when a program with split loops is loaded; the address of the function that runs them."""
    _start_workers()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_start_workers)
    return _pool()[RUN]


define_symbol(RUN, start)


@functools.cache
def _pool() -> Mapping[str, int]:
    """The addresses of the functions of the pool."""
    return load_text(_text(), ["reset", "work", RUN])


def _text() -> str:
    architecture = triple().partition("-")[0]
    pause = _PAUSES.get(architecture, "")
    declaration = ""
    if pause:
        arguments = "i32" if "i32" in pause else ""
        declaration = f"declare void {pause.split()[2].partition('(')[0]}({arguments})"
    return _POOL.format(
        most=MAX_WORKERS,
        open=2**32,
        spins=SPINS,
        pause=pause,
        declaration=declaration,
        parts=PARTS,
        run=RUN,
    )


def _start_workers() -> None:
    """Start the workers; a forked process has none."""
    python = ctypes.pythonapi
    python.PyThread_allocate_lock.restype = ctypes.c_void_p
    python.PyThread_acquire_lock.argtypes = [ctypes.c_void_p, ctypes.c_int]
    python.PyThread_start_new_thread.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    python.PyThread_start_new_thread.restype = ctypes.c_ulong
    count = thread_count() - 1
    locks = [python.PyThread_allocate_lock() for _ in range(count + 1)]
    for lock in locks:
        python.PyThread_acquire_lock(lock, 1)
    reset = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(_pool()["reset"])
    reset(locks[-1], (ctypes.c_void_p * len(locks))(*locks), count)
    failed = ctypes.c_ulong(-1).value
    for k in range(count):
        if python.PyThread_start_new_thread(_pool()["work"], k) == failed:
            return  # the others suffice
