"""Models for pages, and the page of what a command makes of one."""

from __future__ import annotations

from pathlib import Path

import onnx
from onnx import ModelProto, TensorProto, helper

from passes.commands.pipeline import Pipeline, Step
from passes.commands.task import Task, perform
from passes.reports.pages.page import Page, page_of
from passes.reports.report_file import ReportFile

#: A loop whose product of what it scans may be computed for all iterations at once.
PROJECTION = """<ir_version: 8, opset_import: ["" : 18]>
    rnn (float[B,3] h0, float[T,B,2] x) => (float[B,3] h, float[T,B,3] hs)
    <float[2,3] W = {1, 2, 3, -1, 0.5, 2}, float[3,3] R = {1, 0, 1, 0, 1, -1, 0.5, 0, 0}> {
        h, hs = Scan <num_scan_inputs = 1, body = step (float[B,3] h_in, float[B,2] x_t)
            => (float[B,3] h_out, float[B,3] h_all) {
                a = MatMul (x_t, W)
                b = MatMul (h_in, R)
                s = Add (a, b)
                h_out = Tanh (s)
                h_all = Identity (h_out)
            }> (h0, x)
    }"""
#: As many iterations as the caller says.
UNKNOWN_TRIPS = """<ir_version: 8, opset_import: ["" : 18]>
    count (int64 n, float[2] x) => (float[2] y) <bool yes = {1}> {
        y = Loop <body = step (int64 i, bool go, float[2] s) => (bool on, float[2] t) {
            on = Identity (go)
            t = Neg (s)
        }> (n, yes, x)
    }"""
_OPS = ("Tanh", "Sigmoid", "Relu", "Neg")


def chain(
    loops: int, *, kinds: int = 1, length: int = 1, name: str = "layers.{}/rnn"
) -> ModelProto:
    """A chain of Scans of so many kinds, with bodies of at least so many nodes."""
    nodes, last = [], "x"
    for number in range(loops):
        own = [_OPS[number % kinds // 4**place % 4] for place in range(5)] if kinds > 1 else []
        ops = [*own, *(_OPS[place % 4] for place in range(length))]
        values = ["s", *(f"v{place}" for place in range(len(ops)))]
        body = [helper.make_node("Add", ["state", "slice"], ["s"])]
        body += [
            helper.make_node(op, [read], [made])
            for op, read, made in zip(ops, values[:-1], values[1:], strict=True)
        ]
        body.append(helper.make_node("Identity", [values[-1]], ["out"]))
        row = [
            helper.make_tensor_value_info(one, TensorProto.FLOAT, [2]) for one in ("state", "slice")
        ]
        ends = [
            helper.make_tensor_value_info(one, TensorProto.FLOAT, [2])
            for one in (values[-1], "out")
        ]
        step = helper.make_graph(body, "step", row, ends)
        made = f"y{number}"
        title = name.format(number)
        nodes.append(
            helper.make_node("Scan", ["h", last], ["", made], title, body=step, num_scan_inputs=1)
        )
        last = made
    inputs = [
        helper.make_tensor_value_info("h", TensorProto.FLOAT, [2]),
        helper.make_tensor_value_info("x", TensorProto.FLOAT, ["T", 2]),
    ]
    outputs = [helper.make_tensor_value_info(last, TensorProto.FLOAT, ["T", 2])]
    graph = helper.make_graph(nodes, "chain", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def report_of(model: ModelProto, folder: Path, *steps: Step, strict: bool = False) -> ReportFile:
    """The report of commands on a model, which is written to a folder, as is the outcome."""
    onnx.save(model, folder / "model.onnx")
    task = Task(
        str(folder / "model.onnx"),
        Pipeline(steps),
        str(folder / "outcome.onnx"),
        strict=strict,
        force=True,
    )
    return ReportFile.of(task, perform(task))


def page_after(model: ModelProto, folder: Path, *steps: Step, strict: bool = False) -> Page:
    """The page of commands on a model."""
    return page_of(report_of(model, folder, *steps, strict=strict))
