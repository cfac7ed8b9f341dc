"""Work in children of a warm process: what crashes, hangs or eats memory there is seen.

A child is forked, not started: all that this process imported is at hand. onnxruntime stays out of
this process, for its threads would not live on in the child.
"""

from __future__ import annotations

import gc
import itertools
import json
import os
import resource
import signal
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Limits:
    """Seconds for one item, and bytes of address space for a child."""

    seconds: int
    memory: int = 6 << 30


@dataclass(frozen=True)
class Death:
    """A child that ended before it answered, and how: `hang`, `crash SIGSEGV`, `exit code 70`."""

    how: str


def forked(
    items: Iterable[T], work: Callable[[T], object], limits: Limits, *, each: int = 1
) -> Iterator[tuple[T, Any]]:
    """Every item with what `work` makes of it, as JSON tells it, or with a Death.

    A child does `each` items, one after the other; where it dies, another goes on behind the item
    that killed it.
    """
    gc.collect()
    gc.freeze()  # collecting in a child would copy every page
    waiting = iter(items)
    while batch := list(itertools.islice(waiting, each)):
        while batch:
            for answer in _answers(batch, work, limits):
                yield batch.pop(0), answer


def _answers(batch: Sequence[T], work: Callable[[T], object], limits: Limits) -> Iterator[Any]:
    """The answers of one child; a Death is the last of them."""
    left = len(batch)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        os._exit(_serve(batch, work, limits, writer))
    os.close(writer)
    try:
        with os.fdopen(reader, "rb") as lines:
            for line in lines:
                left -= 1
                yield json.loads(line)
    finally:  # a child that nobody listens to any more ends with what it is at
        _, status = os.waitpid(child, 0)
    if left:
        yield Death(_how(status))


def _how(status: int) -> str:
    if not os.WIFSIGNALED(status):
        return f"exit code {os.WEXITSTATUS(status)}"
    name = signal.Signals(os.WTERMSIG(status)).name
    return "hang" if name == "SIGALRM" else f"crash {name}"


def _serve(batch: Sequence[T], work: Callable[[T], object], limits: Limits, writer: int) -> int:
    """What the child does; the exit code."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_AS, (limits.memory, limits.memory))
    try:
        with os.fdopen(writer, "wb") as answers:
            for item in batch:
                signal.alarm(limits.seconds)
                answer = json.dumps(work(item)).encode()
                signal.alarm(0)
                answers.write(answer + b"\n")
                answers.flush()
    except BaseException:  # whatever it is, the child must end here
        traceback.print_exc()
        return 70
    return 0
