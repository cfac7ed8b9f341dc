"""Edits that write the branches of an If in its place; what is known of the values of a branch."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from onnx import (
    GraphProto,
    ModelProto,
    NodeProto,
    TensorAnnotation,
    TensorProto,
    TypeProto,
    helper,
    numpy_helper,
)

from passes.analysis.bodies.context import context_of
from passes.analysis.bodies.nested_graphs import NestedGraph
from passes.analysis.integers.affine import Affine, Atom
from passes.analysis.integers.integer_ops import WHOLE
from passes.analysis.integers.integers import Integers
from passes.analysis.sizes.made_up_sizes import size_symbol
from passes.bodies.iteration import SharedBody
from passes.bodies.tidy import finals_renamed
from passes.ir import scope as scoping
from passes.ir.boundary import close
from passes.ir.constants import Constants
from passes.ir.draft import drafts_of, nodes_of
from passes.ir.external_data import byte_size
from passes.ir.live import live
from passes.ir.scope import MAIN, Scope
from passes.rule import Edit, Site
from passes.types.inference import ValueTypes
from passes.types.value_types import INFERRED, Dims, dims_of, elem_type_of, tensor_type
from passes.writing.author import Author


def inlined(site: Site, taken: str) -> Edit:
    """The Edit that writes a branch of the site's node, `then_branch` or `else_branch`.

    Values of the branch get unique names. Outer values that it returns are copied by an Identity.
    """
    body = unpacked(site, taken, Author.at(site, "if"))
    finals = _finals(site.node, scoping.output_names(body.graph))
    return _spliced(site, [body], [*body.graph.node, *finals], taken)


def unpacked(site: Site, part: str, author: Author) -> SharedBody:
    """A branch of the site's node, in which values have unique names."""
    branch = next(graph for name, graph in scoping.subgraphs(site.node) if name == part)
    body = SharedBody.of(branch, author, site.is_visible)
    scoping.uncover(body.graph, scoping.defined(body.graph).__contains__, site.fresh)
    return body


def chosen(site: Site, bodies: Sequence[SharedBody], author: Author, note: str) -> Edit:
    """The Edit that runs branches which cannot fail, and then what the author wrote, as far as the
    outputs of the site's node need them."""
    every = [*(node for body in bodies for node in body.graph.node), *author.nodes]
    nodes, _ = live(every, filter(None, site.node.output), scoping.free_names)
    edit = _spliced(site, bodies, nodes, note)
    constants = (*edit.initializers, *author.constants)
    return replace(edit, initializers=constants, context=context_of(site))


def _spliced(site: Site, bodies: Sequence[SharedBody], written: list[NodeProto], note: str) -> Edit:
    """The Edit that writes these nodes, which compute the outputs of the site's node from the
    constants of the bodies."""
    outputs = frozenset(filter(None, site.node.output))
    drafts = finals_renamed(drafts_of(written), outputs)
    nodes = [*(node for body in bodies for node in body.nodes), *nodes_of(drafts)]
    kept = {name for node in nodes for name in node.output} - outputs
    types = (value for body in bodies for value in body.graph.value_info)
    annotations = [
        annotation for body in bodies for annotation in (*body.annotations, *_own(body.graph, kept))
    ]
    return Edit(
        tuple(nodes),
        tuple(tensor for body in bodies for tensor in body.constants),
        tuple(value for value in types if value.name in kept),
        note=note,
        annotations=tuple(annotations),
    )


def _finals(node: NodeProto, returned: Sequence[str]) -> list[NodeProto]:
    """The nodes that define the outputs of the If."""
    pairs = zip(returned, node.output, strict=True)
    return [
        NodeProto(op_type="Identity", input=[value], output=[name]) for value, name in pairs if name
    ]


def _own(graph: GraphProto, kept: set[str]) -> list[TensorAnnotation]:
    return [
        annotation for annotation in graph.quantization_annotation if annotation.tensor_name in kept
    ]


