"""Measures which element types the CPU kernels of the installed onnxruntime lack, op by op.

`python -m tests.instruments.measured_types FILE.json` adds what is lacked to
`passes/operators/types.json`; run it once for each release in which rewritten models shall load.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, defs, helper

from passes.onnxruntime.releases import RELEASES

#: The ops that rewrites write beside those of the model, and those that a cast gives types without
#: a kernel: onnxruntime puts Casts around the others.
OPS = (
    "Abs",
    "Add",
    "And",
    "ArgMax",
    "ArgMin",
    "Bernoulli",
    "BlackmanWindow",
    "Cast",
    "CastLike",
    "CenterCropPad",
    "Clip",
    "Compress",
    "Concat",
    "ConstantOfShape",
    "CumSum",
    "Div",
    "Equal",
    "Expand",
    "EyeLike",
    "Flatten",
    "Gather",
    "GatherElements",
    "GatherND",
    "Greater",
    "GreaterOrEqual",
    "HammingWindow",
    "HannWindow",
    "Identity",
    "If",
    "IsInf",
    "IsNaN",
    "Less",
    "LessOrEqual",
    "Loop",
    "MatMul",
    "Max",
    "MeanVarianceNormalization",
    "MelWeightMatrix",
    "Min",
    "Mod",
    "Mul",
    "Neg",
    "NonZero",
    "Not",
    "OneHot",
    "Or",
    "Pad",
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
    "Range",
    "ReduceMax",
    "ReduceMin",
    "ReduceProd",
    "ReduceSum",
    "Reshape",
    "ReverseSequence",
    "Round",
    "Scan",
    "Scatter",
    "ScatterElements",
    "ScatterND",
    "Shape",
    "Size",
    "Slice",
    "Split",
    "Squeeze",
    "Sub",
    "Sum",
    "Tile",
    "Transpose",
    "Unique",
    "Unsqueeze",
    "Where",
    "Xor",
)

_OLDEST = 9
_NAMES = {f"tensor({name.lower()})": kind for name, kind in TensorProto.DataType.items()}
_COMPLEX = (TensorProto.COMPLEX64, TensorProto.COMPLEX128)  # onnxruntime has none at all


#: By op, version and type variable the names of the types that are lacked.
Table = dict[str, dict[str, dict[str, str]]]


def measured() -> Table:
    """What the installed release lacks."""
    found: Table = {}
    for op, version, variable, kind in cases():
        opsets = {max(version, _OLDEST), _last(op, version)}  # a function body may be out of date
        if any(lacks(model_of(op, opset, variable, kind)) for opset in sorted(opsets)):
            names = found.setdefault(op, {}).setdefault(str(version), {})
            name = TensorProto.DataType.Name(kind).lower()
            names[variable] = " ".join(filter(None, [names.get(variable), name]))
    return found


def cases() -> Iterator[tuple[str, int, str, int]]:
    """Every op, the versions that opset 9 and later know, the type variables and their types."""
    for op in OPS:
        versions = {opset: _since(op, opset) for opset in range(_OLDEST, newest_opset() + 1)}
        for version in sorted({version for version in versions.values() if version}):
            schema = defs.get_schema(op, max(version, _OLDEST))
            used = {name.type_str for name in (*schema.inputs, *schema.outputs)}
            for constraint in schema.type_constraints:
                if constraint.type_param_str not in used - {"I", "B"}:
                    continue
                for kind in sorted(
                    _NAMES[one] for one in constraint.allowed_type_strs if one in _NAMES
                ):
                    if kind not in _COMPLEX:
                        yield op, version, constraint.type_param_str, kind


def release() -> str:
    """The release of the installed onnxruntime, without its patch level."""
    import onnxruntime

    return ".".join(onnxruntime.__version__.split(".")[:2])


def newest_opset() -> int:
    """The newest opset that the installed onnxruntime loads."""
    (newest,) = (one.opset for one in RELEASES if one.includes(release()))
    return min(newest, onnx.defs.onnx_opset_version())


def _last(op: str, version: int) -> int:
    """The newest opset that has a version of an operator."""
    return max(one for one in range(_OLDEST, newest_opset() + 1) if _since(op, one) == version)


def model_of(op: str, opset: int, variable: str, kind: int) -> ModelProto:
    """A model of one node, whose type variable stands for a type."""
    opset = max(opset, _OLDEST)
    schema = defs.get_schema(op, opset)
    if op in ("If", "Loop", "Scan"):
        return _model(_with_bodies(op, kind), _inputs_of(op, kind), ["y"], [kind], opset)
    allowed = {one.type_param_str: one.allowed_type_strs for one in schema.type_constraints}

    def kind_of(said: str) -> int:
        if said == variable:
            return kind
        plain = [one for one in ("tensor(int64)", "tensor(float)") if one in allowed.get(said, ())]
        if said == "T":
            plain.reverse()
        return _NAMES[plain[0] if plain else next(iter(allowed.get(said, [said])))]

    count = max(schema.min_input, 1, 2 if op in ("Pad", "Squeeze") else 0)
    inputs = {f"i{i}": kind_of(name.type_str) for i, name in enumerate(schema.inputs[:count])}
    output = schema.outputs[0].type_str
    given = kind_of(output)
    attributes = {
        name: _SAID.get(name, 0)
        for name, attribute in schema.attributes.items()
        if attribute.required
    }
    chosen = {"to", "dtype", "output_datatype"}.intersection(schema.attributes)
    attributes.update(dict.fromkeys(chosen, given))
    if op == "ConstantOfShape":
        zero = np.zeros(1, helper.tensor_dtype_to_np_dtype(given))
        attributes["value"] = onnx.numpy_helper.from_array(zero)
    if "num_outputs" in schema.attributes:
        attributes["num_outputs"] = 1
    node = helper.make_node(op, list(inputs), ["y"], **attributes)
    return _model(node, inputs, ["y"], [given], opset)


#: What onnxruntime says where it lacks a kernel, or where the function body that it takes instead
#: has a constant of another type.
_SIGNS = (
    *("NOT_IMPLEMENTED", "is not currently registered", "Unsupported value attribute"),
    "bound to different types",
)
_SAID = {"axes": [0], "starts": [0], "ends": [1], "repeats": [1], "pads": [0, 0], "shape": [1]}


def lacks(model: ModelProto) -> bool:
    """Whether onnxruntime does not load a model for want of a kernel."""
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    providers = ["CPUExecutionProvider"]
    try:
        onnxruntime.InferenceSession(model.SerializeToString(), options, providers=providers)
    except Exception as error:  # its exceptions have no base but Exception
        if not any(sign in str(error) for sign in _SIGNS):
            raise
        return True
    return False


def _since(op: str, opset: int) -> int:
    if not defs.has(op, opset) or defs.get_schema(op, opset).deprecated:
        return 0
    return int(defs.get_schema(op, opset).since_version)


def _inputs_of(op: str, kind: int) -> dict[str, int]:
    first = {"If": {"c": TensorProto.BOOL}, "Loop": {"m": TensorProto.INT64}, "Scan": {}}[op]
    return {**first, "x": kind}


def _with_bodies(op: str, kind: int) -> NodeProto:
    """A branch or body that hands on a value, through a node that knows every type in a Loop."""

    def value(name: str, of: int, dims: tuple[int, ...] = (1,)) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, of, dims)

    if op == "If":
        bodies = {
            f"{one}_branch": helper.make_graph(
                [helper.make_node("Identity", ["x"], [one])], one, [], [value(one, kind)]
            )
            for one in ("then", "else")
        }
        return helper.make_node("If", ["c"], ["y"], **bodies)
    nodes = [helper.make_node("Identity", ["s"], ["t"])]
    if op == "Scan":
        body = helper.make_graph(nodes, "body", [value("s", kind)], [value("t", kind)])
        return helper.make_node("Scan", ["x"], ["y"], body=body, num_scan_inputs=1)
    nodes.append(helper.make_node("Identity", ["c"], ["d"]))
    going = value("c", TensorProto.BOOL, ()), value("d", TensorProto.BOOL, ())
    count = value("i", TensorProto.INT64, ())
    body = helper.make_graph(
        nodes, "body", [count, going[0], value("s", kind)], [going[1], value("t", kind)]
    )
    return helper.make_node("Loop", ["m", "", "x"], ["y"], body=body)


def _model(
    node: NodeProto, inputs: dict[str, int], outputs: list[str], kinds: list[int], opset: int
) -> ModelProto:
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info(name, kind, None) for name, kind in inputs.items()],
        [helper.make_tensor_value_info(n, k, None) for n, k in zip(outputs, kinds, strict=True)],
    )
    imports = [helper.make_opsetid("", opset)]
    least = helper.find_min_ir_version_for(imports)
    made: ModelProto = helper.make_model(graph, opset_imports=imports, ir_version=least)
    return made


def _added(known: Table, release: str, path: Path) -> None:
    """Add to the table what a release lacks. A name stands alone if the newest release lacks it,
    else with the newest one that does: `int4@1.22`."""
    table = json.loads(path.read_text("utf-8")) if path.exists() else {"releases": []}
    releases = table.pop("releases")
    newest: dict[tuple[str, str, str, str], str] = {}
    for said, default in ((table, releases[-1:]), (known, [release])):
        for op, versions in said.items():
            for version, variables in versions.items():
                for variable, names in variables.items():
                    for name, _, last in (one.partition("@") for one in names.split()):
                        key = op, version, variable, name
                        found = [newest.get(key, ""), last or default[0]]
                        newest[key] = max(filter(None, found), key=_number)
    releases = sorted({*releases, release}, key=_number)
    lines = [f'"releases": {json.dumps(releases)}']
    for op in sorted({key[0] for key in newest}):
        rows = []
        for version in sorted({key[1] for key in newest if key[0] == op}, key=int):
            row: dict[str, str] = {}
            for key, last in sorted(newest.items(), key=lambda one: _kind(one[0][3])):
                if key[:2] == (op, version):
                    name = key[3] if last == releases[-1] else f"{key[3]}@{last}"
                    row[key[2]] = " ".join(filter(None, [row.get(key[2]), name]))
            rows.append(f'  "{version}": {json.dumps(row)}')
        lines.append(f'"{op}": {{\n' + ",\n".join(rows) + "\n}")
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


def _number(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))


def _kind(name: str) -> int:
    return int(TensorProto.DataType.Value(name.upper()))


if __name__ == "__main__":
    _added(measured(), release(), Path(sys.argv[1]))
