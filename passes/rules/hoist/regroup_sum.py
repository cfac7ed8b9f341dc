"""The rule `regroup-sum`: the terms of a sum that depend on no carried value are added first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial, reduce

import ml_dtypes
import numpy as np
from onnx import NodeProto, TensorProto, TypeProto

from passes.ir import scope as scoping
from passes.ir.attributes import attribute
from passes.ir.constants import Constants
from passes.ir.draft import BLOCKS, runs_in_blocks
from passes.ir.operators import op_of
from passes.ir.protos import copied, replace_all
from passes.loops.form import LoopForm
from passes.rule import Edit, NothingToDo, Refused, Site, register
from passes.rules.hoist.sum_terms import Sum, Sums, is_sum
from passes.types.value_types import FLOATS, elem_type_of
from passes.writing.author import Author


def considers(node: NodeProto, opset: int, target: int) -> bool:
    """Return whether a node is a loop with a sum in its body, which is not over blocks."""
    if op_of(node) not in ("Scan", "Loop") or runs_in_blocks(node, BLOCKS):
        return False
    return any(map(is_sum, scoping.inner_nodes(node)))


@register("regroup-sum", considers=considers, optional=True)
def regroup_sum(site: Site) -> Edit:
    """Add those terms of a sum in a loop first that do not depend on a carried value.

    Before, in the body of a loop that carries h and scans x:

        b = MatMul (h, R)
        c = Add (x, b)
        d = Add (c, bias)

    After:

        b = MatMul (h, R)
        early = Add (x, bias)
        d = Add (b, early)

    so that `batch-inputs` and `hoist-invariants` can move the first sum out of the loop. The
    addend of a plain Gemm counts as a term, too.

    A sum of floats may then differ in rounding. It is regrouped where the terms that depend on a
    carried value are products (MatMul, Gemm, Conv): the order in which a product is summed up is
    unspecified, and onnxruntime starts it with what is added to it; other sums of
    floats need `--allow-reassociation`, and all terms that are added first but one must be
    constants, so small that no sum with them overflows. Integers are always the same.

    Refuses:
    - `overflow`: terms that are added first may overflow where the sums of the loop do not
    - `reassociation`: the sums are of floats, and a term that depends on a carried value is not a
      product
    """
    node = copied(site.node)
    kinds = _Kinds(site, LoopForm.from_node(node, site.opset))
    plain = Sums(kinds.form, lambda name: not kinds.rounds(name))
    anyway = [one for one in plain.found() if len(one.independent) > 1]
    roots, (sums, regrouped) = {one.root for one in anyway}, (plain, anyway)
    if site.options.allow_reassociation:
        every = Sums(kinds.form, lambda name: True)
        found = [one for one in every.found() if len(one.independent) > 1]
        if all(one.root in roots or not kinds.may_overflow(one) for one in found):
            sums, regrouped = every, found
    if not regrouped:
        raise kinds.refusal()
    author = Author(site.target, site.names, kinds.form.body.name or "body")
    _rewrite(sums, regrouped, author)
    return Edit(
        (node,),
        note=f"{len(regrouped)} sum{'s' * (len(regrouped) != 1)} regrouped",
        exact=not any(kinds.rounds(sums.nodes[sum_.root].output[0]) for sum_ in regrouped),
        regroups=any(one.root not in roots for one in regrouped),
    )


def _rewrite(sums: Sums, regrouped: Sequence[Sum], author: Author) -> None:
    """Rewrite sums of a body, in place."""
    at_root = {sum_.root: _written(sums, sum_, author.inside(author.prefix)) for sum_ in regrouped}
    gone = {position for sum_ in regrouped for position in sum_.nodes}
    nodes: list[NodeProto] = []
    for position, node in enumerate(sums.nodes):
        nodes += at_root.get(position, [] if position in gone else [node])
    replace_all(sums.form.body.node, nodes)


def _written(sums: Sums, sum_: Sum, author: Author) -> list[NodeProto]:
    """The nodes that add the independent terms, and then the dependent ones."""
    products = [
        _product(sums, name, author) if name in sum_.gemms else name for name in sum_.dependent
    ]
    independent = reduce(partial(author.op, "Add"), sum_.independent)
    first, *others = products
    *inner, last = (independent, *others)
    so_far = reduce(partial(author.op, "Add"), inner, first)
    root = sums.nodes[sum_.root]
    author.op("Add", so_far, last, outputs=list(root.output), name=root.name)
    return author.nodes


def _product(sums: Sums, name: str, author: Author) -> str:
    """The product of a plain Gemm, without its addend."""
    node = sums.producer(name)
    assert node is not None
    left, right = node.input[:2]
    if attribute(node, "transB", 0):
        right = author.op("Transpose", right, perm=[1, 0])
    return author.op("MatMul", left, right)


@dataclass(frozen=True)
class _Kinds:
    """The types in a body."""

    site: Site
    form: LoopForm

    def rounds(self, name: str) -> bool:
        """Return whether sums of the type of a value may round."""
        elem_type = elem_type_of(self._type(name))
        return elem_type in FLOATS or elem_type == TensorProto.UNDEFINED

    def may_overflow(self, one: Sum) -> bool:
        """Return whether the sum of the independent terms may be infinite where each is finite:
        not if all but one are constants of less than half a unit in the last place of the largest
        number."""
        constants = Constants(self.site.model, self.site.body_scope("body"))
        values = [constants.value(name) for name in one.independent]
        known = [value for value in values if value is not None]
        if not known or len(values) > len(known) + 1:
            return True
        info = ml_dtypes.finfo(known[0].dtype)
        total = sum(float(np.abs(value.astype(np.float64)).max(initial=0)) for value in known)
        return not total < float(info.max) * 2.0 ** -(info.nmant + 2)

    def refusal(self) -> Refused | NothingToDo:
        """Why nothing is regrouped."""
        sums = Sums(self.form, lambda name: True)
        found = [sum_ for sum_ in sums.found() if len(sum_.independent) > 1]
        if not found:
            return NothingToDo()
        name = sums.nodes[found[0].root].output[0]
        if self.site.options.allow_reassociation:
            sentence = "are no small constants, so their sum may overflow where the loop does not"
            return self.site.refused("overflow", f"several terms of {name!r} {sentence}", name)
        return self.site.refused(
            "reassociation",
            f"{name!r} adds up floats, some of them not products, and regrouping may change their "
            "rounding",
            name,
        )

    def _type(self, name: str) -> TypeProto | None:
        return self.site.body_type_of("body", name) or self.site.type_of(name)