_IR_VERSION = 10
_SMALL = 512  # bytes; a larger constant is not a shape


@dataclass(frozen=True)
class InferredBranch(NestedGraph):
    """A branch of an If at a site; `types` are those of its values, whatever it declares."""

    types: Mapping[str, TypeProto] = field(default_factory=dict)

    @classmethod
    def seen(
        cls, site: Site, graph: GraphProto, part: str, zeros: Collection[Atom] = ()
    ) -> InferredBranch:
        """A branch that holds no bodies, where all of `zeros` are 0.

        Its shapes are inferred from those of captured values, in which only sizes that are proven
        to be equal have one symbol.
        """
        plain = NestedGraph.of(site, graph, part)
        return cls(site, graph, plain.scope, types=_Inference(site, zeros).types(graph))

    def type_of(self, name: str) -> TypeProto | None:
        """The type of a value, None if it is unknown."""
        return self.types.get(name)

    def proven_dims(self, name: str) -> Dims | None:
        """The dims of a value: here, only equal sizes have one symbol."""
        return self.dims_of(name)

    def has_sizes(self, name: str) -> bool:
        """Return whether all sizes of a value are known, or equal to that of another value."""
        dims = self.dims_of(name)
        return dims is not None and None not in dims


class _Inference:
    """Infers types from those at a site; one symbol means one size, in both branches."""

    def __init__(self, site: Site, zeros: Collection[Atom]) -> None:
        self.site = site
        self.integers = Integers(site)
        self.zeros = frozenset(zeros)

    def types(self, graph: GraphProto) -> dict[str, TypeProto]:
        model = ModelProto(ir_version=_IR_VERSION)
        model.opset_import.append(helper.make_opsetid("", self.site.opset))
        inner = model.graph
        inner.node.extend(graph.node)
        inner.initializer.extend(graph.initializer)
        captured = scoping.captures(graph)
        close(inner, {name: self._fixed(name) or self._known(name) for name in captured})
        inferred, scope = ValueTypes(model), Scope(MAIN, (0,), inner)
        names = {*captured, *scoping.defined(graph)}
        found = {name: inferred.of(scope, name) for name in names}
        return {
            name: _without_inferred_symbols(inferred_type)
            for name, inferred_type in found.items()
            if inferred_type is not None
        }

    def _fixed(self, name: str) -> TensorProto | None:
        """A captured value that is constant, or follows from the sizes."""
        tensor = Constants(self.site.model, self.site.scope).tensor(name)
        if tensor is not None and byte_size(tensor) <= _SMALL:
            return numpy_helper.from_array(self.site.model.read(tensor), name)
        known = self.site.type_of(name)
        ints = self.integers.outside(name) if elem_type_of(known) in WHOLE else None
        if ints is None:
            return None
        fixed = replace(ints, items=tuple(map(self._where_empty, ints.items))).wrapped.constant
        return None if fixed is None else numpy_helper.from_array(fixed, name)

    def _known(self, name: str) -> TypeProto | None:
        known = self.site.type_of(name)
        dims = dims_of(known)
        if not elem_type_of(known):
            return None
        return tensor_type(elem_type_of(known), dims and self._dims(name, len(dims)))

    def _dims(self, name: str, rank: int) -> Dims:
        sizes = (self.integers.size(name, axis) for axis in range(rank))
        return tuple(size_symbol(size and self._where_empty(size)) for size in sizes)

    def _where_empty(self, size: Affine) -> Affine:
        left = (term for term in size.terms if term[0] not in self.zeros)
        return Affine(size.constant, frozenset(left))


def _without_inferred_symbols(known: TypeProto) -> TypeProto:
    """A type without the symbols that inference makes up."""
    dims = dims_of(known)
    if not elem_type_of(known) or dims is None:
        return known
    found = (None if isinstance(dim, str) and dim.startswith(INFERRED) else dim for dim in dims)
    return tensor_type(elem_type_of(known), tuple(found))
