"""Loops whose values have each element type, through every command: what comes out is valid, loads
in onnxruntime where the model did, and agrees."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any

import onnx
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper

import passes
from passes.choices import RuleOptions, Verifying
from passes.engine.schedules import SCHEDULES
from passes.operators.element_types import runs, signature, wider
from passes.session import NotProduced, Result, Session
from tests.instruments import measured_types

IR_OF = {8: 3, 9: 4, 13: 7, 19: 9, 21: 10, 23: 11, 25: 13, 26: 13, 28: 14}
KINDS = {name: kind for name, kind in TensorProto.DataType.items() if kind}
Command = Callable[[ModelProto], Result]

value = helper.make_tensor_value_info


def handed(*pairs: tuple[str, str]) -> list[NodeProto]:
    """Identities from one name to another."""
    return [helper.make_node("Identity", [old], [new]) for old, new in pairs]


def model_of(
    node: NodeProto,
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    opset: int,
) -> ModelProto:
    made: ModelProto = helper.make_model(
        helper.make_graph([node], "g", inputs, outputs),
        opset_imports=[helper.make_opsetid("", opset)],
        ir_version=IR_OF[opset],
    )
    return made


def scan(kind: int, opset: int, *, size: int | str = 3, backwards: bool = False) -> ModelProto:
    """Carried, scanned, collected and captured values of a type."""
    nodes = handed(("e", "b"), ("a", "o"), ("c", "p"), ("e", "q"))
    body = helper.make_graph(
        nodes,
        "body",
        [value("a", kind, [2]), value("e", kind, [2])],
        [value(name, kind, [2]) for name in "bopq"],
    )
    directions: dict[str, Any] = {}
    if backwards:
        directions = {"scan_input_directions": [1], "scan_output_directions": [1, 0, 1]}
    node = helper.make_node(
        "Scan", ["s", "x"], ["y", "k", "l", "m"], body=body, num_scan_inputs=1, **directions
    )
    inputs = [value("s", kind, [2]), value("x", kind, [size, 2]), value("c", kind, [2])]
    outputs = [value("y", kind, [2]), *(value(name, kind, [size, 2]) for name in "klm")]
    return model_of(node, inputs, outputs, opset)


def loop(kind: int, opset: int, *, reads: bool = True) -> ModelProto:
    """The same in a Loop, which is fed its trip count and reads a row for each iteration."""
    row = [helper.make_node("Gather", ["x", "i"], ["e"], axis=0)] if reads else []
    row += handed(("going", "go"), ("e" if reads else "c", "b"), ("a", "o"), ("c", "p"))
    count, going = value("i", TensorProto.INT64, []), value("going", TensorProto.BOOL, [])
    body = helper.make_graph(
        row,
        "body",
        [count, going, value("a", kind, [2])],
        [value("go", TensorProto.BOOL, []), *(value(name, kind, [2]) for name in "bop")],
    )
    node = helper.make_node("Loop", ["n", "", "s"], ["y", "k", "l"], body=body)
    inputs = [value("n", TensorProto.INT64, []), value("s", kind, [2]), value("c", kind, [2])]
    inputs += [value("x", kind, [8, 2])] if reads else []
    outputs = [value("y", kind, [2]), *(value(name, kind, ["T", 2]) for name in "kl")]
    return model_of(node, inputs, outputs, opset)


def chosen(kind: int, opset: int) -> ModelProto:
    """A branch in a body."""
    branches = {
        f"{part}_branch": helper.make_graph(
            handed((name, f"{name}/t")), part, [], [value(f"{name}/t", kind, [2])]
        )
        for part, name in (("then", "a"), ("else", "e"))
    }
    body = helper.make_graph(
        [helper.make_node("If", ["f"], ["b"], **branches), *handed(("b", "o"))],
        "body",
        [value("a", kind, [2]), value("e", kind, [2]), value("f", TensorProto.BOOL, [])],
        [value("b", kind, [2]), value("o", kind, [2])],
    )
    node = helper.make_node("Scan", ["s", "x", "g"], ["y", "k"], body=body, num_scan_inputs=2)
    flags = value("g", TensorProto.BOOL, ["T"])
    inputs = [value("s", kind, [2]), value("x", kind, ["T", 2]), flags]
    return model_of(node, inputs, [value("y", kind, [2]), value("k", kind, ["T", 2])], opset)


def scan_8(kind: int, _: int, *, lengths: bool = True, backwards: bool = False) -> ModelProto:
    """Scan-8, with lengths."""
    body = helper.make_graph(
        handed(("e", "b"), ("a", "o"), ("c", "p")),
        "body",
        [value("a", kind, [2]), value("e", kind, [2])],
        [value(name, kind, [2]) for name in "bop"],
    )
    given = ["n" if lengths else "", "s", "x"]
    directions = {"directions": [1]} if backwards else {}
    node = helper.make_node(
        "Scan", given, ["y", "k", "l"], body=body, num_scan_inputs=1, **directions
    )
    inputs = [value("s", kind, ["B", 2]), value("x", kind, ["B", "T", 2]), value("c", kind, [2])]
    inputs += [value("n", TensorProto.INT64, ["B"])] if lengths else []
    rows = [value(name, kind, ["B", "T", 2]) for name in "kl"]
    return model_of(node, inputs, [value("y", kind, ["B", 2]), *rows], 8)


MODELS: dict[str, Callable[[int, int], ModelProto]] = {
    "scan": scan,
    "scan of any size": partial(scan, size="T"),
    "scan backwards": partial(scan, size="T", backwards=True),
    "loop": partial(loop, reads=False),
    "loop that reads": loop,
    "branch": chosen,
}
MODELS_8: dict[str, Callable[[int, int], ModelProto]] = {
    "scan-8": scan_8,
    "scan-8 backwards": partial(scan_8, backwards=True),
    "scan-8 without lengths": partial(scan_8, lengths=False),
}


def commands(**options: Any) -> dict[str, Command]:
    """Every command that rewrites, with its strategies."""
    found: dict[str, Command] = {
        "lower": partial(passes.lower, **options),
        "raise": partial(passes.raise_, **options),
        "unroll": partial(passes.unroll, **options),
        "unroll by a factor": partial(passes.unroll, factor=2, **options),
        "unroll with a bound": partial(passes.unroll, max_trips=4, **options),
        "unroll into branches": partial(passes.unroll, max_trips=4, bounded="if", **options),
        "peel": partial(passes.unroll, peel="first", **options),
        "peel the last": partial(passes.unroll, peel="last", **options),
        "hoist": partial(passes.hoist, **options),
        "simplify": partial(passes.simplify, **options),
    }
    for target in ("onnxruntime", "scan-only", "loop-only", "no-control-flow"):
        found[f"optimize for {target}"] = partial(passes.optimize, target=target, **options)
    verifying = Verifying(options.get("executor", "both"), 20.0)
    checked = verifying if options.get("verify", True) else None
    for alone in ("batch-inputs", "batch-outputs", "dissolve-map", "flatten-scan"):
        found[alone] = Session(SCHEDULES[alone], None, RuleOptions(), checked).run
    return found


def commands_8(**options: Any) -> dict[str, Command]:
    """What upgrades a Scan-8."""
    found: dict[str, Command] = {
        f"upgrade to {opset}, {batch}": partial(passes.upgrade, opset=opset, batch=batch, **options)
        for batch in ("auto", "vectorize", "nest", "unroll")
        for opset in (9, 13, 21, 26)
    }
    found["lower"] = partial(passes.lower, **options)
    found["optimize"] = partial(passes.optimize, **options)
    return found


def valid_models(
    models: dict[str, Callable[[int, int], ModelProto]], kind: int, opset: int
) -> Iterator[tuple[str, ModelProto]]:
    """The models of a type that are valid at an opset."""
    for name, make in models.items():
        model = make(kind, opset)
        try:
            onnx.checker.check_model(model, full_check=True)
        except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
            continue
        yield name, model


def loads(model: ModelProto) -> bool:
    """Whether onnxruntime has the kernels for a model."""
    return not measured_types.lacks(model)


def faults(
    models: dict[str, Callable[[int, int], ModelProto]],
    chosen_commands: dict[str, Command],
    kind: int,
    opset: int,
    one_in: int = 1,
) -> Iterator[str]:
    """What is wrong with the outcomes for a type at an opset, of one command in so many.

    Each type and model gets others.
    """
    for i, (name, model) in enumerate(valid_models(models, kind, opset)):
        loaded = loads(model)
        for command, run in islice(chosen_commands.items(), (kind + i) % one_in, None, one_in):
            where = f"{name}, {command}: "
            try:
                result = run(model)
            except NotProduced as error:
                if error.report.checked is not None or not error.report.refusals:
                    yield where + str(error)
                continue
            try:
                onnx.checker.check_model(result.model, full_check=True)
            except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
                yield where + str(error)
                continue
            if loaded and not loads(result.model):
                yield where + "does not load in onnxruntime"


@pytest.mark.parametrize("name", ["BFLOAT16", "FLOAT8E5M2", "INT4"])
def test_what_is_written_is_valid_and_loads(name: str) -> None:
    few = {model: MODELS[model] for model in ("scan", "loop that reads")}
    assert not list(faults(few, commands(verify=False), KINDS[name], 21))


def test_upgrades_are_valid_and_load() -> None:
    few = {"scan-8": MODELS_8["scan-8"]}
    assert not list(faults(few, commands_8(verify=False), KINDS["UINT16"], 8))


#: Each type at two opsets that many versions of operators begin or end at.
SPREAD = [
    (name, opset)
    for i, name in enumerate(KINDS)
    for number, opset in enumerate((9, 13, 19, 21, 23, 25, 26, 28))
    if (i + number) % 4 == 0
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "opset"), SPREAD)
def test_what_is_written_is_valid_and_loads_at_every_opset(name: str, opset: int) -> None:
    assert not list(faults(MODELS, commands(verify=False), KINDS[name], opset))


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_all_upgrades_are_valid_and_load(name: str) -> None:
    assert not list(faults(MODELS_8, commands_8(verify=False), KINDS[name], 8))


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_what_is_written_agrees(name: str) -> None:
    options: dict[str, Any] = {"verify_budget": 20.0}
    if name == "STRING":  # onnxruntime's Gather and Loop lose strings of the original itself
        options["executor"] = "reference"
    assert not list(faults(MODELS, commands(**options), KINDS[name], 25, one_in=20))
    assert not list(faults(MODELS_8, commands_8(**options), KINDS[name], 8, one_in=20))


@pytest.mark.slow
def test_the_table_knows_what_the_installed_onnxruntime_lacks() -> None:
    """A release that runs more than the table says is no fault."""
    unknown = [
        (op, version, variable, name)
        for op, versions in measured_types.measured().items()
        for version, variables in versions.items()
        for variable, names in variables.items()
        for name in names.split()
        if runs(op, max(int(version), 9), KINDS[name.upper()], variable)
    ]
    assert not unknown


def test_what_an_operator_takes_depends_on_its_version() -> None:
    assert not runs("Reshape", 19, KINDS["INT4"])
    known = signature("Reshape", 21)
    assert known is not None
    assert KINDS["INT4"] in known.inputs[0].valid
    assert not runs("Reshape", 21, KINDS["INT4"]), "which onnxruntime does not load"
    assert not runs("NoSuchOperator", 21, KINDS["FLOAT"])


@pytest.mark.parametrize(
    ("op", "opset", "name", "wide"),
    [
        ("Expand", 13, "BFLOAT16", "FLOAT"),
        ("Concat", 21, "INT4", "INT8"),
        ("Where", 21, "INT4", "INT32"),  # there is no kernel for the smaller ones
        ("Where", 9, "UINT64", "INT64"),
        ("Where", 16, "BOOL", "UINT8"),
        ("Add", 13, "INT8", "INT32"),  # it wraps around
        ("Div", 13, "BFLOAT16", "FLOAT"),  # rounded twice, it is what it is rounded once
    ],
)
def test_a_wider_type_that_does(op: str, opset: int, name: str, wide: str) -> None:
    assert wider(op, opset, KINDS[name]) == KINDS[wide]


@pytest.mark.parametrize(
    ("op", "opset", "name"),
    [
        ("Less", 13, "UINT64"),  # int64 has another order
        ("ReduceSum", 13, "BFLOAT16"),  # a sum of many is rounded in between
        ("Gather", 20, "INT4"),  # no Cast before 21
        ("Concat", 24, "FLOAT8E8M0"),  # its smallest number does not come back from float
        ("Pad", 13, "STRING"),
    ],
)
def test_no_wider_type_does(op: str, opset: int, name: str) -> None:
    assert not wider(op, opset, KINDS[name])


def test_infinities_stay() -> None:
    """A Cast to float8e5m2 makes the largest number of an infinity, unless it is told not to."""
    result = passes.unroll(scan(KINDS["FLOAT8E5M2"], 21))
    casts = [node for node in result.model.graph.node if node.op_type == "Cast"]
    back = [node for node in casts if helper.get_node_attr_value(node, "to") == KINDS["FLOAT8E5M2"]]
    assert back
    assert all(helper.get_node_attr_value(node, "saturate") == 0 for node in back)


def test_complex_numbers_are_spread_as_they_are() -> None:
    """A reference executor that multiplies them by one loses the sign of -0.0, and infinities."""
    result = passes.optimize(scan(KINDS["COMPLEX64"], 25, size="T"))
    assert any(node.op_type == "Expand" for node in result.model.graph.node)
    assert result.report.checked is not None
    assert result.report.checked.verdict == "verified"


def test_a_cast_back_that_is_not_exact_is_no_spelling() -> None:
    with pytest.raises(NotProduced, match="type-not-taken"):
        passes.lower(scan(KINDS["FLOAT8E8M0"], 25))
