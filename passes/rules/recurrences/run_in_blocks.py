"""The rule `run-in-blocks`: a loop with linear states runs over blocks of its iterations."""

from __future__ import annotations

from collections.abc import Sequence

from passes.bodies.may_leave import check_dropped
from passes.bodies.time_body import TimeBody
from passes.ir.operators import called_key, op_of, plain_domain
from passes.ir.versions import ZERO_IS_A_SIZE
from passes.rule import SCANS, Edit, NothingToDo, Refused, Site, register
from passes.rules.recurrences.block_body import BlockBody
from passes.rules.recurrences.block_length import block_length
from passes.rules.recurrences.block_loop import BlockLoop
from passes.rules.recurrences.forms import ElementForm
from passes.rules.recurrences.index_notation import NotLinear
from passes.rules.recurrences.plan import Stage, has_linear_matrix, stages
from passes.types.value_types import FLOATS, dims_of, elem_type_of, is_static


@register("run-in-blocks", considers=SCANS, optional=True)
def run_in_blocks(site: Site) -> Edit:
    """Run a Scan whose states are linear in themselves over blocks of iterations.

    Before, gated linear attention:

        S, ys = Scan <num_scan_inputs = 4, body = step (S_in, q, k, v, a) => (S_out, y) {
            kept = Mul (a, S_in)
            kv = MatMul (k, v)
            S_out = Add (kept, kv)
            y = MatMul (q, S_out)
        }> (S0, qs, ks, vs, as)

    After, where L has the decays between the iterations of a block:

        S, ys = Scan <num_scan_inputs = 4, body = block (S_in, Q, K, V, A) => (S_out, Y) {
            Y = ((Q Kt) * L) V + (Q * from_start) S_in
            S_out = whole * S_in + (K * to_end)t V
        }> (S0, blocks of qs, ks, vs, as)

    A state is decayed by factors, as a whole or each row by its own; it is added products of a
    row and a column; and it may be corrected by what a row reads of it (delta rule). No factor may
    depend on a state. All that is read of it are sums along one axis. An If in the block runs the
    iterations one by one where a number is NaN or infinite, or a decay is too strong for the
    products. What is left after the last whole block runs one by one, too.

    Sums of floats are regrouped, which `optimize` for onnxruntime allows without `--keep-order`,
    and for other targets with `--allow-reassociation`. They are not where the elements of a state
    have decays of their own, and products alone read it (Mamba): its axes are turned, and its
    steps written out, in the order of the loop.

    Refuses:
    - `opset-too-old`: the opset is below 13, or below 14 and a size is unknown
    - `not-linear`: a state is not linear in itself, or is read in another way
    - `function`: what a function of the model computes in a step is not looked at
    - `reassociation`: the sums are of floats
    - `not-worth-it`: the states are small, or the loop runs only a few iterations, or may
    - `no-rule`: an op of the body has no vectorization rule, or is random, or unused and may fail
    """
    body = TimeBody.of(site)
    try:
        found = stages(body)
    except NotLinear:
        foreign = [node for node in body.nodes if plain_domain(node.domain)]
        calls = [node for node in foreign if called_key(node) in body.functions]
        if calls and body.form.carried:
            sentence = "its steps call functions, which `convert --inline all` writes out"
            raise site.refused("function", sentence, op_of(calls[0])) from None
        if foreign and body.form.carried:
            op = op_of(foreign[0])
            sentence = f"{op} belongs to another domain: whether a state is linear is unknown"
            raise site.refused("no-rule", sentence, op) from None
        if not has_linear_matrix(body):
            raise NothingToDo from None
        sentence = "a state is not linear in itself, or its factors depend on a state"
        raise site.refused("not-linear", sentence) from None
    length = block_length(body, found)
    if site.target < ZERO_IS_A_SIZE and not _is_static(body):
        sentence = "before opset 14 no shape that may have a size of 0 can be computed"
        raise site.refused("opset-too-old", sentence, opset=ZERO_IS_A_SIZE)
    rounds = _rounds(body)
    regroups = rounds and _regroups(found)
    if regroups and not site.options.allow_reassociation:
        raise site.refused(
            "reassociation",
            "its linear states can be computed for blocks of iterations, which regroups sums of "
            "floats",
        )
    try:
        check_dropped(body, sorted(body.unread))
        return BlockLoop(BlockBody(body, found, length), not rounds, regroups).edit()
    except NotLinear:
        sentence = "the axes of a state do not fit its factors"
        raise site.refused("not-linear", sentence) from None
    except Refused as reason:
        raise Refused("no-rule", reason.sentence, reason.culprits) from None


def _is_static(body: TimeBody) -> bool:
    """Return whether the sizes of all that is scanned and collected are known, but for the time."""
    form = body.form
    names = [one.body_input for one in form.scanned]
    names += [one.body_output for one in form.collected]
    shapes = [dims_of(body.rows.types.get(name)) for name in names]
    return all(map(is_static, shapes))


def _rounds(body: TimeBody) -> bool:
    """Return whether sums of states may round."""
    types = (body.rows.types[carried.body_input] for carried in body.form.carried)
    return not FLOATS.isdisjoint(map(elem_type_of, types))


def _regroups(found: Sequence[Stage]) -> bool:
    """Return whether sums are regrouped whose order an operator specifies: in steps that are
    written out, only those are that a ReduceSum adds up, for products add in any order."""
    for stage in found:
        if not all(isinstance(form, ElementForm) and form.matrix for form in stage.forms):
            return True
        nodes = stage.finder.body.nodes
        if any(
            op_of(node) == "ReduceSum" and not stage.finder.dependent.isdisjoint(node.input)
            for node in nodes
        ):
            return True
    return False
