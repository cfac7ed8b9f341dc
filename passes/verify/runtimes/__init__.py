"""Other runtimes that execute an outcome where it is to run: each in a process of its own.

`worker` is that process, `openvino` and `tract` load and run models there; `executors` is this
side, `comparing` compares an outcome there with the original.
"""

from __future__ import annotations
