"""Outcomes of earlier runs, in a folder, named by a digest of all that they depend on."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from importlib import metadata
from pathlib import Path

from passes.commands.task import Task
from passes.engine import plugins
from passes.errors import End, PassesError
from passes.ir.save import replacing
from passes.ir.versions import tools
from passes.reports.json_values import as_json
from passes.reports.report_file import File, Ran, digest, files_of
from passes.reports.summary import Row

#: The form of the entries.
_FORM = 1
#: Ends that depend on the model, the options and the versions alone.
_STORED = (End.WRITTEN, End.UNCHANGED, End.REFUSED, End.INCOMPLETE)
#: Bytes of a file beyond which its digest is remembered, by its size and time of change.
_LARGE = 1 << 20
_DAY = 24 * 3600


class BadCache(PassesError):
    """The folder of the cache cannot be used."""


def default_folder() -> Path:
    """Return the default folder of the cache."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "onnx-passes"


@dataclass(frozen=True)
class Cache:
    """A folder of entries: `KEY.json` is a row, `KEY.model` the outcome, unless its weights are in
    files of their own. Entries are written whole or not at all, by any number of processes."""

    folder: Path

    def prepare(self) -> None:
        """Make the folder, and remove the leftovers of processes that died.

        Raises:
            BadCache: it cannot be made, or not be written.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=self.folder, prefix=".try"):
                pass
            for left in self.folder.glob(".put*"):
                if time.time() - left.stat().st_mtime > _DAY:
                    left.unlink(missing_ok=True)
        except OSError as error:
            reason = error.strerror or error
            raise BadCache(f"{self.folder}: the cache cannot be written ({reason})") from error

    def key(self, task: Task) -> str | None:
        """The digest of all that the outcome depends on; None where the model cannot be read."""
        files = files_of(Path(task.model), self._read)
        given = [
            file
            for options in task.pipeline.commands
            if options.inputs is not None
            for file in _given(Path(options.inputs))
        ]
        if not files:
            return None
        said = {
            "form": _FORM,
            "model": [task.model, *((file.path, file.sha256) for file in files)],
            "inputs": [(file.path, file.sha256) for file in given],
            "commands": [asdict(Ran.of(options)) for options in task.pipeline.commands],
            "profiles": [str(options.profile) for options in task.pipeline.commands],
            "dims": dict(task.pipeline.dims),
            "strict": task.strict,
            "format": task.expected().suffix,
            "tools": dict(tools()),
            "plugins": _plugins(),
        }
        return hashlib.sha256(as_json(said, sort_keys=True).encode()).hexdigest()

    def get(self, task: Task) -> tuple[Row | None, str]:
        """Return the row of an earlier run of the same task, with the outcome written again if it
        is missing, and a warning if an entry is damaged."""
        key = self.key(task)
        if key is None or not (entry := self.folder / f"{key}.json").exists():
            return None, ""
        try:
            said = json.loads(entry.read_text(encoding="utf-8"))
            row, opset = Row.read(said["row"]), int(said["opset"])
            files = [File(**one) for one in said["files"]]
            if not files:
                return replace(row, cached=True), ""
            target = task.target(opset)
            if not self._restored(key, target, files):
                return None, ""
        except (OSError, ValueError, TypeError, KeyError) as error:
            return None, f"{entry}: this entry of the cache is damaged, and is not used ({error})"
        return replace(row, cached=True, output=str(target)), ""

    def put(self, task: Task, key: str | None, row: Row) -> None:
        """Store a row and its outcome, if that would be the same another time. Where the folder
        refuses, nothing is stored."""
        if key is None or row.end not in _STORED:
            return
        files = files_of(Path(row.output)) if row.output else ()
        opset = (row.report.get("opsets") or (0, 0))[1]
        said = {"row": asdict(row), "opset": opset, "files": [asdict(file) for file in files]}
        with contextlib.suppress(OSError):
            if len(files) == 1:
                self._write(f"{key}.model", Path(files[0].path).read_bytes())
            self._write(f"{key}.json", as_json(said).encode())

    def _restored(self, key: str, target: Path, files: Sequence[File]) -> bool:
        """Return whether the outcome is where it is to be, after it was put there if need be."""
        own, *weights = files
        kept = [File.of(target.parent / Path(file.path).name) for file in weights]
        if [file.sha256 for file in kept] != [file.sha256 for file in weights]:
            return False
        if target.exists() and digest(target) == own.sha256:
            return True
        stored = self.folder / f"{key}.model"
        if weights or not stored.exists():
            return False
        if digest(stored) != own.sha256:
            raise ValueError("the outcome is not the one that was stored")
        with replacing(target) as file, stored.open("rb") as data:
            shutil.copyfileobj(data, file)
        return True

    def _write(self, name: str, data: bytes) -> None:
        with replacing(self.folder / name, ".put") as file:
            file.write(data)

    def _read(self, path: Path) -> File:
        """A file with its digest, from memory where it is large and did not change."""
        status = path.stat()
        if status.st_size < _LARGE:
            return File.of(path)
        said = f"{path.resolve()} {status.st_size} {status.st_mtime_ns} {status.st_ino}"
        memo = f"{hashlib.sha256(said.encode()).hexdigest()}.memo"
        with contextlib.suppress(OSError):
            known = (self.folder / memo).read_text()
            if len(known) == 64:
                return File(str(path), status.st_size, known)
        found = File.of(path)
        with contextlib.suppress(OSError):
            self._write(memo, found.sha256.encode())
        return found


def _given(inputs: Path) -> list[File]:
    """The files of inputs that a user gives."""
    paths = sorted(inputs.iterdir()) if inputs.is_dir() else [inputs]
    return [File.of(path) for path in paths if path.is_file()]


def _plugins() -> list[str]:
    """Other distributions that register rules, commands or executors, with their versions."""
    from passes.commands import registry
    from passes.verify.runtimes import executors

    entries = [
        entry
        for group in (plugins.GROUP, registry.GROUP, executors.GROUP)
        for entry in metadata.entry_points(group=group)
    ]
    return sorted({f"{one.dist.name} {one.dist.version}" for one in entries if one.dist})
