"""A model whose inputs are bound to what commands know of them, beside the model as it was read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from onnx import ModelProto

from passes.binding.dims import declare_sizes
from passes.binding.inputs import Binding, as_given, with_sizes
from passes.choices import RuleOptions
from passes.engine.full_check import full_objection
from passes.ir.model import Model
from passes.ir.protos import copied
from passes.types.inference import write_sizes


@dataclass(frozen=True)
class Bound:
    """A model that was read, the facts that are given about its inputs, and the model with these
    bound; `given` is the model that was read with the signature of that, so that both sides take
    the same inputs."""

    original: Model
    binding: Binding
    model: Model
    given: Model

    @classmethod
    def of(
        cls,
        original: Model,
        options: Iterable[RuleOptions],
        dims: Mapping[str, int | str],
        *,
        lenient: bool,
    ) -> Bound:
        """Bind what any of the options, and `dims`, know; `lenient`: of `dims` those that the model
        has.

        Raises:
            CannotBind: they contradict one another, or an input cannot be what it is bound to.
            DoesNotFit: it has no such input, or dim.
        """
        binding = Binding(dims)
        if lenient:
            binding = binding.fitting(original)
        for own in options:
            binding = binding.and_(Binding(own.dims, own.shapes, own.values))
        if not binding:
            return cls(original, binding, original, original)
        model = binding.of(original)
        return cls(original, binding, model, as_given(original, model))

    @property
    def objection(self) -> str:
        """The reason why the model is invalid only since it was bound, empty if it is not."""
        sentence = full_objection(self.model) if self.binding else ""
        if not sentence or full_objection(self.original):
            return ""
        return f"with {self.binding} the model is invalid: {sentence}"

    def described(self, given: Model | None = None) -> tuple[str, ...]:
        """A sentence on each input and output that is not what it was."""
        return tuple(self.binding.described(self.original, given or self.given))

    def sized(self, proto: ModelProto) -> tuple[ModelProto, Model]:
        """The outcome, and the model as it is given, with the sizes declared that follow from what
        is bound."""
        return with_sizes(proto, self.given) if self.binding else (proto, self.given)


def both_bound(options: RuleOptions, before: Model, after: Model) -> tuple[Model, Model]:
    """Bind the inputs of two models; the new model may already have some of the facts.

    Raises what `Binding.of` raises of the original.
    """
    binding = Binding(options.dims, options.shapes, options.values)
    if not binding:
        return before, after
    given = as_given(before, binding.of(before))
    left = binding.fitting(after)
    sized = copied((left.of(after) if left else after).proto)
    outputs = declare_sizes(sized)
    for value in given.proto.graph.output:
        write_sizes(value.type, outputs.get(value.name))
    return given, Model(sized, after.path)
