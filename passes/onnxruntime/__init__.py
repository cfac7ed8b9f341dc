"""What is written for onnxruntime's sake: each module answers one of its traps."""

from __future__ import annotations
