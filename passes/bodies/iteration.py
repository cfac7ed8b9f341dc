"""One iteration of a loop, written out: the body's nodes under new names, its constants outside."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from onnx import (
    GraphProto,
    NodeProto,
    TensorAnnotation,
    TensorProto,
    ValueInfoProto,
)

from passes.bodies.lifting import Lifting
from passes.ir import scope as scoping
from passes.ir.draft import Draft, Pattern
from passes.ir.protos import copied, named
from passes.writing.author import Author


@dataclass(frozen=True)
class SharedBody:
    """A body whose weights, at every depth, are outside, where all iterations read them.

    `constants` are its initializers and Constant nodes, `nodes` the Constant nodes that are not
    dense tensors: sparse ones, and attributes of the surrounding function. `annotations` are the
    quantization annotations of the constants.
    """

    graph: GraphProto
    constants: tuple[TensorProto, ...]
    nodes: tuple[NodeProto, ...]
    annotations: tuple[TensorAnnotation, ...]

    @cached_property
    def patterns(self) -> tuple[Pattern, ...]:
        """The nodes of the graph, as patterns to copy."""
        return tuple(map(Pattern.of, self.graph.node))

    @cached_property
    def defined(self) -> frozenset[str]:
        """The values that these nodes define."""
        return frozenset(name for pattern in self.patterns for name in pattern.outputs if name)

    @classmethod
    def of(cls, body: GraphProto, author: Author, visible: Callable[[str], bool]) -> SharedBody:
        """Move the constants out of a copy of `body`.

        `visible` are the names with a meaning at the new location of the body's nodes: definitions
        of these names in nested bodies are renamed, since they would shadow the outer values.
        """
        graph = copied(body)
        for node in graph.node:
            for _, inner in scoping.subgraphs(node):
                scoping.uncover(inner, visible, author.names.fresh)
        pool = _Pool(author)
        lifting = Lifting(pool, author.opset)
        lifting.take(graph, nested=False)
        return cls(graph, tuple(pool.constants), tuple(pool.nodes), tuple(lifting.annotations))


@dataclass(frozen=True)
class _Pool:
    """The constants outside, each under a name of its own."""

    author: Author
    constants: list[TensorProto] = field(default_factory=list)
    nodes: list[NodeProto] = field(default_factory=list)

    def tensor(self, tensor: TensorProto, annotated: bool) -> str:
        """Take a dense constant."""
        self.constants.append(named(tensor, self.author.fresh(tensor.name)))
        return self.constants[-1].name

    def node(self, node: NodeProto) -> str:
        """Take a Constant that is not a dense tensor."""
        copy = copied(node)
        copy.output[0] = self.author.fresh(node.output[0])
        self.nodes.append(copy)
        return copy.output[0]


_FREE_SYMBOLS: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Iteration:
    """The nodes of one iteration, the names of the body's outputs, and types of its values.

    `names` maps the values of the body to their names in this iteration.
    """

    nodes: list[Draft]
    outputs: list[str]
    value_info: list[ValueInfoProto]
    annotations: list[TensorAnnotation]
    names: Mapping[str, str]


def write_iteration(
    author: Author,
    body: SharedBody,
    inputs: Mapping[str, str],
    tag: str,
    symbols: frozenset[str] = _FREE_SYMBOLS,
) -> Iteration:
    """Clone the body's nodes: `inputs` maps its inputs to outer names, `tag` (`it3`)
    ends the new names. `symbols` are the symbolic dims that mean the same outside."""
    mapping = dict(inputs)
    fresh = author.names.fresh
    nodes = [pattern.copied(mapping, fresh, tag) for pattern in body.patterns]
    outputs = [mapping.get(name, name) for name in scoping.output_names(body.graph)]
    defined = body.defined
    infos = [
        retyped(value, mapping, symbols) for value in body.graph.value_info if value.name in defined
    ]
    annotations = [
        scoping.renamed_annotation(annotation, mapping)
        for annotation in body.graph.quantization_annotation
        if annotation.tensor_name in defined
    ]
    return Iteration(nodes, outputs, infos, annotations, mapping)


def retyped(
    value: ValueInfoProto, own: Mapping[str, str], symbols: frozenset[str]
) -> ValueInfoProto:
    """The type under the new name; a symbol of the body may differ between iterations."""
    copy = named(value, own[value.name])
    for dim in copy.type.tensor_type.shape.dim if copy.type.HasField("tensor_type") else ():
        if dim.HasField("dim_param") and dim.dim_param not in symbols:
            dim.ClearField("dim_param")
    return copy
