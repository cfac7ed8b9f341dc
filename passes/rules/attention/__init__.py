"""Operators of linear attention: written out as loops, and written for onnxruntime's kernel."""
