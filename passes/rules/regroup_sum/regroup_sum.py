"""The rule `regroup-sum`: what a sum adds that no iteration carries is added up first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial, reduce

from onnx import NodeProto, TensorProto, TypeProto

from passes.ir import scope as scoping
from passes.ir.operators import op_of
from passes.ir.repeated import replace_all
from passes.loops.form import LoopForm
from passes.rule import Edit, NothingToDo, Refused, Site, register
from passes.rules.dissolve_map.recurrences import FLOATS
from passes.rules.regroup_sum.sum_terms import Sum, Sums, is_sum
from passes.types.value_types import dims_of, elem_type_of
from passes.vectorize.axes import attribute
from passes.writing.author import Author


def considers(node: NodeProto, opset: int, target: int) -> bool:
    """Whether a node is a loop with a sum in its body."""
    if op_of(node) not in ("Scan", "Loop"):
        return False
    bodies = (body for _, body in scoping.subgraphs(node))
    return any(is_sum(one) for body in bodies for one in body.node)


@register("regroup-sum", considers=considers, optional=True)
def regroup_sum(site: Site) -> Edit:
    """Add up first what a sum in a loop adds that does not depend on a carried value.

    Before, in the body of a loop that carries h and scans x:

        b = MatMul (h, R)
        c = Add (x, b)
        d = Add (c, bias)

    After:

        b = MatMul (h, R)
        early = Add (x, bias)
        d = Add (b, early)

    so that `batch-inputs` and `hoist-invariants` can move the first sum out of the loop. What a
    plain Gemm adds to its product counts as a term, too.

    A sum of floats may differ in rounding then. It is regrouped where the terms that depend on a
    carried value are products (MatMul, Gemm, Conv), for in which order the sum that a product is
    adds up is nowhere said, and onnxruntime starts it with what is added behind; other sums of
    floats only with `--allow-reassociation`. Whole numbers are always the same.

    Refuses:
    - `reassociation`: the sums are of floats, and a term that depends on a carried value is no
      product
    """
    node = NodeProto()
    node.CopyFrom(site.node)
    kinds = _Kinds(site, LoopForm.from_node(node, site.opset))
    allowed = site.options.allow_reassociation
    sums = Sums(kinds.form, lambda name: allowed or not kinds.rounds(name))
    found = [one for one in sums.found() if len(one.early) > 1]
    if not found:
        raise kinds.refusal()
    author = Author(site.target, site.names, kinds.form.body.name or "body")
    _rewrite(sums, found, author)
    return Edit(
        (node,),
        note=f"{len(found)} sum{'s' * (len(found) != 1)} regrouped",
        exact=not any(kinds.rounds(sums.nodes[one.root].output[0]) for one in found),
        reduction=max(kinds.terms(sums, one) for one in found),
        tidies=True,
    )


def _rewrite(sums: Sums, found: Sequence[Sum], author: Author) -> None:
    """Write sums of a body anew, in place; what they replace goes."""
    at_root = {one.root: _written(sums, one, author.inside(author.prefix)) for one in found}
    gone = {at for one in found for at in one.nodes}
    nodes: list[NodeProto] = []
    for at, node in enumerate(sums.nodes):
        nodes += at_root.get(at, [] if at in gone else [node])
    replace_all(sums.form.body.node, nodes)


def _written(sums: Sums, one: Sum, author: Author) -> list[NodeProto]:
    """The nodes that add up the early terms, and then the late ones."""
    products = [_product(sums, name, author) if name in one.gemms else name for name in one.late]
    early = reduce(partial(author.op, "Add"), one.early)
    first, *others = products
    *inner, last = (early, *others)
    so_far = reduce(partial(author.op, "Add"), inner, first)
    root = sums.nodes[one.root]
    author.op("Add", so_far, last, outputs=list(root.output), name=root.name)
    return author.nodes


def _product(sums: Sums, name: str, author: Author) -> str:
    """What a plain Gemm gives without its addend."""
    node = sums.maker(name)
    assert node is not None
    left, right = node.input[:2]
    if attribute(node, "transB", 0):
        right = author.op("Transpose", right, perm=[1, 0])
    return author.op("MatMul", left, right)


@dataclass(frozen=True)
class _Kinds:
    """What is known of the types in a body."""

    site: Site
    form: LoopForm

    def rounds(self, name: str) -> bool:
        """Whether sums of the type of a value may round."""
        elem_type = elem_type_of(self._type(name))
        return elem_type in FLOATS or elem_type == TensorProto.UNDEFINED

    def terms(self, sums: Sums, one: Sum) -> int:
        """How many numbers an element of a sum is the sum of, as far as that is known."""
        made = [node for name in one.late if (node := sums.maker(name)) is not None]
        return len(one.early) + sum(map(self._summed, made))

    def _summed(self, product: NodeProto) -> int:
        weight = dims_of(self._type(product.input[1])) if len(product.input) > 1 else None
        sizes = (weight or ())[1:] if op_of(product) == "Conv" else (weight or ())[-2:-1]
        return math.prod(size for size in sizes if isinstance(size, int))

    def refusal(self) -> Refused | NothingToDo:
        """Why nothing is regrouped."""
        sums = Sums(self.form, lambda name: True)
        found = [one for one in sums.found() if len(one.early) > 1]
        if not found:
            return NothingToDo()
        name = sums.nodes[found[0].root].output[0]
        return Refused(
            "reassociation",
            f"{name!r} adds up floats, some of them not products, and regrouped they may differ in "
            "rounding; --allow-reassociation allows that",
            [self.site.path, name],
        )

    def _type(self, name: str) -> TypeProto | None:
        return self.site.body_type_of("body", name) or self.site.type_of(name)
