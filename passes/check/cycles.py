"""Finds a cycle in a graph of numbered nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable

_SHOWN = 8


def find_cycle(start: int, successors: Callable[[int], Iterable[int]]) -> list[int] | None:
    """A cycle that can be reached from `start`, in the order of its steps; None: there is none.

    Without recursion: a chain may be 100,000 long.
    """
    path = [start]
    on_path = {start: 0}
    done: set[int] = set()
    pending = [iter(successors(start))]
    while pending:
        following = next(pending[-1], None)
        if following is None:
            done.add(path[-1])
            del on_path[path.pop()]
            pending.pop()
        elif following in on_path:
            return path[on_path[following] :]
        elif following not in done:
            on_path[following] = len(path)
            path.append(following)
            pending.append(iter(successors(following)))
    return None


def circle(labels: list[str]) -> str:
    """`a -> b -> a`, shortened where it is long."""
    shown = labels
    if len(labels) > _SHOWN:
        left_out = f"({len(labels) - _SHOWN} more)"
        shown = [*labels[: _SHOWN - 1], left_out, labels[-1]]
    return " -> ".join([*shown, labels[0]])
