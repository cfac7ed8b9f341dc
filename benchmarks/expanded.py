"""RNN, GRU and LSTM in plain operators against the operator: onnxruntime's time, one thread."""

from __future__ import annotations

import importlib.util
import itertools

import numpy as np

import passes
from benchmarks.cells import CELLS, operator
from benchmarks.harness import Bench, Side
from benchmarks.scan8 import session_run
from passes.choices import Form


def measure(bench: Bench) -> None:
    """A row for each cell, width, number of rows and form."""
    if importlib.util.find_spec("onnxruntime") is None:
        bench.note("onnxruntime is not installed")
        return
    steps, sizes = (4, [(4, 2)]) if bench.quick else (64, [*itertools.product((64, 256), (1, 16))])
    repeat = 1 if bench.quick else 20
    for cell, (width, rows) in itertools.product(CELLS, sizes):
        model = operator(cell, width, steps, rows)
        feeds = {"x": np.random.default_rng(1).random((steps, rows, width), np.float32)}
        against = Side(cell, session_run(model, feeds, repeat))
        for form in Form:
            written = passes.expand(model, form=form, verify=False).model
            case = f"{cell} {width} wide, rows: {rows}"
            bench.compare(case, Side(form, session_run(written, feeds, repeat)), against)
