"""The commands of a soak: every pipeline, with the options that change what it writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from onnx import ModelProto

from passes import api
from passes.pipelines import PIPELINES
from passes.session import Result, Session, Verifying
from tests.generate.feeds import SIZES

#: Seconds that the tool's own verification may take.
_BUDGET = 20.0


@dataclass(frozen=True)
class Command:
    """A pipeline with its options, as the library's function of the same name passes them on."""

    pipeline: str
    opset: int = api.DEFAULT_OPSET
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        said = [f"{name}={value}" for name, value in sorted(self.options.items()) if value]
        opset = f" to {self.opset}" if self.pipeline == "upgrade" else ""
        return " ".join([self.pipeline + opset, *said])

    @property
    def assumed(self) -> tuple[str, ...]:
        return tuple(self.options.get("assume", ()))

    @property
    def fixes_dims(self) -> bool:
        return bool(self.options.get("dims"))

    @property
    def idempotent(self) -> bool:
        return not self.fixes_dims  # the outcome has no such dims

    def run(self, model: ModelProto, *, verify: bool = False) -> Result:
        """Run it, by default without the tool's own verification; raises what sessions raise."""
        options = {"assume": (), "only": (), "max_nodes": 5_000, "batch": "auto", **self.options}
        verifying = Verifying(budget=_BUDGET, assume=self.assumed) if verify else None
        return Session(self.pipeline, self.opset, options, verifying).run(model)


def commands(model: ModelProto) -> list[Command]:
    """Every command for a model."""
    opset = model.opset_import[0].version
    found = [Command("upgrade"), Command("upgrade", min(opset + 1, 26)), Command("upgrade", 17)]
    if opset <= 8:
        found += [Command("upgrade", 21, {"batch": one}) for one in ("vectorize", "nest", "unroll")]
        found += [Command("upgrade", 9, {"batch": "auto"}), Command("upgrade", 13)]
    found += [Command(one) for one in PIPELINES if one not in ("upgrade", "unroll-partial")]
    found += [Command("unroll-partial", options={"factor": factor}) for factor in (1, 2, 3)]
    if sizes := tuple((dim, SIZES[0][dim]) for dim in _dims(model)):
        found.append(Command("unroll", options={"dims": sizes}))
    for assume in (("valid-inputs",), ("non-empty",)):
        for one in ("upgrade", "lower", "raise", "unroll"):
            found.append(Command(one, options={"assume": assume}))
    return [one for one in found if one.pipeline != "upgrade" or one.opset > opset]


def _dims(model: ModelProto) -> list[str]:
    """The symbolic dims of the inputs."""
    dims = (dim.dim_param for one in model.graph.input for dim in one.type.tensor_type.shape.dim)
    return list(dict.fromkeys(filter(None, dims)))
