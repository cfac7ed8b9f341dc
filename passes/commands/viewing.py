"""The command `view`: a page in the browser to look at a model, and to work with it."""

from __future__ import annotations

import threading
import webbrowser
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from importlib.util import find_spec
from typing import Annotated

from passes.commands.declaring import Source, WrongValue, argument, option, options_of
from passes.commands.delivery import CLI, Working
from passes.commands.registry import command
from passes.commands.standalone import Output, Say, Standalone, path_of, silent
from passes.errors import BadModel, WrongUsage

_LAST_PORT = 65_535
_NEEDED = ("starlette", "uvicorn", "psutil")


@command("view", short_help="Open a page to look at a model, and to work with it.")
@dataclass(frozen=True)
class View(Standalone):
    """Open a page in the browser: drop a model, look at its loops, run commands, save outcomes.

    It is served on 127.0.0.1 until it is interrupted, to those who have its address; nothing leaves
    the machine. Weights in other files are read of a model that is named here, not of one that is
    dropped.
    """

    model: Source | None = argument(
        "The model to show first: binary, or .onnxtxt, .json, ...", default=None
    )
    _: KW_ONLY
    port: int = option(0, "The port; a free one by default.", least=0, shown=CLI, metavar="N")
    browser: bool = option(True, "Open the browser.", shown=CLI)
    time_limit: Annotated[float | None, options_of(Working)["time_limit"].help] = 600.0
    memory_limit: Annotated[int | None, options_of(Working)["memory_limit"].help] = 8192

    def check(self) -> None:
        """See that there is such a port."""
        if self.port > _LAST_PORT:
            raise WrongValue("port", f"is {self.port}, it must be {_LAST_PORT} or less")

    def run(self, say: Say = silent) -> None:
        """Serve the page until it is interrupted; `say` is told its address.

        Raises:
            WrongUsage: the extra is not installed.
            BadModel: there is no file of this name.
            CannotListen: the port is in use.
        """
        for address in self._served():
            say(address)

    def outputs(self, say: Say = silent) -> Iterator[Output]:
        for address in self._served():
            if self.browser:
                threading.Thread(target=webbrowser.open, args=[address], daemon=True).start()
            yield Output(f"{address}\nopen this address in a browser; Ctrl-C ends it")

    def _served(self) -> Iterator[str]:
        """The address, and then nothing until the page is no longer served."""
        if missing := [name for name in _NEEDED if find_spec(name) is None]:
            what = f"`view` needs {', '.join(missing)}"
            raise WrongUsage(f"{what}: `pip install 'onnx-passes[view]'` installs them")
        from passes.builds.pool import Limits
        from passes.view.server import serving

        path = None if self.model is None else path_of(self.model)
        if path is not None and not path.is_file():
            raise BadModel("there is no such file", file=f"{path}")
        memory = None if self.memory_limit is None else self.memory_limit << 20
        yield from serving(path, self.port, Limits(self.time_limit, memory))
