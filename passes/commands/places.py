"""Where files may be written: over no other file of a command, and over no weights."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from passes.commands.declaring import Place
from passes.errors import BadModel, CannotWrite, WrongUsage, writing

#: What stands for stdin or stdout in place of a path.
DASH = "-"


class InTheWay(WrongUsage):
    """A file that is to be written is another file of the command."""


def check_reports(places: Sequence[Place | None], others: Sequence[Path]) -> None:
    """See that reports can be written, and over no other file of the command, no weights of its
    models and not over one another, before any work is done.

    Raises:
        InTheWay: one would be written over another file.
        CannotWrite: one cannot be written.
    """
    known = list(others)
    for place in places:
        if place is not None and os.fspath(place) != DASH:
            _check_report(Path(place), known)
            known.append(Path(place))


def _check_report(json: Path, others: Sequence[Path]) -> None:
    with writing(json):
        with suppress(FileNotFoundError):
            json.stat()  # a link that leads to itself
        if any(is_same(json, other) for other in others):
            raise InTheWay(f"{json}: is a file of this command, not a place for its report")
        if json.is_dir():
            raise CannotWrite(f"{json}: cannot be written (it is a folder)")
        if not json.exists() and not json.parent.is_dir():
            raise CannotWrite(f"{json}: cannot be written (there is no folder {json.parent})")
        if not os.access(json if json.exists() else json.parent, os.W_OK):
            raise CannotWrite(f"{json}: cannot be written (permission denied)")
        for other in others:
            with suppress(BadModel):  # it is none, or that is told when it is loaded
                refuse_weights(other, [json])


def refuse_weights(model: Path, written: Sequence[Path]) -> None:
    """See that no file that is written holds weights of the model, before any work is done.

    Raises:
        InTheWay: one does.
        CannotWrite: there is no telling.
        BadModel: the model cannot be read.
    """
    from passes.ir.external_data import external_files
    from passes.ir.model import Model

    for path in written:
        with writing(path):
            if not path.exists() or is_same(path, model):
                continue
            files = external_files(Model.load(model).proto, model.parent)
            if any(is_same(path, file) for file in files):
                raise InTheWay(f"{path}: holds weights of {model}, which would be lost")


def refuse_same(target: Path, kept: Sequence[str]) -> None:
    """See that the outcome is not written over a file of the command that is kept.

    Raises:
        InTheWay: it would be.
    """
    for file in kept:
        if is_same(target, Path(file)):
            raise InTheWay(f"{file}: is a file of this command, not a place for its report")


def is_same(left: Path, right: Path) -> bool:
    """Return whether two paths lead to one file, which need not exist yet."""
    if os.path.realpath(left) == os.path.realpath(right):
        return True
    return left.exists() and right.exists() and left.samefile(right)
