"""Imports a module from other source than its file has, and the lines of modules that run."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import find_spec, spec_from_file_location
from pathlib import Path
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any


class _Loader(SourceFileLoader):
    def __init__(self, name: str, path: str, source: str) -> None:
        super().__init__(name, path)
        self._source = source

    def get_code(self, fullname: str) -> CodeType:
        return compile(self._source, self.path, "exec", dont_inherit=True)


class _Finder(MetaPathFinder):
    def __init__(self, name: str, path: str, source: str) -> None:
        self._name, self._loader = name, _Loader(name, path, source)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._name:
            return None
        loader: Loader = self._loader
        return spec_from_file_location(fullname, self._loader.path, loader=loader)


def seed(module: str, source: str) -> None:
    """Let this process import `module` from `source`; it must not be imported yet."""
    assert module not in sys.modules, module
    sys.meta_path.insert(0, _Finder(module, str(path_of(module)), source))


def reseed(module: str, source: str) -> None:
    """Let the functions of a module that is imported run what they are in `source`; what runs on
    import stays as it is."""
    path = str(path_of(module))
    waiting = [compile(source, path, "exec", dont_inherit=True)]
    for code in waiting:
        waiting += [one for one in code.co_consts if isinstance(one, CodeType)]
    new = {code.co_qualname: code for code in waiting}
    for one in [one for one in gc.get_objects() if isinstance(one, FunctionType)]:
        code = one.__code__
        if code.co_filename == path and code.co_qualname in new:
            one.__code__ = new[code.co_qualname]


def path_of(module: str) -> Path:
    """The file of a module; its packages need no import where they are next to this one."""
    root = Path(__file__).parents[3]
    path = root.joinpath(*module.split(".")).with_suffix(".py")
    if path.exists():
        return path
    spec = find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin)


@contextmanager
def traced(files: Sequence[Path], lines: dict[str, set[int]]) -> Iterator[None]:
    """Note which lines of these files run, by the name of the file."""
    wanted = {str(file) for file in files}

    def local(frame: FrameType, event: str, arg: Any) -> Any:
        if event == "line":
            lines.setdefault(frame.f_code.co_filename, set()).add(frame.f_lineno)
        return local

    def each(frame: FrameType, event: str, arg: Any) -> Any:
        return local if frame.f_code.co_filename in wanted else None

    sys.settrace(each)
    try:
        yield
    finally:
        sys.settrace(None)
