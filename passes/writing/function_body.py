"""A function body in the place of the node that calls it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from onnx import AttributeProto, FunctionProto, GraphProto, NodeProto, ValueInfoProto

from passes.ir import scope as scoping
from passes.ir.operators import is_onnx_domain
from passes.ir.protos import copied, named, replace_all
from passes.types.value_types import shapes_below


def _none(_: NodeProto) -> str:
    return ""


@dataclass(frozen=True)
class FunctionBody:
    """Return the nodes that compute `call`, whose operator is `function`.

    `fresh` gives names that occur nowhere yet; `defaults` are the attributes that the call may
    leave out. `fixed` may answer for a Constant node with the name of a value that holds the same:
    then the node is left out. Nodes of the standard domain get its spelling in `domain`.
    """

    call: NodeProto
    function: FunctionProto
    fresh: Callable[[str], str]
    defaults: Mapping[str, AttributeProto]
    fixed: Callable[[NodeProto], str] = _none
    domain: str = ""
    #: What the names of the function mean where the call stands; empty for what it leaves out.
    names: dict[str, str] = field(init=False, default_factory=dict)

    def nodes(self) -> list[NodeProto]:
        """The nodes, which define the outputs of the call; to be asked once.

        An attribute that neither the call nor a default gives is left out.
        """
        taken, given = self.function.input, dict[str, str]()
        self.names.update(dict.fromkeys(taken, ""))
        self.names.update(zip(taken, self.call.input, strict=False))
        for name, wanted in zip(self.function.output, self.call.output, strict=False):
            if wanted:
                given[name] = wanted
        passed_on = [
            NodeProto(
                op_type="Identity",
                domain=self.domain,
                input=[self.names[name]],
                output=[given.pop(name)],
            )
            for name in taken
            if name in given
        ]
        return [*self._written(self.function.node, self.names, given), *passed_on]

    def value_info(self) -> Iterator[ValueInfoProto]:
        """Yield the function's declarations of the values that it makes, under their new names."""
        for value in self.function.value_info:
            if value.name in self.names and value.name not in self.function.input:
                yield self._declared(value, self.names[value.name])

    def _written(
        self, nodes: Iterable[NodeProto], names: dict[str, str], given: Mapping[str, str]
    ) -> list[NodeProto]:
        """Return the nodes of one graph; `names` maps outer names to new ones, `given` results to
        their names."""
        found = []
        for node in nodes:
            copy = copied(node)
            copy.domain = self.domain if is_onnx_domain(node.domain) else node.domain
            copy.input[:] = [names.get(name, name) for name in node.input]
            self._write_attributes(node, copy, names)
            fixed = "" if given.keys() & node.output else self.fixed(copy)
            if fixed:
                names[node.output[0]] = fixed
                continue
            for name in filter(None, node.output):
                names[name] = given.get(name) or self._fresh(name)
            copy.output[:] = [names[name] if name else "" for name in node.output]
            if node.name:
                copy.name = "/".join(filter(None, (self.call.name, node.name)))
            found.append(copy)
        return found

    def _write_attributes(self, node: NodeProto, copy: NodeProto, names: dict[str, str]) -> None:
        written = []
        for attribute in node.attribute:
            found = AttributeProto()
            if not attribute.ref_attr_name:
                found.CopyFrom(attribute)
                for graph in _graphs(found):
                    self._rename(graph, names)
            elif attribute.ref_attr_name in self._values:
                found.CopyFrom(self._values[attribute.ref_attr_name])
                found.name = attribute.name
                for graph in _graphs(found):  # it sees what the caller sees
                    scoping.rename_all(graph, self._fresh)
            else:
                continue
            written.append(found)
        replace_all(copy.attribute, written)

    def _rename(self, graph: GraphProto, around: Mapping[str, str]) -> None:
        """Rename a body, in place."""
        names = dict(around)
        own = [*scoping.input_names(graph), *sorted(scoping.initializer_names(graph))]
        names.update({name: self._fresh(name) for name in dict.fromkeys(own)})
        replace_all(graph.node, self._written(list(graph.node), names, {}))
        for tensor in graph.initializer:
            tensor.name = names[tensor.name]
        for sparse in graph.sparse_initializer:
            sparse.values.name = names[sparse.values.name]
        for values in (graph.input, graph.output, graph.value_info):
            for value in values:
                value.CopyFrom(self._declared(value, names.get(value.name, value.name)))
        annotations = [
            scoping.renamed_annotation(one, names) for one in graph.quantization_annotation
        ]
        replace_all(graph.quantization_annotation, annotations)

    def _declared(self, value: ValueInfoProto, name: str) -> ValueInfoProto:
        """Return a declaration under another name: a symbol means one size in each call."""
        copy = named(value, name)
        for dim in (dim for shape in shapes_below(copy.type) for dim in shape.dim):
            if dim.dim_param:
                dim.dim_param = f"{self._stem}/{dim.dim_param}"
        return copy

    @cached_property
    def _values(self) -> Mapping[str, AttributeProto]:
        return {**self.defaults, **{one.name: one for one in self.call.attribute}}

    def _fresh(self, name: str) -> str:
        return self.fresh(f"{self._stem}/{name}")

    @property
    def _stem(self) -> str:
        return next(filter(None, self.call.output), self.function.name)


def _graphs(attribute: AttributeProto) -> Sequence[GraphProto]:
    if attribute.type == AttributeProto.GRAPH:
        return [attribute.g]
    return list(attribute.graphs)
