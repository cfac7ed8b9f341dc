"""Python's garbage collector, held back."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_held_back() -> Iterator[None]:
    """Hold Python's garbage collector back for as long as this takes, also where it fails.

    What checking and converting make, and making ready for a run, is kept and has no cycles: to
    look through it again and again takes a tenth of the time or more, and finds nothing.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
