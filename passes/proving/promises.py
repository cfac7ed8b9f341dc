"""The promises of a user as facts of the original, which fails if one is broken."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from onnx import ModelProto

from passes.choices import Assumption, RuleOptions
from passes.errors import BadModel
from passes.ir import scope as scoping
from passes.ir.model import Model
from passes.ir.names import Names
from passes.ir.places import is_loop
from passes.ir.protos import copied
from passes.loops.form import Kind, LoopForm
from passes.rule import Refused, Site
from passes.verify.inputs.drawer import Case
from passes.verify.inputs.hints import model_hints
from passes.verify.rewrites.assumptions import accepting


@dataclass(frozen=True)
class Promises:
    """The promises of a user: `max_trips` of each Loop without a known trip count; `non_empty`: no
    input is empty, no Scan has a time, batch or length of 0. `check_output` is the output of the
    new model that tells whether `max_trips` was kept. `given` are facts that both models are bound
    to, each after its option. `ranges` are those of inputs, for proofs up to rounding."""

    max_trips: int | None = None
    non_empty: bool = False
    check_output: str = ""
    given: tuple[str, ...] = ()
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    @staticmethod
    def of(options: Sequence[RuleOptions]) -> Promises:
        """The promises in the options of commands that run one after the other."""
        facts = [
            *(f"--dim {name}={size}" for one in options for name, size in one.dims.items()),
            *(f"--shape {name}" for one in options for name in one.shapes),
            *(f"--set {name}" for one in options for name in one.values),
        ]
        trips = [one.max_trips for one in options if one.max_trips is not None]
        return Promises(
            min(trips, default=None),
            any(Assumption.non_empty in one.assume for one in options),
            next((one.check_output for one in options if one.check_output), ""),
            tuple(f"{one}: both models are bound to it" for one in dict.fromkeys(facts)),
            {name: ends for one in options for name, ends in one.ranges.items()},
        )

    def __bool__(self) -> bool:
        return bool(self.given) or self.max_trips is not None or self.non_empty

    def sentences(self) -> Iterator[str]:
        """Each promise in words, after its option."""
        yield from self.given
        if self.max_trips is not None:
            times = "iteration" if self.max_trips == 1 else "iterations"
            many = f"{self.max_trips} {times}"
            yield f"--max-trips {self.max_trips}: no Loop of unknown trip count runs over {many}"
        if self.non_empty:
            yield "--assume non-empty: no input is empty, no Scan has a batch, time or length of 0"

    def keeping(self, before: Model) -> Callable[[Case], bool] | None:
        """A test of which inputs of the original keep what is promised of sizes; None if all do."""
        return accepting([Assumption.non_empty] * self.non_empty, model_hints(before))

    def applied(self, before: Model, after: Model) -> tuple[Model, Model]:
        """The original with Loops that fail where a promise is broken, and the new model without
        the output that tells so."""
        names = [value.name for value in after.proto.graph.output]
        if self.check_output and names[-1:] == [self.check_output]:
            proto = copied(after.proto)
            del proto.graph.output[-1]
            after = Model(proto, after.path)
        if self.max_trips is not None:
            before = Model(_limited(before, self.max_trips), before.path)
        return before, after


NO_PROMISES = Promises()


def _limited(model: Model, most: int) -> ModelProto:
    """The model with each Loop that `--max-trips` bounds made to fail where it runs more often."""
    from passes.rules.unroll.bounded import bound_of, promised  # takes longer than most proofs

    made = Model(copied(model.proto), model.path)
    names = Names(scoping.all_names(owner for _, owner in scoping.owners(made.proto)))
    for place in scoping.walk_model(made.proto):  # inner ones first
        if not is_loop(place.node):
            continue
        opset = made.opset_at(place.scope)
        options = RuleOptions(max_trips=most)
        site = Site(made, place, opset, opset, names, options)
        try:
            form = LoopForm.from_node(place.node, opset)
            if form.kind is Kind.LOOP and bound_of(site, form).promised:
                place.node.CopyFrom(promised(site, form, most))
        except (Refused, BadModel):  # nothing can be promised of it
            continue
    return made.proto
