"""The body that a Scan has as a Loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, TypeProto, ValueInfoProto, helper

from passes.analysis.trip_count import facts
from passes.ir import scope as scoping
from passes.ir.operators import op_of
from passes.loops.form import LoopForm, Scanned
from passes.onnxruntime.own_strings import SHARING
from passes.rule import Refused, Site
from passes.rules.lower_scan.kept_state import kept_state
from passes.types.value_types import dims_of, elem_type_of, tensor_type
from passes.writing import spelling
from passes.writing.author import Author


@dataclass(frozen=True)
class LoweredBody:
    """The body of the Loop: the Scan's, with its scanned elements read by the iteration."""

    site: Site
    form: LoopForm
    author: Author
    body: GraphProto
    needs_company: bool
    """Whether a carried value is made up, since Loop-1 cannot do without."""

    def graph(self, last: str) -> GraphProto:
        """Write it; `last` is the last iteration number where some input is reversed."""
        form, site = self.form, self.site
        inner = self.author.inside(f"{self.author.prefix}/step")
        iteration, go = inner.fresh("iteration"), inner.fresh("go")
        names = scoping.input_names(self.body)
        count = len(form.carried)
        backwards = inner.op("Sub", last, iteration) if last else ""
        for one, name in zip(form.scanned, names[count:], strict=False):
            _read(inner, one, backwards if one.reversed else iteration, name, site)
        inner.adopt(self.body.node, self.body.initializer)
        outputs = self._outputs(inner, go, names[:count])
        inputs = [
            helper.make_value_info(iteration, tensor_type(TensorProto.INT64, ())),
            helper.make_value_info(go, tensor_type(TensorProto.BOOL, ())),
            *self.body.input[:count],
        ]
        if self.needs_company:
            company = helper.make_value_info(
                inner.fresh("company"), tensor_type(TensorProto.INT64, ())
            )
            kept = helper.make_value_info(inner.op("Identity", company.name), company.type)
            inputs.append(company)
            outputs.insert(1, kept)
        made = inner.graph(self.body.name, inputs, outputs)
        made.doc_string = self.body.doc_string
        made.metadata_props.extend(self.body.metadata_props)
        made.sparse_initializer.extend(self.body.sparse_initializer)
        made.quantization_annotation.extend(self.body.quantization_annotation)
        listed = {value.name for value in made.output}
        made.value_info.extend(one for one in self.body.value_info if one.name not in listed)
        return made

    def _outputs(self, inner: Author, go: str, states: Sequence[str]) -> list[ValueInfoProto]:
        """The condition, then what the Scan's body returns, each a node's output of its own."""
        site, form = self.site, self.form
        condition = inner.op("Identity", go)
        outputs = [helper.make_value_info(condition, tensor_type(TensorProto.BOOL, ()))]
        makers = {name: node for node in self.body.node for name in node.output}
        stable = facts.keeps_shape(site, form, symbols=False)
        listed: set[str] = set()
        for position, value in enumerate(self.body.output):
            result = ValueInfoProto()
            result.CopyFrom(value)
            known = site.body_type_of("body", form.body_outputs[position])
            collects = position >= len(form.carried)
            if known is not None and _says_more(known, result.type, sizes=collects):
                result.type.CopyFrom(known)
            if position < len(form.carried) and not self._is_stable(stable, position):
                carried = form.carried[position]
                result.name = kept_state(inner, site, carried, value.name, states[position])
            elif self._empties(position, result, makers, listed):
                true = inner.constant(np.array(True), "true")
                result.name = inner.op("Where", true, value.name, value.name)
            elif value.name not in makers or value.name in listed:
                result.name = inner.op("Identity", value.name)
            listed.add(result.name)
            outputs.append(result)
        return outputs

    def _empties(
        self, position: int, value: ValueInfoProto, makers: dict[str, NodeProto], listed: set[str]
    ) -> bool:
        """Whether onnxruntime would empty more than what the Loop collects: strings are moved out,
        and what shares their memory is empty from then on."""
        if position < len(self.form.carried) or elem_type_of(value.type) != TensorProto.STRING:
            return False
        maker = makers.get(value.name)
        return maker is None or op_of(maker) in SHARING or value.name in listed

    def _is_stable(self, stable: dict[str, bool], position: int) -> bool:
        name = self.form.carried[position].body_input
        return self.site.assumes("valid-inputs") or stable[name]


def _says_more(known: TypeProto, declared: TypeProto, *, sizes: bool) -> bool:
    """Whether a known type has a rank where the declared one has none, or (`sizes`) a size."""
    one, other = dims_of(known), dims_of(declared)
    if one is None or other is None:
        return other is None
    pairs = zip(one, other, strict=False)
    return sizes and any(isinstance(a, int) and not isinstance(b, int) for a, b in pairs)


def _read(inner: Author, one: Scanned, index: str, name: str, site: Site) -> None:
    """The element of a scanned tensor in this iteration, under the name the body knows."""
    elem_type = elem_type_of(site.type_of(one.tensor))
    if not elem_type:
        raise Refused(
            "unknown-type",
            f"the type of the scanned {one.tensor!r} is neither declared nor inferred",
            [site.path, one.tensor],
        )
    if elem_type != TensorProto.STRING:
        inner.op("Gather", one.tensor, index, outputs=[name], axis=one.axis)
        return
    # onnxruntime's Gather copies only the first string of a row.
    dims = dims_of(site.type_of(one.tensor))
    if dims is None:
        raise Refused(
            "unknown-rank",
            f"the rank of the scanned strings {one.tensor!r} is neither declared nor inferred",
            [site.path, one.tensor],
        )
    axis = one.axis % len(dims)
    perm = [axis, *(other for other in range(len(dims)) if other != axis)]
    rows = inner.op("Transpose", one.tensor, perm=perm) if axis else one.tensor
    inner.name_as(spelling.row(inner, rows, index, elem_type), name)
