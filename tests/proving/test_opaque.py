"""What is a part of an operator of which nothing is modelled: its version, and its attributes."""

from __future__ import annotations

import pytest
from onnx import TensorProto, helper

from passes.proving.nodes import meaning

OPSETS = {"": 13, "my": 1}
ONE, TWO = (helper.make_tensor("", TensorProto.FLOAT, [1], [number]) for number in (1.0, 2.0))
PLACE = helper.make_tensor("", TensorProto.INT64, [1], [0])
#: Values of an attribute that differ.
UNLIKE = {
    "types": [helper.make_tensor_type_proto(TensorProto.FLOAT, [size]) for size in (1, 2)],
    "tensors": [ONE, TWO],
    "lists of tensors": [[ONE], [TWO]],
    "sparse tensors": [helper.make_sparse_tensor(one, PLACE, [3]) for one in (ONE, TWO)],
    "signs of zero": [0.0, -0.0],
    "a whole number and a float": [1, 1.0],
    "words": ["a", "b"],
}


@pytest.mark.parametrize("kind", UNLIKE)
def test_operators_of_other_attributes_are_others(kind: str) -> None:
    nodes = [helper.make_node("Op", ["x"], ["y"], domain="my", a=one) for one in UNLIKE[kind]]
    first, second = (meaning(node, OPSETS) for node in nodes)
    assert len({first, second, meaning(nodes[0], OPSETS)}) == 2
