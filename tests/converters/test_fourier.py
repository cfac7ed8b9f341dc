"""The steps of DFT, run at the old opset and converted."""

from __future__ import annotations

import pytest
from calls import prove_call
from proving import initializers, prove

pytestmark = pytest.mark.sampled


def _dft(attributes: str, x: str, inputs: str = "x") -> str:
    given = f"<{attributes}>" if attributes else ""
    return f"""(float[{x}] x) => (float[A,B,C,D] y) <int64 n = {{5}}, int32 m = {{9}}>
        {{ y = DFT{given}({inputs}) }}"""


@pytest.mark.parametrize(("axis", "value"), [("", 1), ("axis = 0", 0), ("axis = 2", 2)])
@pytest.mark.parametrize("inputs", ["x", "x, n", "x, m"])
@pytest.mark.parametrize(
    ("attributes", "last"),
    [("", 1), ("", 2), ("inverse = 1", 2), ("onesided = 1", 1), ("onesided = 1, inverse = 1", 2)],
)
def test_the_axis_becomes_an_input(
    attributes: str, last: int, inputs: str, axis: str, value: int
) -> None:
    """Left out it was 1, and would be -2 now."""
    graph = _dft(", ".join(filter(None, (attributes, axis))), f"4,6,3,{last}", inputs)
    after = prove(graph, opset=17, target=26)
    assert initializers(after)["axis"] == value
    length = inputs.removeprefix("x").removeprefix(", ")
    assert list(after.graph.node[0].input) == ["x", length, "axis"]


def test_a_negative_axis() -> None:
    prove(_dft("axis = -3", "4,6,3,2"), opset=17, target=20)


def test_a_double() -> None:
    graph = "(double[2,8,1] x) => (double[2,8,2] y) { y = DFT(x) }"
    prove(graph, opset=17, target=26)


def test_the_axis_of_the_caller() -> None:
    model = "(float[4,6,3,1] x) => (float[4,6,3,2] y) { y = local.F<along = 2>(x) }"
    function = "F <along: int = 1> (x) => (y) { y = DFT<axis: int = @along>(x) }"
    assert prove_call(model, function, opset=17, target=26) == ["Constant", "DFT"]
