"""A pass of Olive that runs commands, and the configuration by which Olive finds it.

    {"type": "OnnxPasses", "steps": ["upgrade", {"command": "unroll", "max_nodes": 500}]}

`python -m passes.integrations.olive` prints the package configuration of Olive with this pass in
it, for `olive run --package-config FILE`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from olive.model import ONNXModelHandler
from olive.model.utils import resolve_onnx_path
from olive.package_config import OlivePackageConfig
from olive.passes import Pass
from olive.passes.onnx.common import get_external_data_config, model_proto_to_olive_model
from olive.passes.pass_config import PassConfigParam
from onnx import ModelProto
from pydantic import field_validator

from passes.commands.pipeline import Pipeline
from passes.errors import WrongUsage


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

    @classmethod
    def _validators(cls) -> dict[str, Any]:
        return {"check_steps": field_validator("steps")(_checked)}

    def _run_for_config(
        self, model: ONNXModelHandler, config: Any, output_model_path: str
    ) -> ONNXModelHandler:
        path = resolve_onnx_path(output_model_path, Path(model.model_path).name)
        made = _pipeline(config.steps).run(model.model_path)
        return model_proto_to_olive_model(made.to(ModelProto), path, config)


def _pipeline(steps: Sequence[str | Mapping[str, Any]]) -> Pipeline:
    """The pipeline of steps as a configuration spells them. Raises what `Pipeline` raises."""
    named = [{"command": one} if isinstance(one, str) else dict(one) for one in steps]
    if missing := [one for one in named if "command" not in one]:
        raise ValueError(f"the step {missing[0]!r} names no command")
    return Pipeline([(one.pop("command"), one) for one in named])


def _checked(steps: Sequence[str | Mapping[str, Any]]) -> Sequence[str | Mapping[str, Any]]:
    """The steps. Raises ValueError, which Olive shows before it runs anything: they are wrong."""
    try:
        _pipeline(steps)
    except (WrongUsage, TypeError) as error:
        raise ValueError(f"{error}") from error
    return steps


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
