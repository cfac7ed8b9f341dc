"""The view of an adapter on the model, and its writer of nodes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import (
    AttributeProto,
    FunctionProto,
    ModelProto,
    NodeProto,
    TensorProto,
    TypeProto,
    defs,
    helper,
)

from passes.analysis.integers.computed import computed
from passes.converters.writing.made import Made
from passes.ir import scope as scoping
from passes.ir.attributes import attribute_proto
from passes.ir.constants import Constants
from passes.ir.operators import bare_op, called_key, function_key, op_of
from passes.ir.protos import changed
from passes.rule import Refused, Site, Slot
from passes.types.value_types import Dim, dims_of, elem_type_of
from passes.writing.spelling import Writer

_Given = dict[tuple[str, str, str], set[str]]
_GIVEN_ATTRIBUTES: Slot[_Given] = Slot()


def is_given(site: Site, attribute: str) -> bool:
    """Return whether an attribute of the function that `site` lies in always has a value.

    It has if the function has a default for it, or if each of its calls gives it.
    """
    function = site.scope.outermost.owner
    if not isinstance(function, FunctionProto):
        return False
    if any(one.name == attribute for one in function.attribute_proto):
        return True
    given = site.memory.once(_GIVEN_ATTRIBUTES, lambda: _given_by_all(site.model.proto))
    return attribute in given.get(function_key(function), set())


def _given_by_all(model: ModelProto) -> _Given:
    """The attributes that all calls of a function set, by domain, name and overload.

    What a call only passes on from a function around it may be missing there.
    """
    found: _Given = {function_key(function): set() for function in model.functions}
    called: set[tuple[str, str, str]] = set()
    for place in scoping.walk_model(model):
        node = place.node
        key = called_key(node)
        if key not in found:
            continue
        given = {attribute.name for attribute in node.attribute if not attribute.ref_attr_name}
        found[key] = found[key] & given if key in called else given
        called.add(key)
    return found


#: Why a node is refused in a function that only knows of what its calls give.
_OPEN_IN_FUNCTION = ("attribute-reference", "not-constant", "unknown-rank", "unknown-type")


#: The attribute of Constant-12 that may refer to an attribute of a function, by its type.
_CONSTANT_FORM = {
    AttributeProto.INT: ("value_int", np.int64),
    AttributeProto.INTS: ("value_ints", np.int64),
    AttributeProto.FLOAT: ("value_float", np.float32),
    AttributeProto.FLOATS: ("value_floats", np.float32),
}


#: The float types that every version takes.
OLD_FLOATS = (TensorProto.FLOAT16, TensorProto.FLOAT, TensorProto.DOUBLE)


@dataclass(frozen=True)
class Conversion(Writer):
    """A node on its way to the target opset, at one of its steps.

    `version` is the opset that the adapter writes. Types and constants are known for the values
    of the model and for those that earlier steps made. `nodes` are those written in this step.
    """

    site: Site
    version: int
    made: Made = field(default_factory=Made)
    nodes: list[NodeProto] = field(default_factory=list)
    _once: dict[Hashable, str] = field(default_factory=dict)

    @property
    def opset(self) -> int:
        """The opset that the adapter writes."""
        return self.version

    @property
    def path(self) -> str:
        """The location of the node: `main/scan_3.body/if_0`."""
        return self.site.path

    @property
    def in_function(self) -> bool:
        """True if the node lies in a model-local function, so its attributes may be references."""
        self.made.reads_model = True
        return self.site.in_function

    def later(self, version: int) -> Conversion:
        """Return the same node seen from opset `version`, to write nodes that this one lacks.

        They take the steps behind `version` only.
        """
        return replace(self, version=version)

    def inside(self) -> Conversion:
        """The same node, to write the nodes of a body with, or those of another step."""
        return Conversion(self.site, self.version, self.made)

    # -- what is known ---------------------------------------------------------------------

    def type_of(self, name: str) -> TypeProto | None:
        """The type of a value, None if it is unknown or the name is empty."""
        if not name:
            return None
        self.made.reads_model |= name not in self.made.constants
        return self.made.type_of(name, self.type_of) or self.site.type_of(name)

    def dims_of(self, name: str) -> tuple[Dim, ...] | None:
        """Sizes, symbols and Nones of a tensor's dims; None where the rank is unknown."""
        return dims_of(self.type_of(name))

    def constant(self, name: str) -> npt.NDArray[Any] | None:
        """The value of `name` where it is fixed and small, else None."""
        if name in self.made.constants:
            return self.made.constants[name]
        if name in self.site.node.input:
            self.made.fixed_inputs.add(name)
        else:
            self.made.reads_model = True
        return self.site.constant(name) if name else None

    def stored(self, name: str) -> npt.NDArray[Any] | None:
        """The value of `name` where it is fixed, of any size: weights, too."""
        if name in self.made.constants:
            return self.made.constants[name]
        self.made.reads_model = True
        tensor = Constants(self.site.model, self.site.scope).tensor(name)
        return None if tensor is None else self.site.model.read(tensor)

    def refers(self, node: NodeProto, name: str) -> bool:
        """Return whether an attribute refers to one of the function, so its value is unknown."""
        found = attribute_proto(node, name)
        return found is not None and bool(found.ref_attr_name)

    def attribute(self, node: NodeProto, name: str, default: Any = None) -> Any:
        """The value of an attribute (int, float, str, list, tensor, ...), `default` if absent.

        Raises:
            Refused: `attribute-reference`: only the callers of the function know the value.
        """
        found = attribute_proto(node, name)
        if found is None:
            return default
        if found.ref_attr_name:
            raise self.refused(
                "attribute-reference",
                f"the step of {op_of(node)} to version {self.version} depends on {name!r}, "
                f"which refers to the function's attribute {found.ref_attr_name!r}",
            )
        value = helper.get_attribute_value(found)
        return value.decode() if isinstance(value, bytes) else value

    # -- what a step cannot do without -----------------------------------------------------

    def known_rank(self, name: str) -> int:
        """The rank of a tensor.

        Raises:
            Refused: `unknown-rank`: inference does not find it.
        """
        dims = self.dims_of(name)
        if dims is None:
            raise self.refused("unknown-rank", f"the rank of {name!r} is not known")
        return len(dims)

    def known_elem_type(self, name: str) -> int:
        """The element type of a tensor.

        Raises:
            Refused: `unknown-type`: inference does not find it.
        """
        found = elem_type_of(self.type_of(name))
        if not found:
            raise self.refused("unknown-type", f"the element type of {name!r} is not known")
        return found

    def fixed(self, node: NodeProto, position: int, what: str) -> npt.NDArray[Any] | None:
        """The value of an input that an older version takes as an attribute; None where it is
        left out.

        Raises:
            Refused: `not-constant`: it is not fixed, nor computed from what is fixed.
        """
        name = node.input[position] if position < len(node.input) else ""
        value = self.constant(name)
        if name and value is None:
            self.made.reads_model = True
            value = computed(self.site, name)
            if value is not None:
                self.made.folded[name] = value
        if name and value is None:
            raise self.refused(
                "not-constant",
                f"{op_of(node)} takes {what} from {name!r}, which is only known at run time, and "
                f"opset {self.version} takes it as an attribute",
            )
        return value

    def refused(self, code: str, sentence: str) -> Refused:
        """The refusal of this node, to be raised; `code` is one that `opset` documents."""
        may_be_known = code in _OPEN_IN_FUNCTION and self.site.in_function
        way = "; convert --inline all does without the function" if may_be_known else ""
        return Refused(code, sentence + way, (self.path,))

    # -- what it makes ---------------------------------------------------------------------

    def fresh(self, hint: str) -> str:
        """A value name that occurs nowhere in the model."""
        self.made.reads_model = True
        return self.site.fresh(hint)

    def value(self, array: npt.ArrayLike, hint: str = "constant") -> str:
        """The name of a fixed value, made where it is not there yet.

        It is an initializer, one for all equal values of a graph, or a Constant node where the
        node lies directly in a function. The dtype is that of `array`: give a numpy array.
        """
        return self.made.value(np.asarray(array), hint, self.site)

    def attribute_as_input(
        self, node: NodeProto, name: str, dtype: npt.DTypeLike, default: npt.ArrayLike | None = None
    ) -> str:
        """Return the name of a value that holds attribute `name`; `default` if it is absent.

        An attribute of a function that is referred to becomes a Constant node that refers to it.

        Raises:
            Refused: `invalid-node`: it is absent and there is no default;
                `attribute-reference`: no Constant can refer to it, or callers may leave it out.
        """
        found = attribute_proto(node, name)
        if found is not None and found.ref_attr_name:
            return self._referring_constant(node, found, np.dtype(dtype))
        content = default if found is None else self.attribute(node, name)
        if content is None:
            sentence = f"{bare_op(node)} lacks its attribute {name!r}"
            raise self.refused("invalid-node", sentence)
        return self.value(np.asarray(content, dtype), name)

    def node(
        self,
        op: str,
        inputs: Sequence[str],
        outputs: Sequence[str] = (),
        **attributes: Any,
    ) -> NodeProto:
        """A new node of the standard domain, which is not written yet.

        It has one output with a fresh name where none is given. An attribute that is None is left
        out.
        """
        names = outputs or [self.fresh(f"{self._stem}_{op.lower()}")]
        made: NodeProto = helper.make_node(
            op, inputs, names, domain=self.site.node.domain, **attributes
        )
        return self.made.add(made, self.version)

    def changed(
        self,
        node: NodeProto,
        *,
        op: str | None = None,
        inputs: Iterable[str] | None = None,
        outputs: Iterable[str] | None = None,
        without: Iterable[str] = (),
        **attributes: Any,
    ) -> NodeProto:
        """A copy of a node with some things changed: the main node of a replacement.

        Name, doc string, metadata and every attribute not mentioned stay: what an adapter does
        not know is never lost.

        Args:
            node: what to copy.
            op: its new op.
            inputs: its new inputs.
            outputs: its new outputs.
            without: attributes to drop, where they are there.
            attributes: attributes to set; None drops.
        """
        given = dict.fromkeys(without) | attributes
        copy = changed(node, given, op=op, inputs=inputs, outputs=outputs)
        return self.made.add(copy, self.version)

    def adopt(self, node: NodeProto) -> str:
        """Write a node; the name of its first output."""
        self.nodes.append(node)
        return str(node.output[0])

    def op(self, op_type: str, *inputs: str, outputs: Sequence[str] = (), **attributes: Any) -> str:
        """Write a node of the standard domain; the name of its first output."""
        return self.adopt(self.node(op_type, inputs, outputs, **attributes))

    def last(self, node: NodeProto, op: str, *inputs: str, **attributes: Any) -> list[NodeProto]:
        """The node that gives what `node` gave, to be returned by the adapter."""
        return [self.node(op, inputs, node.output, **attributes)]

    def named_last(self, node: NodeProto, value: str) -> list[NodeProto]:
        """The node written last under the output of `node`; of its input, a node that copies it."""
        if not self.nodes:
            return [self.changed(node, op="Identity", inputs=[value])]
        return [self.changed(self.nodes.pop(), outputs=node.output)]

    def copy(self, node: NodeProto, *inputs: str, **changes: Any) -> str:
        """Write `node` with these inputs and other changes, as `changed` takes them; its new
        output, the only one."""
        outputs = [self.fresh(f"{node.output[0]}_inner")]
        return self.adopt(self.changed(node, inputs=inputs, outputs=outputs, **changes))

    def once(self, key: Hashable, write: Callable[[], str]) -> str:
        """The result of `write`, which is called for the first one of equal keys."""
        if key not in self._once:
            self._once[key] = write()
        return self._once[key]

    def both(self, op: str, a: str, b: str) -> str:
        """An op on two values; the one that there is where the other is empty."""
        return self.op(op, a, b) if a and b else a or b

    def cast(self, name: str, elem_type: int, to: int, outputs: Sequence[str] = ()) -> str:
        """A value as another element type; itself where it has that and needs no other name."""
        if elem_type == to:
            return self.op("Identity", name, outputs=outputs) if outputs else name
        return self.op("Cast", name, outputs=outputs, to=to)

    def casts(self, to: int, *names: str) -> list[str]:
        """Values, each cast to a type."""
        return [self.op("Cast", name, to=to) for name in names]

    def whole(self, values: npt.ArrayLike, hint: str = "ints") -> str:
        """The name of a fixed int64 tensor of any rank."""
        return self.value(np.asarray(values, np.int64), hint)

    def number(self, value: float, elem_type: int) -> str:
        """The name of a fixed scalar."""
        return self.value(np.array(value, helper.tensor_dtype_to_np_dtype(elem_type)), "number")

    def rounded(self, value: npt.ArrayLike, dtype: npt.DTypeLike, hint: str = "number") -> str:
        """The name of a fixed tensor; a number is first rounded to float, as an attribute is."""
        with np.errstate(over="ignore"):  # what float16 cannot hold is infinite
            return self.value(np.asarray(value).astype(np.float32).astype(dtype), hint)

    @property
    def _stem(self) -> str:
        """The beginning of the names of new values."""
        return next((name for name in self.site.node.output if name), "")

    def _referring_constant(
        self, node: NodeProto, reference: AttributeProto, dtype: np.dtype[Any]
    ) -> str:
        form, made_dtype = _CONSTANT_FORM.get(reference.type, ("", None))
        if self.site.target < 12 or made_dtype != dtype or not self._is_given(node, reference):
            raise self.refused(
                "attribute-reference",
                f"{reference.name!r} of {op_of(node)} refers to the function's attribute "
                f"{reference.ref_attr_name!r}, which cannot become an input",
            )
        return self.made.referring_constant(form, reference, dtype, self.site)

    def _is_given(self, node: NodeProto, reference: AttributeProto) -> bool:
        """Return whether no caller can leave out what is referred to."""
        schema = defs.get_schema(bare_op(node), self.version - 1)
        if schema.attributes[reference.name].required:
            return True
        return is_given(self.site, reference.ref_attr_name)


def through_float(
    node: NodeProto, ctx: Conversion, float_type: int = TensorProto.FLOAT
) -> Sequence[NodeProto]:
    """The node between a Cast to `float_type` and one back, which rounds towards zero.

    Its first input and its output are of one integer type, which is known.
    """
    elem_type = ctx.known_elem_type(node.input[0])
    (wide,) = ctx.casts(float_type, node.input[0])
    return ctx.last(node, "Cast", ctx.copy(node, wide, *node.input[1:]), to=elem_type)
