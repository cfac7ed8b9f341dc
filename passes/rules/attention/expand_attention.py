"""The rule `expand-attention`: what only a few runtimes have becomes a loop of plain operators."""

from __future__ import annotations

from passes.ir.operators import called_key, function_key, op_of
from passes.ir.versions import SLICE_HAS_INPUTS
from passes.rule import Edit, NothingToDo, Site, nodes_of, register
from passes.rules.attention.attention_form import ATTENTION, CONVOLUTION, AttentionForm
from passes.rules.attention.written_conv import write_convolution
from passes.rules.attention.written_scan import WrittenScan
from passes.writing.author import Author


@register("expand-attention", considers=nodes_of(*ATTENTION, *CONVOLUTION), optional=True)
def expand_attention(site: Site) -> Edit:
    """Write LinearAttention as a Scan, and CausalConvWithState as a Conv.

    Before:

        y, S = com.microsoft.LinearAttention <update_rule = "gated", scale = 1.0> (q, k, v, S0, g)

    After, with heads as an axis of their own:

        ys, S = Scan <num_scan_inputs = 4, body = step (S_in, q_t, k_t, v_t, g_t) => (S_out, y_t) {
            kept = Mul (Exp (g_t), S_in)
            S_out = Add (kept, Mul (k_t, v_t))
            y_t = MatMul (q_t, S_out)
        }> (S0, qs, ks, vs, gs)

    These are operators of onnxruntime, and of ONNX from opset 27 on. A convolution over what may
    be no position is written as a sum of products, for Conv needs one.

    Refuses:
    - `not-float`: it is not of float, for which alone onnxruntime has a kernel
    - `opset-too-old`: the opset is below 10, which has no Slice with inputs
    - `unknown-size`: the size of its heads is unknown
    - `windows`: it returns several states, or has attributes for other kernels
    """
    if called_key(site.node) in map(function_key, site.model.proto.functions):
        raise NothingToDo
    site.need_opset(SLICE_HAS_INPUTS, "has no Slice with inputs")
    author = Author.at(site, "attention")
    if op_of(site.node) in CONVOLUTION:
        write_convolution(site, author)
        note = "Conv"
    else:
        WrittenScan(site, AttentionForm.of(site), author).write()
        note = "Scan"
    return Edit(tuple(author.nodes), tuple(author.constants), note=note, exact=False)
