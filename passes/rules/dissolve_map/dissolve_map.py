"""The rule `dissolve-map`: a loop that carries nothing it needs is replaced by operators."""

from __future__ import annotations

from passes.bodies.time_body import TimeBody
from passes.rule import SCANS, Edit, Refused, Site, register
from passes.rules.dissolve_map.dispatch_on_size import dispatch_on_size
from passes.rules.dissolve_map.dissolving import Dissolving
from passes.rules.dissolve_map.strip_mine import strip_mine


@register("dissolve-map", considers=SCANS, optional=True)
def dissolve_map(site: Site) -> Edit:
    """Replace a Scan by operators over all iterations at once if none needs the previous one.

    Before:

        n, ys = Scan <num_scan_inputs = 1, body = step (int64 n_in, float[I] x_t) => (...) {
            n_out = Add (n_in, one)
            p = MatMul (x_t, W)
            y = Tanh (p)
        }> (n0, x)

    After:

        n = ...
        p = MatMul (x, W)
        ys = Tanh (p)

    What the Scan carries must be something that operators can compute: a value that never changes;
    an integer that grows by a constant step; a value computed without the previous one, of which
    the last is the result; a running sum (CumSum), or a maximum or minimum of which only the last
    value is read (ReduceMax, ReduceMin). Integers wrap around as in the loop, and floats are added
    up in its order. Maxima and minima of floats may differ in the sign of a zero: that needs
    `--allow-reassociation`, which the report mentions. If the Scan may run no iteration,
    the result is the initial value, and an op that could fail then is refused.

    `optimize` for onnxruntime also keeps the Scan, in an If, where that is faster with many rows,
    and their number is known only at run time. A Scan that is kept for that reason, and whose
    length is known, then runs over blocks of several elements, as many as stay in the cache
    and divide the length, if it carries nothing and multiplies no matrices; with still more rows
    it stays as it is.

    Scanned lengths that are not provably equal get a guard; `--assume valid-inputs` leaves it
    out. A Loop is raised to a Scan first.

    Refuses:
    - `opset-too-old`: the opset is below 13, which the vectorization rules do not support
    - `carries`: a carried value is computed from its previous value in another way
    - `reassociation`: a maximum or minimum is of floats
    - `no-kernel`: onnxruntime has no exact operator for such a sequence of this type
    - `running`: every value of a running maximum or minimum is read
    - `shape-unknown`: it is not proven that a carried value keeps its shape
    - `no-rule`: an op of the body has no vectorization rule, or needs one shape for all rows
    - `random`: an op of the body draws random numbers in every iteration
    - `may-be-empty`: the loop may run no iteration, and an op of the body could fail then
    - `may-fail`: an op of the body whose result is unused could fail
    - `not-worth-it`: the values of all iterations do not stay in the cache, which costs more
    - `over-budget`: a value takes more than `--max-bytes` for all iterations
    """
    try:
        body = TimeBody.of(site)
        return _quickest(body) if site.options.dispatch_on_size else Dissolving(body).edit()
    except Refused as reason:
        if reason.code not in _FROM_RULES_OF_OPS:
            raise
        raise Refused("no-rule", reason.sentence, reason.culprits) from None


def _quickest(body: TimeBody) -> Edit:
    """All iterations at once where that is faster, else as many as stay in the cache."""
    try:
        return dispatch_on_size(body, Dissolving(body).edit())
    except Refused as reason:
        blocks = strip_mine(body) if reason.code in ("not-worth-it", "over-budget") else None
        if blocks is None:
            raise
        return blocks


_FROM_RULES_OF_OPS = ("unknown-rank", "unknown-type", "no-batching-rule")
