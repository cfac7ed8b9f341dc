"""The rule `run-in-blocks`: a loop with linear states runs over blocks of its iterations."""

from __future__ import annotations

from onnx import NodeProto

from passes.ir.operators import op_of
from passes.loops.form import Kind
from passes.rule import Edit, NothingToDo, Refused, Site, register
from passes.rules.recurrences.block_body import BlockBody
from passes.rules.recurrences.block_loop import BlockLoop
from passes.rules.recurrences.index_notation import NotLinear
from passes.rules.recurrences.linear_states import Read, StateFinder
from passes.rules.recurrences.matrix_form import MatrixForm
from passes.rules.time_axis.time_body import TimeBody
from passes.types.value_types import dims_of

#: Iterations in a block, and where a product corrects the state.
_LENGTH, _LENGTH_CORRECTED = 32, 32
#: A loop of fewer iterations, and a state of fewer elements on an axis, gain nothing.
_FEWEST, _NARROWEST = 16, 8


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
    finder = StateFinder.of(body, [carried.body_input for carried in body.form.carried])
    if not any(map(finder.is_linear, body.form.carried)):
        raise NothingToDo
    try:
        forms = _forms(body, finder)
    except NotLinear:
        raise _refusal(
            site, "not-linear", "a state is not linear, or not read along one axis"
        ) from None
    length = _length(body, forms)
    if not site.options.allow_reassociation:
        raise _refusal(
            site,
            "reassociation",
            "its linear states can be computed for blocks of iterations, which regroups sums of "
            "floats; --allow-reassociation allows that",
        )
    try:
        return BlockLoop(BlockBody(body, finder, forms, length)).edit()
    except NotLinear:
        raise _refusal(site, "not-linear", "the axes of a state do not fit its factors") from None
    except Refused as reason:
        if reason.code not in ("unknown-rank", "unknown-type", "no-batching-rule"):
            raise
        raise Refused("no-rule", reason.sentence, reason.culprits) from None


def _forms(body: TimeBody, finder: StateFinder) -> tuple[MatrixForm, ...]:
    """The states as matrices, with what is read of each.

    Raises:
        NotLinear: one is none, or a value is needed that has a whole state in it.
    """
    form = body.form
    if form.kind is not Kind.SCAN or not form.carried or not form.scanned:
        raise NotLinear
    states = [finder.state(carried) for carried in form.carried]
    found, whole = dict[str, tuple[int, Read]](), set[str]()
    for number, state in enumerate(states):
        reads, own = finder.reads(state)
        whole |= own
        found |= {name: (number, read) for name, read in reads.items()}
    used = dict[str, None]()
    pending = [collected.body_output for collected in form.collected if collected.tensor]
    while pending:
        name = pending.pop()
        if name in found:
            used[name] = None
        elif name in whole:
            raise NotLinear
        elif name in finder.dependent:
            node = body.index.producers.get(name)
            pending += [] if node is None else node.input
    return tuple(
        MatrixForm.of(
            finder.notation, state, [found[name][1] for name in used if found[name][0] == number]
        )
        for number, state in enumerate(states)
    )


def _length(body: TimeBody, forms: tuple[MatrixForm, ...]) -> int:
    """Iterations in a block: near the best, and such that none are left, if that is possible.

    Raises:
        Refused: `not-worth-it`.
    """
    sizes = []
    for form in forms:
        dims = dims_of(body.rows.types[form.state.carried.body_input]) or ()
        size = dict(zip(form.state.at, dims, strict=True))
        sizes.append(min(_wide(size[form.along]), _wide(size[form.columns]) if form.columns else 1))
    trips = body.trips
    if max(sizes) < _NARROWEST or (trips is not None and trips < _FEWEST):
        raise _refusal(
            body.site, "not-worth-it", "its states are small, or it runs only few iterations"
        )
    best = _LENGTH_CORRECTED if any(form.correction for form in forms) else _LENGTH
    if trips is None:
        return best
    near = [length for length in range(best // 2, 2 * best + 1) if trips % length == 0]
    return min(near, key=lambda length: abs(length - best), default=min(best, trips))


def _wide(dim: int | str | None) -> int:
    return dim if isinstance(dim, int) else _NARROWEST


def _refusal(site: Site, code: str, sentence: str) -> Refused:
    return Refused(code, sentence, [site.path])
