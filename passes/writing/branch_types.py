"""The types that the branches of an If declare for what a loop gives."""

from __future__ import annotations

from onnx import TypeProto, ValueInfoProto, helper

from passes.analysis.trip_count import facts
from passes.ir.versions import SHAPES_MAY_DIFFER
from passes.loops.form import Carried, Collected, LoopForm
from passes.rule import Refused, Site
from passes.types.value_types import Dim, dims_of, elem_type_of, tensor_type
from passes.writing.body_outputs import IDENTITY_OF_OPTIONALS, IDENTITY_OF_SEQUENCES


def state_type(site: Site, one: Carried) -> TypeProto | None:
    """A type that a state has before and behind every iteration, None where none is known.

    A size that only the body declares may be another one when the model runs: a loop takes that,
    where an If fails in onnxruntime.
    """
    before = site.body_type_of("body", one.body_input)
    after = site.body_type_of("body", one.body_output)
    elem_type = elem_type_of(before) or elem_type_of(after)
    if not elem_type:
        return before
    fed = site.type_of(one.initial)
    shapes = [dims for dims in map(dims_of, (fed, before, after)) if dims is not None]
    if len(shapes) < 3 or len({len(dims) for dims in shapes}) > 1:
        return tensor_type(elem_type, None)
    sizes = zip(*shapes, strict=True)
    return tensor_type(elem_type, tuple(_size(a) if a == b == c else None for a, b, c in sizes))


def rows_type(site: Site, form: LoopForm, one: Collected) -> TypeProto | None:
    """The type of collected rows, however many; None where it is not known."""
    known = site.body_type_of("body", one.body_output)
    dims = dims_of(known)
    if not elem_type_of(known):
        return None
    if dims is None:
        return tensor_type(elem_type_of(known), None)
    told = all(_is_fed_what_it_declares(site, state) for state in form.carried)
    sizes = [_size(dim) if told else None for dim in dims]
    sizes.insert(one.axis % (len(sizes) + 1), None)
    return tensor_type(elem_type_of(known), tuple(sizes))


def _is_fed_what_it_declares(site: Site, one: Carried) -> bool:
    """Whether every size of a state that the body declares is known outside, too."""
    said = dims_of(site.body_type_of("body", one.body_input))
    fed = dims_of(site.type_of(one.initial))
    if said is None or fed is None or len(said) != len(fed):
        return not any(isinstance(dim, int) for dim in said or ())
    return all(a == b for a, b in zip(said, fed, strict=True) if isinstance(a, int))


def _size(dim: Dim) -> Dim:
    return dim if isinstance(dim, int) else None


def declared(name: str, known: TypeProto | None) -> ValueInfoProto:
    """What a branch says of its output."""
    return ValueInfoProto(name=name) if known is None else helper.make_value_info(name, known)


def refuse_uncopied(site: Site, one: Carried) -> None:
    """Refuse a sequence or optional that Identity, and so a branch, cannot hand on.

    Raises:
        Refused: `not-a-tensor`.
    """
    known = site.body_type_of("body", one.body_input)
    kind = (known.WhichOneof("value") if known is not None else None) or ""
    oldest = {"sequence_type": IDENTITY_OF_SEQUENCES, "optional_type": IDENTITY_OF_OPTIONALS}
    if site.target < oldest.get(kind, 0):
        raise Refused(
            "not-a-tensor",
            f"{one.body_input!r} is no tensor: Identity takes such from opset {oldest[kind]} on",
            [site.path, one.body_input],
        )


def refuse_two_shapes(site: Site, form: LoopForm) -> None:
    """Refuse to collect nothing or something by an If that has one shape.

    Raises:
        Refused: `old-if`.
    """
    collects = any(one.tensor for one in form.collected)
    if site.target < SHAPES_MAY_DIFFER and collects:
        raise Refused(
            "old-if",
            f"the branches of an If give one shape before opset {SHAPES_MAY_DIFFER}, and "
            "what the loop collects may be empty",
            [site.path],
        )


def refuse_changing_states(site: Site, form: LoopForm) -> None:
    """Refuse to hand on a state of before or behind an iteration by an If that has one shape.

    Raises:
        Refused: `old-if`.
    """
    if site.target >= SHAPES_MAY_DIFFER:
        return
    for name, stays in facts.keeps_shape(site, form).items():
        if not stays:
            raise Refused(
                "old-if",
                f"the branches of an If give one shape before opset {SHAPES_MAY_DIFFER}, and "
                f"{name!r} may change its shape",
                [site.path, name],
            )
