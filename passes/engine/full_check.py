"""Checks the outcome of rewrites, its types and shapes too, and finds the rewrites to blame."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from onnx import FunctionProto, ModelProto

from passes.analysis.bodies.kept_sizes import with_kept_sizes
from passes.analysis.integers.integers import Integers
from passes.check import check_outcome
from passes.engine.region import CannotCut, cut
from passes.engine.rounds import Rewritten, Round
from passes.engine.sweep import splice
from passes.errors import BadModel
from passes.ir import scope as scoping
from passes.ir.model import Model
from passes.ir.places import import_contrib
from passes.ir.protos import copied
from passes.ir.site import Site
from passes.types.inference import declarations, light_model, without_sizes
from passes.types.shape_inference import objection
from passes.types.signature import describe_type
from passes.types.type_tables import every_scope


def full_objection(model: Model) -> str:
    """Return the objection of onnx's inference to the types and shapes of a model; "" if there is
    none."""
    light = light_model(model.proto, has_bodies=model.has_bodies)
    same = light is model.proto
    graphs = [graph for _, below in model.graphs for graph in below] if same else ()
    return objection(light, graphs, check_types=True)


def as_computed(model: Model) -> tuple[Model, list[str]] | None:
    """A copy that declares the sizes that are computed where the model declares others, and a
    sentence on each such value; None if there is none."""
    bare = with_kept_sizes(without_sizes(model.proto))
    copy, notes = copied(model.proto), list[str]()
    pairs = zip(declarations(bare.proto), declarations(copy, outputs=True), strict=True)
    for (scope, _), (_, values) in pairs:
        if isinstance(scope.outermost.owner, FunctionProto):
            continue
        integers = Integers(Site.of_graph(bare, scope))
        for value in values:
            declared = describe_type(value.type)
            for axis, dim in enumerate(value.type.tensor_type.shape.dim):
                size = integers.fixed_size(value.name, axis)
                if dim.HasField("dim_value") and size is not None:
                    dim.dim_value = size
            if (computed := describe_type(value.type)) != declared:
                notes.append(
                    f"{scope.path}: {value.name!r} is declared {declared}, but {computed} is "
                    "computed, which is declared in its place"
                )
    return (Model(copy, model.path), notes) if notes else None


_MANY = 64  # rewrites, each of which would be done alone
#: A rewrite after which there is an objection to a model, with that.
Blamed = tuple[Rewritten, str]


class Invalidated(Exception):
    """A model is invalid after some rewrites, each with the reason."""

    def __init__(self, rewrites: Sequence[Blamed]) -> None:
        super().__init__()
        self.rewrites = rewrites


def form_objection(model: ModelProto) -> str:
    """Return the sentence of `BadModel` if a model is invalid, apart from its types; else ""."""
    try:
        check_outcome(Model(model))
    except BadModel as error:
        return str(error)
    return ""


def check_edits(round_: Round) -> None:
    """Check the outcome of a round in which rules of other packages rewrote.

    Raises:
        Invalidated: some of their Edits are invalid.
    """
    foreign = [rewritten for rewritten in round_.rewritten if not rewritten.rule.is_built_in]
    if foreign and (found := _blamed(round_, foreign, form_objection)):
        raise Invalidated(found)


def blamed(rounds: Sequence[Round], objection: Callable[[ModelProto], str]) -> list[Blamed]:
    """The rewrites after which there is an objection to a model: of the first round whose outcome
    has one, those whose region has one, too; or the whole model, after each alone; or else all."""
    found = (_blamed(round_, round_.rewritten, objection) for round_ in rounds)
    return next(filter(None, found), [])


def _blamed(
    round_: Round, rewrites: Sequence[Rewritten], objection: Callable[[ModelProto], str]
) -> list[Blamed]:
    sentence = objection(round_.proto)
    if not sentence or not rewrites or objection(round_.model.proto):
        return []
    for of_one in (_of_region, _alone) if len(rewrites) <= _MANY else (_of_region,):
        shown = [(one, of_one(round_, one, objection)) for one in rewrites]
        found = [(one, why) for one, why in shown if why]
        if found:
            return found if len(found) > 1 else [(found[0][0], sentence)]
    return [(one, sentence) for one in rewrites]


def _of_region(round_: Round, rewritten: Rewritten, objection: Callable[[ModelProto], str]) -> str:
    """The objection to a region after it was rewritten, if there is none before."""
    try:
        region = cut(round_, rewritten)
    except CannotCut:
        return ""
    return "" if objection(region.before) else objection(region.after)


def _alone(round_: Round, rewritten: Rewritten, objection: Callable[[ModelProto], str]) -> str:
    """The objection to the model after this rewrite alone."""
    copy, edit = copied(round_.model.proto), rewritten.edit
    scopes = (scope for top in scoping.scopes(copy) for scope in every_scope(top))
    owner = next(scope.owner for scope in scopes if scope.key == rewritten.scope.key)
    splice(owner, {rewritten.index: edit}, {tensor.name: tensor for tensor in edit.initializers})
    import_contrib(copy)
    return objection(copy)
