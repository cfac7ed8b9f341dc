"""A pass of Olive that runs commands, and the configuration by which Olive finds it.

    {"type": "OnnxPasses", "steps": ["upgrade", {"command": "unroll", "max_nodes": 500}]}

`python -m passes.integrations.olive` prints the package configuration of Olive with this pass in
it, for `olive run --package-config FILE`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from olive.model import ONNXModelHandler
from olive.model.utils import resolve_onnx_path
from olive.package_config import OlivePackageConfig
from olive.passes import Pass
from olive.passes.onnx.common import get_external_data_config, model_proto_to_olive_model
from olive.passes.pass_config import PassConfigParam
from onnx import ModelProto

from passes.commands.pipeline import Pipeline, Step


class OnnxPasses(Pass):
    """Runs commands on an ONNX model and verifies the outcome. Raises what `Pipeline` raises."""

    @classmethod
    def _default_config(cls, accelerator_spec: Any) -> dict[str, PassConfigParam]:
        steps = PassConfigParam(
            type_=list[str | dict[str, Any]],
            required=True,
            description="Commands, each a name, or a table of the `command` and its options.",
        )
        return {"steps": steps, **get_external_data_config()}

    def _run_for_config(
        self, model: ONNXModelHandler, config: Any, output_model_path: str
    ) -> ONNXModelHandler:
        path = resolve_onnx_path(output_model_path, Path(model.model_path).name)
        made = Pipeline([_step(one) for one in config.steps]).run(model.model_path)
        return model_proto_to_olive_model(made.to(ModelProto), path, config)


def _step(step: str | Mapping[str, Any]) -> Step:
    """A step of a pipeline as a configuration spells it."""
    if isinstance(step, str):
        return step
    if "command" not in step:
        raise ValueError(f"the step {step!r} names no command")
    return step["command"], {name: one for name, one in step.items() if name != "command"}


def package_config() -> dict[str, Any]:
    """The package configuration of Olive with the pass in it, for `olive.workflows.run`."""
    every = ["*"]
    path = Path(OlivePackageConfig.get_default_config_path())
    config: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    config["passes"]["OnnxPasses"] = {
        "module_path": "passes.integrations.olive.OnnxPasses",
        "supported_providers": every,
        "supported_accelerators": every,
        "supported_precisions": every,
        "supported_algorithms": [],
        "supported_quantization_encodings": [],
    }
    return config


if __name__ == "__main__":
    print(json.dumps(package_config(), indent=2))
