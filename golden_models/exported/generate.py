"""Exports the models of this folder: `python golden_models/exported/generate.py [PATTERN]`.

Needs the extra `exporters`; the tests do not. For each case and opset it writes
`<exporter>/<case>.opset<N>.onnx`, and for each case `<case>.inputs.npz` and, where the
framework's own results are known, `<case>.outputs.npz`.
"""

from __future__ import annotations

import importlib
import re
import sys
import warnings
from fnmatch import fnmatch
from pathlib import Path

import numpy as np
import onnx
from case import Case
from onnx import GraphProto, ModelProto, NodeProto

HERE = Path(__file__).parent
EXPORTERS = ("sklearn", "torch", "onnxscript")
LARGEST = 20_000
#: What a file must not tell: where on a disk, or on which site, it was made.
PLACES = re.compile(rb"/(?:home|tmp|usr|work|root|opt)/|site-packages|\.py\b|https?://")


def main(pattern: str = "*") -> int:
    """Write every case whose `exporter/name` fits the pattern; answers with how many failed."""
    warnings.simplefilter("ignore")
    failed = 0
    for exporter in EXPORTERS:
        if not fnmatch(exporter, pattern.split("/")[0]):
            continue
        (HERE / exporter).mkdir(exist_ok=True)
        for case in importlib.import_module(f"{exporter}_models").cases():
            if fnmatch(f"{exporter}/{case.name}", pattern):
                failed += sum(not write(exporter, case, opset) for opset in case.opsets)
    return failed


def write(exporter: str, case: Case, opset: int) -> bool:
    """Write one case at one opset; False, and a line that says why, where that fails."""
    place = HERE / exporter
    try:
        model = case.export(opset)
        clean(model)
        data = checked(model, opset)
    except Exception as error:  # an exporter fails in its own ways
        print(f"{exporter}/{case.name} at {opset}: {type(error).__name__}: {str(error)[:300]}")
        return False
    (place / f"{case.name}.opset{opset}.onnx").write_bytes(data)
    kept = {entry.name for entry in model.graph.initializer}
    names = [entry.name for entry in model.graph.input if entry.name not in kept]
    np.savez_compressed(place / f"{case.name}.inputs.npz", **_named(names, case.inputs))
    if case.outputs is not None:
        results = [entry.name for entry in model.graph.output]
        np.savez_compressed(place / f"{case.name}.outputs.npz", **_named(results, case.outputs))
    return True


def _named(names: list[str], arrays: object) -> dict[str, np.ndarray]:
    return {name: np.asarray(array) for name, array in zip(names, arrays, strict=True)}


def clean(model: ModelProto) -> None:
    """Take out what names the files that a model was exported from."""
    model.doc_string = ""
    del model.metadata_props[:]
    _clean_graph(model.graph)
    for function in model.functions:
        function.doc_string = ""
        del function.metadata_props[:]
        _clean_nodes(function.node)
        _clean_values(function.value_info)


def _clean_graph(graph: GraphProto) -> None:
    graph.doc_string = ""
    del graph.metadata_props[:]
    for values in (graph.input, graph.output, graph.value_info, graph.initializer):
        _clean_values(values)
    _clean_nodes(graph.node)


def _clean_values(values: object) -> None:
    for value in values:
        value.doc_string = ""
        del value.metadata_props[:]


def _clean_nodes(nodes: list[NodeProto]) -> None:
    for node in nodes:
        node.doc_string = ""
        del node.metadata_props[:]
        for attribute in node.attribute:
            attribute.doc_string = ""
            if attribute.HasField("g"):
                _clean_graph(attribute.g)


def checked(model: ModelProto, opset: int) -> bytes:
    """The bytes of a model that is valid, small, at the opset, and says nothing of its origin."""
    versions = {entry.version for entry in model.opset_import if entry.domain == ""}
    if versions != {opset}:
        raise ValueError(f"the exporter made opset {versions}")
    onnx.checker.check_model(model, full_check=True)
    data = model.SerializeToString(deterministic=True)
    if len(data) > LARGEST:
        raise ValueError(f"{len(data)} bytes are more than {LARGEST}")
    if found := PLACES.search(data):
        raise ValueError(f"it names a place: {data[found.start() - 40 : found.end() + 40]!r}")
    return data


if __name__ == "__main__":
    sys.exit(min(main(*sys.argv[1:]), 1))
