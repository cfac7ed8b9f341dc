"""The one writer of an If."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, ValueInfoProto, helper

from passes.bodies.branches import Branch, Cleaning, Results, either
from passes.ir.names import Names
from passes.ir.purposes import HANDLE_NO_TRIPS, Extra
from passes.ir.scope import subgraphs
from passes.types.value_types import tensor_type
from passes.writing.author import Author

PAIR = tensor_type(TensorProto.FLOAT, (2,))


def doubled(inner: Author) -> Results:
    inner.op("Exp", "x")
    middle = inner.op("Add", "x", inner.value(np.zeros(2, np.float32)))
    given = inner.op("Mul", middle, inner.value(np.array([2, 2], np.float32)))
    known = [ValueInfoProto(name=one, type=PAIR) for one in (middle, given, "elsewhere")]
    return Results([given], known)


def same(inner: Author) -> Results:
    return Results([inner.op("Identity", "x")])


def handed_on(inner: Author) -> Results:
    return Results(["x"])


def checked(author: Author) -> onnx.NodeProto:
    """The If that an author wrote, in a model that is checked."""
    graph = helper.make_graph(
        author.nodes,
        "g",
        [
            helper.make_tensor_value_info("c", TensorProto.BOOL, []),
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [2]),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])],
        author.constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    return graph.node[-1]


def test_branches_declare_what_they_give_and_hold_only_what_is_read() -> None:
    author = Author(17, Names(["x", "c", "y"]), "it")
    branches = Branch("some", doubled), Branch("none", same, extra=True)
    either(author, "c", *branches, ["y"], [PAIR], purpose=HANDLE_NO_TRIPS)
    node = checked(author)
    then, other = (graph for _, graph in subgraphs(node))
    assert [node.op_type for node in then.node] == ["Add", "Mul"]
    assert [value.name for value in then.value_info] == list(then.node[0].output), (
        "outputs say theirs"
    )
    assert (then.name, other.name) == ("it_some", "it_none")
    assert [name.type for name in (*then.output, *other.output)] == [PAIR, PAIR]
    (extra,) = author.extras([node])
    assert extra == Extra(2, HANDLE_NO_TRIPS.what), "the If and what stands in the other branch"


def test_a_branch_that_is_cleaned_hands_on_what_is_around_it_by_an_identity() -> None:
    author = Author(17, Names(["x", "c", "y"]), "it")
    branches = Branch("run", doubled), Branch("skip", handed_on)
    cleaning = Cleaning(lambda name: None, lambda name: None)
    either(author, "c", *branches, ["y"], [PAIR], cleaning=cleaning, iteration="it3")
    node = checked(author)
    assert {entry.key: entry.value for entry in node.metadata_props} == {"passes.iteration": "it3"}
    (only,) = dict(subgraphs(node))["else_branch"].node
    assert (only.op_type, list(only.input)) == ("Identity", ["x"])
