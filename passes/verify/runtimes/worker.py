"""The process that holds a runtime: `python -m passes.verify.runtimes.worker openvino`."""

from __future__ import annotations

import importlib
import sys

from passes.verify.onnxruntime.channel import send
from passes.verify.onnxruntime.worker import kept_pipe, serve


def main(name: str) -> None:
    """Serve the runtime of a name."""
    answers = kept_pipe()
    try:
        module = importlib.import_module(f"passes.verify.runtimes.{name}")
    except (ImportError, OSError) as error:
        send(answers, ("cannot", f"cannot import {name}: {error}"))
        return
    send(answers, ("ready", module.version()))
    serve(sys.stdin.buffer, answers, module.load, module.run)


if __name__ == "__main__":
    main(sys.argv[1])
