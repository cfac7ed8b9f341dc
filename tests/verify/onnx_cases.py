"""onnx's own backend test cases, as models with feeds and expected outputs."""

from __future__ import annotations

import contextlib
import functools
import os
import pickle
import warnings
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, OptionalProto, SequenceProto, TensorProto, numpy_helper

from passes.ir import scope
from passes.ir.operators import is_onnx_domain


@dataclass(frozen=True)
class Case:
    """One data set of one backend test case."""

    name: str
    model: ModelProto
    feeds: dict[str, Any]
    expected: list[Any]
    rtol: float
    atol: float


@functools.cache
def all_cases() -> tuple[Case, ...]:
    """Every node and model test case that carries its data.

    onnx computes them in 5 to 10 seconds, so they are kept in pytest's cache, where the other
    processes of a test run, and later ones, find them.
    """
    file = _kept_in()
    if file.exists():
        return tuple(pickle.loads(file.read_bytes()))
    cases = _collected()
    with contextlib.suppress(OSError):  # a checkout that nobody may write to
        file.parent.mkdir(exist_ok=True)
        written = file.with_suffix(f".{os.getpid()}")
        written.write_bytes(pickle.dumps(cases))
        written.replace(file)
    return cases


def _kept_in() -> Path:
    """The file for these cases: what they are depends on onnx, numpy and this module."""
    versions = f"{onnx.__version__}-{np.__version__}-{zlib.crc32(Path(__file__).read_bytes()):x}"
    return Path(__file__).parents[2] / ".pytest_cache" / f"onnx-cases-{versions}.pickle"


def _collected() -> tuple[Case, ...]:
    from onnx.backend.test.case.model import collect_testcases as of_models
    from onnx.backend.test.case.node import collect_testcases as of_nodes

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        collected = [*of_nodes(None), *of_models()]
    cases = []
    for case in collected:
        for inputs, outputs in case.data_sets or []:
            constants = scope.initializer_names(case.model.graph)
            names = [n for n in scope.input_names(case.model.graph) if n not in constants]
            feeds = {name: value(data) for name, data in zip(names, inputs, strict=True)}
            expected = [value(data) for data in outputs]
            cases.append(Case(case.name, case.model, feeds, expected, case.rtol, case.atol))
    return tuple(cases)


def control_flow_cases() -> list[Case]:
    """Those whose model has a Scan, Loop or If at any depth, in functions too."""
    return [case for case in all_cases() if _has_control_flow(case.model)]


def _has_control_flow(model: ModelProto) -> bool:
    return any(
        place.node.op_type in ("If", "Loop", "Scan") and is_onnx_domain(place.node.domain)
        for place in scope.walk_model(model)
    )


def value(data: Any) -> Any:
    """A value as executors take it."""
    if isinstance(data, TensorProto):
        return numpy_helper.to_array(data)
    if isinstance(data, SequenceProto):
        return numpy_helper.to_list(data)
    if isinstance(data, OptionalProto):
        return numpy_helper.to_optional(data)
    return data
