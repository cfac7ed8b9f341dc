"""The versions of this tool and of what it runs on."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from functools import cache
from importlib import metadata

_TOOLS = {
    "passes": "onnx-passes",
    **{name: name for name in ("onnx", "onnxruntime", "numpy", "openvino", "tract")},
}


@cache
def tools() -> Mapping[str, str]:
    """The versions of Python, of this tool, and of what it runs on, as far as it is installed."""
    found = {"python": platform.python_version()}
    for name, distribution in _TOOLS.items():
        try:
            found[name] = metadata.version(distribution)
        except metadata.PackageNotFoundError:
            if name == "passes":
                from passes import __version__

                found[name] = __version__
    return found
