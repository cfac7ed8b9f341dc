"""Rewrites the control flow of ONNX models, and executes every rewrite before and after."""

from __future__ import annotations
