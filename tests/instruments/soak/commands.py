"""The commands of a soak: every pipeline, with the options that change what it writes."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
from onnx import ModelProto

import passes
from passes.binding.values import held
from passes.choices import Batch, Half, Retyping, RuleOptions, Verifying
from passes.commands.schedules import SCHEDULES
from passes.engine.outcome import Pass
from passes.session import Result, Session
from tests.instruments.generate.feeds import SIZES, Feed

#: Seconds that the tool's own verification may take.
_BUDGET = 20.0
#: Few generated loops run more often: only where the trips are a product of sizes.
_MOST_TRIPS = 12
#: Of so many hands one is `upgrade` and `lower`, to be done in either order.
_BOTH_ORDERS = 16


@dataclass(frozen=True)
class Command:
    """A pipeline with its options, as the library's function of the same name passes them on."""

    pipeline: str
    opset: int = passes.DEFAULT_OPSET
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        said = [f"{name}={_short(value)}" for name, value in sorted(self.options.items()) if value]
        opset = f" to {self.opset}" if self.pipeline == "upgrade" else ""
        return " ".join([self.pipeline + opset, *said])

    @property
    def kind(self) -> str:
        """The same for the same options, whatever the dims and inputs are called."""
        if self.options.get("values"):
            return f"{self.pipeline} with values"
        return self.label.partition(" dims=")[0] + (" with dims" if self.fixes_dims else "")

    @property
    def assumed(self) -> tuple[str, ...]:
        return tuple(self.options.get("assume", ()))

    @property
    def check(self) -> str:
        """The output that it adds, which says whether the others are right."""
        return str(self.options.get("check_output", ""))

    @property
    def promised(self) -> bool:
        """Whether it may fail where a loop runs more often than was promised."""
        return "max_trips" in self.options

    @property
    def fixes_dims(self) -> bool:
        return any(self.options.get(one) for one in ("dims", "shapes", "values"))

    @property
    def idempotent(self) -> bool:
        return not self.fixes_dims and not self.check  # the outcome has no such dims, or has both

    def run(self, model: ModelProto, *, verify: bool = False) -> Result:
        """Run it, by default without the tool's own verification; raises what sessions raise."""
        options = RuleOptions(**{"max_nodes": 5_000, **self.options})
        verifying = Verifying(budget=_BUDGET, assume=self.assumed) if verify else None
        target = self.opset if self.pipeline == "upgrade" else None  # others convert if they must
        if options.retyping is not None and options.retyping.to == Half.bfloat16:
            target = max(self.opset, model.opset_import[0].version)  # which takes it in bodies
        return Session([Pass(SCHEDULES[self.pipeline], target, options)], verifying).run(model)


_FLAT = {"flat": True, "bounded": "select"}
_BOUNDED = {"max_trips": _MOST_TRIPS, "max_nodes": 1_000}
_CHECKED = {"max_trips": 2, "check_output": "enough"}


def commands(model: ModelProto, feeds: Mapping[str, Feed] = MappingProxyType({})) -> list[Command]:
    """Every command for a model; `feeds` are of its first case, to which inputs are bound."""
    opset = model.opset_import[0].version
    found = [Command("upgrade", to) for to in (passes.DEFAULT_OPSET, min(opset + 1, 26), 17, 26)]
    if opset <= 8:
        found += [Command("upgrade", 21, {"batch": one}) for one in Batch if one != "auto"]
        found += [Command("upgrade", 9, {"batch": "auto"}), Command("upgrade", 13)]
    found += [Command(one) for one in SCHEDULES if one not in ("upgrade", "unroll-partial", "peel")]
    found += [Command("unroll-partial", options={"factor": factor}) for factor in (1, 2, 3)]
    found += [Command("peel", options={"peel": which}) for which in ("first", "last")]
    found += [Command("unroll", options={**_BOUNDED, "bounded": one}) for one in ("select", "if")]
    found.append(Command("unroll", options=_CHECKED))
    found += [
        Command("optimize-no-control-flow", options={**_FLAT, **one}) for one in ({}, _BOUNDED)
    ]
    found.append(Command("optimize", options={"allow_reassociation": True}))
    found.append(Command("optimize", options={"allow_reassociation": True, "contrib": True}))
    if sizes := {dim: SIZES[0][dim] for dim in _dims(model)}:
        found.append(Command("unroll", options={"dims": sizes}))
    tensors = {name: one for name, one in feeds.items() if isinstance(one, np.ndarray)}
    if bound := list(tensors)[1::2]:
        shapes = {name: one.shape for name, one in tensors.items() if name not in bound}
        values = {name: held(tensors[name]) for name in bound}
        for one in ("simplify", "optimize", "optimize-no-control-flow"):
            options = _FLAT if one == "optimize-no-control-flow" else {}
            found.append(Command(one, options={**options, "shapes": shapes, "values": values}))
    for assume in (("valid-inputs",), ("non-empty",)):
        for one in ("upgrade", "lower", "raise", "unroll", "optimize"):
            found.append(Command(one, options={"assume": assume}))
    return [one for one in found if one.pipeline != "upgrade" or one.opset > opset]


def dealt(every: Sequence[Command], seed: int, count: int) -> list[Command]:
    """So many of some commands, drawn by the seed; all of them where `count` is 0."""
    rng = random.Random(seed)
    both = [one for one in (Command("upgrade"), Command("lower")) if one in every]
    if not count:
        return list(every)
    if len(both) > 1 and rng.randrange(_BOTH_ORDERS) == 0:
        return both
    return rng.sample(every, min(count, len(every)))


def _short(value: Any) -> str:
    """An option in few words."""
    if isinstance(value, Retyping):
        stored = [f"weights {value.weights}"] * bool(value.weights)
        return ",".join([value.to, value.io, *stored, *["int32"] * value.int32])
    return str(value)


def _dims(model: ModelProto) -> list[str]:
    """The symbolic dims of the inputs."""
    dims = (dim.dim_param for name in model.graph.input for dim in name.type.tensor_type.shape.dim)
    return list(dict.fromkeys(filter(None, dims)))
