"""Programs of torch's exporter are rewritten, and run as before."""

from __future__ import annotations

from typing import Any

import pytest

import passes

pytestmark = pytest.mark.slow  # torch takes seconds to import


def exported(**options: Any) -> tuple[Any, tuple[Any, ...]]:
    """A program with a loop that torch wrote out, and inputs of it."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("onnxscript")

    class Steps(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.eye(2) / 2)

        def forward(self, x: Any, state: Any) -> Any:
            for step in range(3):
                state = torch.tanh(state @ self.weight + x[step])
            return state

    given = (torch.ones(3, 2), torch.zeros(2))
    return torch.onnx.export(Steps(), given, dynamo=True, verbose=False, **options), given


def test_a_program_is_rewritten_and_runs_as_before() -> None:
    torch = pytest.importorskip("torch")
    onnx_ir = pytest.importorskip("onnx_ir")
    program, given = exported()
    result = passes.convert(program, opset=21)
    again = result.to(torch.onnx.ONNXProgram)
    assert again.model.opset_imports[""] == 21
    assert torch.equal(again(*given)[0], program(*given)[0])
    program.model = result.to(onnx_ir.Model)  # which keeps the exported program
    assert torch.equal(program(*given)[0], again(*given)[0])


def test_weights_without_data_are_refused_in_a_sentence() -> None:
    fake = pytest.importorskip("torch._subclasses.fake_tensor")
    with fake.FakeTensorMode():
        program, _ = exported(optimize=False)
    with pytest.raises(passes.BadModel, match="Cannot take content out from the FakeTensor"):
        passes.optimize(program)
