"""The rule `carry-captures`: a Scan carries, unchanged, what its body captures."""

from __future__ import annotations

from dataclasses import replace

from onnx import GraphProto, helper

from passes.ir import scope as scoping
from passes.ir.protos import copied
from passes.loops.form import Carried, LoopForm
from passes.rule import SCANS, Edit, NothingToDo, Site, register
from passes.types.value_types import dims_of, elem_type_of, tensor_type


@register("carry-captures", considers=SCANS, optional=True)
def carry_captures(site: Site) -> Edit:
    """Let a Scan carry, unchanged, the values that its body captures.

    Before, where w is no constant:

        h = Scan <num_scan_inputs = 1, body = step (s, a) => (t) {
            b = Mul (a, w)
            t = Add (s, b)
        }> (h0, x)

    After:

        h, unread = Scan <num_scan_inputs = 1, body = step (s, c, a) => (t, d) {
            b = Mul (a, c)
            t = Add (s, b)
            d = Identity (c)
        }> (h0, w, x)

    OpenVINO does not take a Scan whose body reads a value from outside. Constants stay where they
    are. `prune-loop` does the opposite.

    Refuses:
    - `not-a-tensor`: a captured value is a sequence or an optional, or its type is unknown
    - `unknown-rank`: the rank of a captured value is unknown; onnxruntime needs that of a state
    """
    form = LoopForm.from_node(site.node, site.opset)
    captured = [name for name in form.captured if site.constant(name) is None]
    if not captured:
        raise NothingToDo
    graph = copied(form.body)
    states = [_carried(site, graph, name) for name in captured]
    scoping.rename_captures(graph, {state.initial: state.body_input for state in states})
    graph.node.extend(
        helper.make_node("Identity", [state.body_input], [state.body_output]) for state in states
    )
    edited = replace(form, body=graph, carried=(*form.carried, *states))
    return Edit((edited.to_node(),), note=f"{len(states)} captured")


def _carried(site: Site, graph: GraphProto, name: str) -> Carried:
    """A state that begins with an outer value, declared in a body, in place."""
    known = site.type_of(name)
    if not elem_type_of(known):
        raise site.refused("not-a-tensor", f"{name!r} is not known to be a tensor", name)
    dims = dims_of(known)
    if dims is None:
        raise site.refused("unknown-rank", f"the rank of {name!r} is unknown", name)
    sizes = tuple(dim if isinstance(dim, int) else None for dim in dims)
    kind = tensor_type(elem_type_of(known), sizes)
    state = Carried(name, *(site.fresh(f"{name}/{part}") for part in ("kept", "next", "last")))
    graph.input.append(helper.make_value_info(state.body_input, kind))
    graph.output.append(helper.make_value_info(state.body_output, kind))
    return state
