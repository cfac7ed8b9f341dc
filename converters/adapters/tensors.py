"""Steps of ops that make tensors or change their type."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import NodeProto, TensorProto, helper, numpy_helper

from passes.converters.steps import adapter_down, expanded, identical
from passes.converters.writing.conversion import OLD_FLOATS, Conversion
from passes.ir.constants import constant_tensor
from passes.writing import spelling

_INTEGERS = (
    *(TensorProto.INT2, TensorProto.INT4, TensorProto.INT8, TensorProto.INT16),
    *(TensorProto.INT32, TensorProto.INT64, TensorProto.UINT2, TensorProto.UINT4),
    *(TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64),
)

identical("Cast", 9)  # strings are new; numbers behave as before
identical("Cast", 13)
identical("Cast", 19, because="saturate is new and only bears on the new float8 types")
identical("Cast", 21, 23)
identical(
    "Cast",
    24,
    because="round_mode is for the new float8e8m0; that an infinity saturates in the FNUZ types "
    "too, which the table of version 19 has as NaN, is how it always ran",
)
identical("Cast", 25, 28)

identical("CastLike", 19, because="saturate is new and only bears on the new float8 types")
identical("CastLike", 21, 23)
identical("CastLike", 24, because="round_mode is for the new float8e8m0; see Cast")
identical("CastLike", 25)


@adapter_down("Cast", 19)
@adapter_down("Cast", 24)
@adapter_down("CastLike", 19)
@adapter_down("CastLike", 24)
def cast_without(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """An attribute that only concerns types that came with it is left out."""
    return [ctx.changed(node, without=["round_mode"] if ctx.version >= 19 else ["saturate"])]


@adapter_down("CastLike", 15)
def castlike_14(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """A Cast to the element type of the second input."""
    x, like = node.input
    return [ctx.changed(node, op="Cast", inputs=[x], to=ctx.known_elem_type(like))]


identical("Constant", 9)
identical("Constant", 11, because="value is optional now that there is sparse_value")
identical("Constant", 12, because="the attributes value_* are new")
identical("Constant", 13, 19, 21, 23, 24, 25)


@adapter_down("Constant", 12)
def constant_11(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """A number, a string or a list becomes a tensor."""
    (attribute,) = node.attribute
    ctx.attribute(node, attribute.name)  # what refers to one of the function has no value
    tensor = constant_tensor(node)
    if attribute.name == "value" or tensor is None:
        return [node]
    tensor.name = ""
    return [ctx.changed(node, without=[attribute.name], value=tensor)]


@adapter_down("Constant", 11)
def constant_10(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """A sparse tensor becomes a dense one."""
    sparse = ctx.attribute(node, "sparse_value")
    if sparse is None:
        return [node]
    values, places = (numpy_helper.to_array(one) for one in (sparse.values, sparse.indices))
    whole = np.zeros(sparse.dims, values.dtype)
    whole.flat[places if places.ndim == 1 else np.ravel_multi_index(places.T, sparse.dims)] = values
    return [ctx.changed(node, without=["sparse_value"], value=numpy_helper.from_array(whole))]


@adapter_down("Constant", 9)
def constant_8(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """A constant that is not of a float type becomes an initializer, or a Cast in a function."""
    value = ctx.attribute(node, "value")
    if value.data_type in OLD_FLOATS:
        return [node]
    fixed = ctx.value(numpy_helper.to_array(value), node.output[0])
    return [ctx.changed(node, op="Identity", inputs=[fixed], without=["value"])]


@adapter_down("ConstantOfShape", 9)
def constantofshape_8(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """An Expand of the value."""
    value = ctx.attribute(node, "value")
    one = np.float32(0) if value is None else numpy_helper.to_array(value).reshape(())
    inputs = [ctx.value(one, "value"), node.input[0]]
    return [ctx.changed(node, op="Expand", inputs=inputs, without=["value"])]


identical("ConstantOfShape", 20, 21, 23, 24, 25)
identical("EyeLike", 22)


@adapter_down("EyeLike", 9)
def eyelike_8(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """A fixed value, where the shape is known."""
    x = node.input[0]
    sizes = [dim for dim in ctx.dims_of(x) or () if isinstance(dim, int)]
    if len(sizes) < 2:
        raise ctx.refused("unknown-rank", f"the sizes of {x!r} are not known")
    elem_type = ctx.attribute(node, "dtype") or ctx.known_elem_type(x)
    dtype = helper.tensor_dtype_to_np_dtype(elem_type)
    eye = ctx.value(np.eye(sizes[0], sizes[1], ctx.attribute(node, "k", 0)).astype(dtype), "eye")
    return [ctx.changed(node, op="Identity", inputs=[eye], without=["k", "dtype"])]


@adapter_down("Range", 11, exact=False)
def range_10(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """A fixed value, or as many ones as there are numbers, which NonZero counts."""
    start, limit, delta = node.input
    fixed = [value for value in map(ctx.constant, node.input) if value is not None]
    if len(fixed) == len(node.input):
        numbers = np.arange(*(value.item() for value in fixed)).astype(fixed[0].dtype)
        return [ctx.changed(node, op="Identity", inputs=[ctx.value(numbers, "numbers")])]
    elem_type, double = ctx.known_elem_type(start), TensorProto.DOUBLE
    length = ctx.op("Cast", ctx.op("Sub", limit, start), to=double)
    steps = ctx.op("Ceil", ctx.op("Div", length, ctx.op("Cast", delta, to=double)))
    least = ctx.op("Max", steps, ctx.value(np.float64(0), "zero"))
    count = spelling.unsqueeze(ctx, ctx.op("Cast", least, to=TensorProto.INT64), 0)
    counted = ctx.op("Cast", spelling.arange(ctx, count), to=elem_type)
    return [ctx.changed(node, op="Add", inputs=[start, ctx.op("Mul", counted, delta)])]


@adapter_down("Range", 27)
def range_26(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """float16 and bfloat16 are counted in the type that `stash_type` says."""
    elem_type = ctx.known_elem_type(node.input[0])
    plain = ctx.changed(node, without=["stash_type"])
    if elem_type not in (TensorProto.FLOAT16, TensorProto.BFLOAT16):
        return [plain]
    wide = ctx.casts(ctx.attribute(node, "stash_type", 1), *node.input)
    found = ctx.copy(plain, *wide)
    return ctx.last(node, "Cast", found, to=elem_type)


identical("Range", 27, because="stash_type only bears on the new types float16 and bfloat16")


@adapter_down("BitCast", 26)
def bitcast_25(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Integers of the same width: a Cast keeps their bits, and so it does from a bool."""
    source, to = ctx.known_elem_type(node.input[0]), ctx.attribute(node, "to")
    one = TensorProto.BOOL
    if source == to:
        return [ctx.changed(node, op="Identity", without=["to"])]
    if to == one or not {source, to} <= {one, *_INTEGERS}:
        names = [TensorProto.DataType.Name(one).lower() for one in (source, to)]
        raise ctx.refused("no-equivalent", "no older op takes the bits of {} for {}".format(*names))
    return [ctx.changed(node, op="Cast")]


expanded("CenterCropPad", 18)
