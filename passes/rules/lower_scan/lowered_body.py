"""The body of the Loop that a Scan becomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, TypeProto, ValueInfoProto, helper

from passes.analysis.bodies import body_facts
from passes.ir import scope as scoping
from passes.ir.protos import copied
from passes.loops.form import LoopForm, Scanned
from passes.operators.table import traits_of
from passes.rule import Site
from passes.types.value_types import dims_of, elem_type_of, tensor_type
from passes.writing import guards, spelling
from passes.writing.author import Author


@dataclass(frozen=True)
class LoweredBody:
    """The body of the Loop: the Scan's, with its scanned elements read by the iteration."""

    site: Site
    form: LoopForm
    author: Author
    body: GraphProto
    needs_company: bool
    """True if a dummy value is to be carried, which Loop-1 requires."""

    def graph(self, last: str) -> GraphProto:
        """Write it; `last` is the last iteration number where some input is reversed."""
        form, site = self.form, self.site
        inner = self.author.inside(f"{self.author.prefix}/step")
        iteration, go = inner.fresh("iteration"), inner.fresh("go")
        names = scoping.input_names(self.body)
        count = len(form.carried)
        backwards = inner.op("Sub", last, iteration) if last else ""
        for scanned, name in zip(form.scanned, names[count:], strict=False):
            _read(inner, scanned, backwards if scanned.reversed else iteration, name, site)
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
        graph = inner.graph(self.body.name, inputs, outputs)
        graph.doc_string = self.body.doc_string
        graph.metadata_props.extend(self.body.metadata_props)
        graph.sparse_initializer.extend(self.body.sparse_initializer)
        graph.quantization_annotation.extend(self.body.quantization_annotation)
        listed = {value.name for value in graph.output}
        graph.value_info.extend(value for value in self.body.value_info if value.name not in listed)
        return graph

    def _outputs(self, inner: Author, go: str, states: Sequence[str]) -> list[ValueInfoProto]:
        """The condition, then the outputs of the Scan's body, each computed by a node of its
        own."""
        site, form = self.site, self.form
        condition = inner.op("Identity", go)
        outputs = [helper.make_value_info(condition, tensor_type(TensorProto.BOOL, ()))]
        producers = {name: node for node in self.body.node for name in node.output}
        stable = body_facts.keeps_shape(site, form, symbols=False)
        listed: set[str] = set()
        for position, value in enumerate(self.body.output):
            result = copied(value)
            known = site.body_type_of("body", form.body_outputs[position])
            collects = position >= len(form.carried)
            if known is not None and _is_more_precise(known, result.type, sizes=collects):
                result.type.CopyFrom(known)
            if position < len(form.carried) and not self._is_stable(stable, position):
                carried = form.carried[position]
                result.name = guards.kept_state(inner, site, carried, value.name, states[position])
            elif self._empties(position, result, producers, listed):
                true = inner.value(np.array(True), "true")
                result.name = inner.op("Where", true, value.name, value.name)
            elif value.name not in producers or value.name in listed:
                result.name = inner.op("Identity", value.name)
            listed.add(result.name)
            outputs.append(result)
        return outputs

    def _empties(
        self,
        position: int,
        value: ValueInfoProto,
        producers: dict[str, NodeProto],
        listed: set[str],
    ) -> bool:
        """Return whether onnxruntime would empty more than what the Loop collects: it moves strings
        out, which empties every value that shares their memory."""
        if position < len(self.form.carried) or elem_type_of(value.type) != TensorProto.STRING:
            return False
        producer = producers.get(value.name)
        return producer is None or traits_of(producer).hands_on or value.name in listed

    def _is_stable(self, stable: dict[str, bool], position: int) -> bool:
        name = self.form.carried[position].body_input
        return self.site.assumes("valid-inputs") or stable[name]


def _is_more_precise(known: TypeProto, declared: TypeProto, *, sizes: bool) -> bool:
    """Return whether a known type has a rank where the declared one has none, or (`sizes`) a
    size."""
    dims, declared_dims = dims_of(known), dims_of(declared)
    if dims is None or declared_dims is None:
        return declared_dims is None
    pairs = zip(dims, declared_dims, strict=False)
    return sizes and any(isinstance(a, int) and not isinstance(b, int) for a, b in pairs)


def _read(inner: Author, scanned: Scanned, index: str, name: str, site: Site) -> None:
    """Read the element of a scanned tensor for this iteration, under its name in the body."""
    elem_type = elem_type_of(site.type_of(scanned.tensor))
    if not elem_type:
        what = f"the type of the scanned {scanned.tensor!r} is neither declared nor inferred"
        raise site.refused("unknown-type", what, scanned.tensor)
    if elem_type != TensorProto.STRING:
        inner.op("Gather", scanned.tensor, index, outputs=[name], axis=scanned.axis)
        return
    # onnxruntime's Gather copies only the first string of a row.
    dims = dims_of(site.type_of(scanned.tensor))
    if dims is None:
        raise site.refused(
            "unknown-rank",
            f"the rank of the scanned strings {scanned.tensor!r} is neither declared nor inferred",
            scanned.tensor,
        )
    axis = scanned.axis % len(dims)
    rows = spelling.axis_moved(inner, scanned.tensor, axis, 0, len(dims))
    inner.name_as(spelling.row(inner, rows, index, elem_type), name)
