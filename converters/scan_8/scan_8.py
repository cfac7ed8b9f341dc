"""The rule `scan-8`: Scan-8, with its batch axis and sequence_lens, becomes Scan-9 or later."""

from __future__ import annotations

from onnx import NodeProto

from passes.ir.model import Model
from passes.ir.operators import op_of
from passes.ir.versions import SCAN_HAS_AXES
from passes.rule import Considers, Edit, Site, register


def considers(node: NodeProto, opset: int, target: int) -> bool:
    """Return whether a node is a Scan in the form of version 8 that must leave it."""
    return op_of(node) == "Scan" and opset < SCAN_HAS_AXES <= target


def closer(model: Model, target: int) -> Considers | None:
    """Considers nothing in a model without a Scan."""
    return considers if any("Scan" in counted for _, counted in model.operators) else None


@register("scan-8", considers=considers, closer=closer, converts=True)
def upgrade_scan_8(site: Site) -> Edit:
    """Upgrade a Scan-8, batch and sequence_lens included, to the Scan of the target opset.

    Before:

        y, z = Scan <num_scan_inputs = 1, body> (lens, h0, x)

    After (`vectorize`, from opset 13 on: the body handles the whole batch at once):

        y, z = Scan <num_scan_inputs = 1, scan_input_axes = [1], scan_output_axes = [1],
                     body = batch> (h0, x)

    With `--batch mask`, which the target without control flow chooses, rows of other lengths take
    all steps, too: masks keep their states and write zeros after their lengths.

    After (`nest`, for every body; `unroll` writes the rows of a static batch out):

        y, z = Scan <num_scan_inputs = 3, body = row (float[H] h0_b, float[T, I] x_b, int64 len) {
            x_valid = Slice(x_b, 0, len)
            y_b, z_valid = Scan <num_scan_inputs = 1, body> (h0_b, x_valid)
            z_b = Concat(z_valid, zeros)
        }> (h0, x, lens)

    Each row runs exactly as many iterations as its length, on the values that the original
    saw; positions after the length are zero. Lengths outside 0..T fail, as in the original, and
    so do sizes that disagree, unless the model's inputs declare them with one symbol; `--assume
    valid-inputs` leaves these guards out. If there is nothing to run, the Scan does nothing, as
    the Scan-8 did; onnxruntime fails on it then, as on most such Scan-8: `--robust` writes an If
    around it.

    Refuses:
    - `unknown-type`: the element type of a state or collected value is not declared or inferred
    - `unknown-rank`: the rank of a state or collected value is not declared or inferred
    - `attribute-reference`: callers of the function choose how many tensors it scans, or how
    - `opset-too-old`: `--batch vectorize` was asked for, but the target opset is below 13
    - `no-batching-rule`: `--batch vectorize`: an op of the body has no rule for a batch
    - `batched-operand`: `--batch vectorize`: a shape or size in the body differs from row to row
    - `random`: `--batch vectorize`: an op of the body draws other numbers for each row
    - `not-speculatable`: `--batch vectorize`: a branch or loop in the body may fail on other rows;
      `--batch mask`: the body may fail where a row of length 0 runs
    - `ragged-rows`: `--batch vectorize`: branches or loops in the body give rows of other shapes
    - `collected-while`: `--batch vectorize`: a loop in the body collects another count per row
    - `batch-not-static`: `--batch unroll` was asked for, but the batch size is unknown, or 0
    - `batch-too-large`: `--batch unroll` was asked for a batch of more than 64 rows
    """
    from passes.converters.scan_8.strategies import upgraded  # most models hold no Scan-8

    return upgraded(site)
