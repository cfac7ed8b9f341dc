"""Exports the models of this folder: `python golden_models/exported/generate.py [PATTERN]`.

Needs the extra `exporters`; the tests do not. For each case it writes
`<exporter>/<case>.opset<N>.onnx`, once for opsets at which the exporter makes the same nodes,
`<case>.inputs.npz` and, where the framework's own results are known, `<case>.outputs.npz`.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
import warnings
from collections.abc import Iterable, Sequence
from fnmatch import fnmatch
from pathlib import Path

import numpy as np
import onnx
from case import Case
from onnx import GraphProto, ModelProto, NodeProto

HERE = Path(__file__).parent
EXPORTERS = ("sklearn", "torch", "onnxscript", "tensorflow", "jax")
LARGEST = 20_000
#: What a file must not tell: where on a disk, or on which site, it was made.
PLACES = re.compile(rb"/(?:home|tmp|usr|work|root|opt)/|site-packages|\.py\b|https?://")


def main(pattern: str = "*/*") -> int:
    """Write every case whose `exporter/name` fits the pattern; 1 if one failed."""
    warnings.simplefilter("ignore")
    failed = False
    for exporter in EXPORTERS:
        if not fnmatch(exporter, pattern.split("/")[0]):
            continue
        (HERE / exporter).mkdir(exist_ok=True)
        for case in importlib.import_module(f"{exporter}_models").cases():
            if fnmatch(f"{exporter}/{case.name}", pattern):
                failed |= not write(HERE / exporter, case)
    return int(failed)


def write(place: Path, case: Case) -> bool:
    """Write one case anew; False, and a line that says why, where that fails."""
    for old in place.glob(f"{case.name}.*"):
        old.unlink()
    written = b""
    for opset in case.opsets:
        try:
            model = case.export(opset)
            clean(model)
            data = checked(model, opset, opset not in case.rejected)
        except Exception as error:  # exporters fail each in its own ways
            print(f"{case.name} at {opset}: {type(error).__name__}: {str(error)[:300]}")
            return False
        nodes = b"".join(map(_bytes, [model.graph, *model.functions]))
        if nodes != written:
            (place / f"{case.name}.opset{opset}.onnx").write_bytes(data)
        written = nodes
    _write_data(place / case.name, case, model)
    return True


def _write_data(stem: Path, case: Case, model: ModelProto) -> None:
    kept = {entry.name for entry in model.graph.initializer}
    inputs = [entry.name for entry in model.graph.input if entry.name not in kept]
    _save(Path(f"{stem}.inputs.npz"), inputs, case.inputs)
    if case.outputs is not None:
        outputs = [entry.name for entry in model.graph.output]
        _save(Path(f"{stem}.outputs.npz"), outputs, case.outputs)


def _save(path: Path, names: Sequence[str], arrays: Sequence[np.ndarray]) -> None:
    np.savez_compressed(path, **dict(zip(names, map(np.asarray, arrays), strict=True)))


def clean(model: ModelProto) -> None:
    """Take out what names the files that a model was exported from."""
    _forget([model, *model.functions])
    _clean_graph(model.graph)
    for function in model.functions:
        _clean_nodes(function.node)
        _forget(function.value_info)


def _clean_graph(graph: GraphProto) -> None:
    _forget([graph, *graph.input, *graph.output, *graph.value_info, *graph.initializer])
    _clean_nodes(graph.node)


def _clean_nodes(nodes: Iterable[NodeProto]) -> None:
    for node in nodes:
        _forget([node])
        for attribute in node.attribute:
            attribute.doc_string = ""
            if attribute.HasField("g"):
                _clean_graph(attribute.g)


def _forget(protos: Iterable[object]) -> None:
    for proto in protos:
        proto.ClearField("doc_string")
        proto.ClearField("metadata_props")


def _bytes(proto: object) -> bytes:
    return proto.SerializeToString(deterministic=True)


def checked(model: ModelProto, opset: int, accepted: bool) -> bytes:
    """The bytes of a model that is valid, small, at the opset, and says nothing of its origin."""
    versions = {entry.version for entry in model.opset_import if entry.domain == ""}
    if versions != {opset}:
        raise ValueError(f"the exporter made opset {versions}")
    if accepted:
        onnx.checker.check_model(model, full_check=True)
    data = _bytes(model)
    if len(data) > LARGEST:
        raise ValueError(f"{len(data)} bytes are more than {LARGEST}")
    if found := PLACES.search(data):
        raise ValueError(f"it names a place: {data[found.start() - 40 : found.end() + 40]!r}")
    return data


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":  # an exporter names what it takes from sets
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, *sys.argv])
    sys.exit(main(*sys.argv[1:]))
