"""Runtimes that execute models, each in a process of its own.

`worker` is that process, into which `onnxruntime`, `openvino` and `tract` load models; `process` is
this side. `executors` names the runtimes that execute an outcome alone, and `comparing` compares it
there with the original.
"""

from __future__ import annotations
