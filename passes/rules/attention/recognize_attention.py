"""The rule `recognize-attention`: a linear recurrence becomes onnxruntime's LinearAttention."""

from __future__ import annotations

from dataclasses import replace

from onnx import NodeProto, TensorProto, ValueInfoProto

from passes.bodies.time_body import TimeBody
from passes.ir.operators import is_scan_9, op_of
from passes.ir.places import CONTRIB
from passes.rule import Edit, NothingToDo, Refused, Site, register
from passes.rules.attention.attention_form import check_floats
from passes.rules.attention.kernel_form import KernelForm
from passes.rules.attention.kernel_loop import KernelLoop
from passes.rules.recurrences.forms import MatrixForm
from passes.rules.recurrences.index_notation import NotLinear
from passes.rules.recurrences.plan import Stage, stages
from passes.types.value_types import elem_type_of

#: The kernel is quick for keys and values of a multiple of so many elements.
_KEYS, _VALUES = 16, 32
#: Without corrections, blocks are quicker from more on.
_WIDEST = 96


def considers(node: NodeProto, opset: int, target: int) -> bool:
    """Return whether a node is a Scan of version 9 or later, or ONNX's LinearAttention."""
    return op_of(node) == "LinearAttention" or is_scan_9(node, opset)


@register("recognize-attention", considers=considers, optional=True)
def recognize_attention(site: Site) -> Edit:
    """Run linear attention by onnxruntime's kernel, `com.microsoft.LinearAttention`.

    Before:

        S, ys = Scan <num_scan_inputs = 4, body = step (S_in, q, k, v, g) => (S_out, y) {
            kept = Mul (Exp (g), S_in)
            S_out = Add (kept, MatMul (k, v))
            y = MatMul (q, S_out)
        }> (S0, qs, ks, vs, gs)

    After:

        ys, S = com.microsoft.LinearAttention <update_rule = "gated"> (qs, ks, vs, S0, gs)

    ONNX's own LinearAttention, for which onnxruntime has no kernel on the CPU, becomes it, too. No
    other runtime has the operator: `--contrib` allows it. A Scan is recognised as `run-in-blocks`
    does, where its state is read after the update and updated by one key: linear, with decays, or
    by the delta rule; else it stays for that rule. Sums of floats are regrouped, which needs
    `--allow-reassociation`. The kernel is sequential: NaN and infinity reach no earlier position.

    Refuses:
    - `contrib`: `--contrib` does not allow the operator
    - `function`: it is in a function, which does not import the domain
    - `negative`: a decay may be negative, and the kernel takes its log
    - `no-rule`: an op of the body has no vectorization rule
    - `not-float`: it is not of float, for which alone onnxruntime has a kernel
    - `not-worth-it`: the kernel is slow for these sizes
    - `opset-too-old`: the opset is below 13, which the vectorization rules do not support
    - `reassociation`: the sums are of floats
    """
    options, is_loop = site.options, op_of(site.node) == "Scan"
    if is_loop and not (options.contrib or options.allow_reassociation):
        raise NothingToDo
    edit = _of_loop(site) if is_loop else _of_operator(site)
    if site.in_function:
        raise site.refused("function", f"its function does not import {CONTRIB}")
    if not options.contrib:
        sentence = f"onnxruntime has a kernel for it in {CONTRIB}, which --contrib allows"
        raise site.refused("contrib", sentence)
    if is_loop and not options.allow_reassociation:
        sentence = "the kernel regroups sums of floats"
        raise site.refused("reassociation", sentence)
    return edit


def _of_operator(site: Site) -> Edit:
    check_floats(site)
    node = NodeProto()
    node.CopyFrom(site.node)
    node.domain = CONTRIB
    known = [(name, site.type_of(name)) for name in node.output if name]
    types = [ValueInfoProto(name=name, type=one) for name, one in known if one is not None]
    return Edit((node,), value_info=tuple(types), note=f"of {CONTRIB}", exact=False)


def _of_loop(site: Site) -> Edit:
    body = TimeBody.of(site)
    try:
        found = stages(body)
        kernels = tuple(_kernels(stage) for stage in found)
    except NotLinear:
        raise NothingToDo from None
    for kernel in (kernel for stage in kernels for kernel in stage):
        _check_size(site, body, kernel)
    try:
        return replace(KernelLoop(body, kernels).edit(), regroups=True)
    except NotLinear:
        raise NothingToDo from None
    except Refused as reason:
        code = reason.code if reason.code == "negative" else "no-rule"
        raise Refused(code, reason.sentence, reason.culprits) from None


def _kernels(stage: Stage) -> tuple[KernelForm, ...]:
    """The states of a stage.

    Raises:
        NotLinear: one is no matrix that the kernel supports.
    """
    if not all(isinstance(form, MatrixForm) for form in stage.forms):
        raise NotLinear
    forms = [form for form in stage.forms if isinstance(form, MatrixForm)]
    return tuple(KernelForm.of(form, stage.finder.notation) for form in forms)


def _check_size(site: Site, body: TimeBody, kernel: KernelForm) -> None:
    if elem_type_of(body.rows.types[kernel.form.state.carried.body_input]) != TensorProto.FLOAT:
        raise site.refused("not-float", "its state is not of float")
    slow = kernel.rows % _KEYS or kernel.columns % _VALUES
    if slow or (kernel.beta is None and max(kernel.rows, kernel.columns) > _WIDEST):
        sentence = f"the kernel is slow for keys of {kernel.rows} and values of {kernel.columns}"
        raise site.refused("not-worth-it", sentence)
