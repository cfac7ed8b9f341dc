"""The rule `run-in-blocks`: a loop with linear states runs over blocks of its iterations."""

from __future__ import annotations

from onnx import NodeProto

from passes.ir.operators import op_of
from passes.rule import Edit, NothingToDo, Refused, Site, register
from passes.rules.recurrences.block_body import BlockBody
from passes.rules.recurrences.block_length import block_length
from passes.rules.recurrences.block_loop import BlockLoop
from passes.rules.recurrences.index_notation import NotLinear
from passes.rules.recurrences.plan import has_linear_state, stages
from passes.rules.time_axis.time_body import TimeBody


def considers(node: NodeProto, opset: int, target: int) -> bool:
    """Whether a node is a Scan of version 9 or later."""
    return op_of(node) == "Scan" and opset >= 9


@register("run-in-blocks", considers=considers, optional=True)
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

    Sums of floats are regrouped, which needs `--allow-reassociation`.

    Refuses:
    - `opset-too-old`: the opset is below 13, which the vectorization rules do not support
    - `not-linear`: a state is not linear in itself, or is read in another way
    - `reassociation`: the sums are of floats
    - `not-worth-it`: the states are small, or the loop runs only a few iterations
    - `no-rule`: an op of the body has no vectorization rule
    """
    body = TimeBody.of(site)
    try:
        found = stages(body)
    except NotLinear:
        if not has_linear_state(body):
            raise NothingToDo from None
        sentence = "a state is not linear in itself, or its factors depend on a state"
        raise Refused("not-linear", sentence, [site.path]) from None
    length = block_length(body, found)
    if not site.options.allow_reassociation:
        raise Refused(
            "reassociation",
            "its linear states can be computed for blocks of iterations, which regroups sums of "
            "floats; --allow-reassociation allows that",
            [site.path],
        )
    try:
        return BlockLoop(BlockBody(body, found, length)).edit()
    except NotLinear:
        sentence = "the axes of a state do not fit its factors"
        raise Refused("not-linear", sentence, [site.path]) from None
    except Refused as reason:
        if reason.code not in ("unknown-rank", "unknown-type", "no-batching-rule"):
            raise
        raise Refused("no-rule", reason.sentence, reason.culprits) from None
