"""The conformance kit of Tensorken: proves a backend right, and its own power of doing so."""

from __future__ import annotations

__all__ = ["check"]


def check(case: str, backend: str, seed: int = 0) -> None:
    """Run one case of a report again, here and now, and print what became of it.

    Args:
        case: its id, as reports have it.
        backend: the name of the backend.
        seed: of the run that the report is from.

    Raises:
        ValueError: if there is no such case.

    >>> check("values.read-back/new/float32/small", backend="reference")
    passed
    """
    from tensorken_conformance.running.examine import examine, laws_for
    from tensorken_conformance.subject import Subject

    for depth in ("smoke", "default", "deep"):
        subject = Subject.select(backend, seed, depth)
        for law in laws_for(subject):
            if case.startswith(f"{law.id}/"):
                for candidate in law.cases(subject):
                    if candidate.id == case:
                        result = examine(subject, law, candidate)
                        print(": ".join(filter(None, (result.status, result.says))))
                        return
    raise ValueError(f"backend {backend!r} has no case {case!r}; `tensorken conformance run` lists them")
