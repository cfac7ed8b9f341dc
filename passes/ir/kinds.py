"""The kinds of models that are taken and given back, those of other packages with them.

A package is imported only where a model or a class of it is given. Weights are not copied: what is
large is written to a file, to which the ModelProto refers, and is given back as it was.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy.typing as npt
from google.protobuf.message import EncodeError
from onnx import GraphProto, ModelProto, TensorProto, external_data_helper, helper

from passes.errors import BadModel
from passes.ir import scope as scoping
from passes.ir.data_file import DataFile
from passes.ir.external_data import ExternalTensor, external_tensors, is_external
from passes.ir.protos import copied

if TYPE_CHECKING:
    _Path = Path
else:
    _Path = type(Path())  # before Python 3.12 a subclass of Path itself cannot be made

#: The bytes of weights in memory from which on they are written to a file, and of one of them.
_MUCH, _LARGE = 1 << 28, 1 << 20


class OfOnnxIr(Protocol):
    """An `onnx_ir.Model`."""

    @property
    def graph(self) -> Any: ...
    @property
    def opset_imports(self) -> Any: ...


class OfGraphSurgeon(Protocol):
    """An `onnx_graphsurgeon.Graph`."""

    nodes: Any


class OfTorch(Protocol):
    """A `torch.onnx.ONNXProgram`."""

    model: Any


#: A model of another package.
Foreign = OfOnnxIr | OfGraphSurgeon | OfTorch


class Held:
    """Large weights of a model of another package: the `file` has their data, and they are given
    back as they are."""

    def __init__(self) -> None:
        self.file = DataFile()
        self._weights: dict[tuple[int, int, tuple[int, ...]], Any] = {}

    def tensor(self, weight: Any, like: TensorProto, data: bytes | npt.NDArray[Any]) -> TensorProto:
        """The tensor that refers to the data of a weight. Raises OSError: the disk is full."""
        tensor = self.file.tensor(like, data)
        where = ExternalTensor.of(tensor).offset, like.data_type, tuple(like.dims)
        self._weights[where] = weight
        return tensor

    def weight(self, offset: int, data_type: int, dims: tuple[int, ...]) -> Any:
        """The weight that a tensor refers to; None if it is of another form."""
        return self._weights.get((offset, data_type, dims))


class Folder(_Path):
    """The folder of the external data of a model without a path; the file of the weights that are
    `held` exists as long as this object."""

    held: Held | None = None

    @classmethod
    def of(cls, held: Held) -> Folder:
        """The folder of the file of what is held."""
        folder = cls(held.file.folder)
        folder.held = held
        return folder


class Unnamed(_Path):
    """The path of a model without one, in the `folder` of its external data."""

    folder: Folder

    @classmethod
    def of(cls, folder: Path) -> Unnamed:
        """The path in a folder."""
        path = cls(folder, "model.onnx")
        path.folder = folder if isinstance(folder, Folder) else Folder(folder)
        return path


@dataclass(frozen=True)
class Kind:
    """A class of a package, by its public name. `take` returns a model as a proto, with a path if
    its data is external; `give` makes a model of a proto, the folder of its data and the class."""

    name: str
    take: Callable[[Any], tuple[ModelProto, Unnamed | None]]
    give: Callable[[ModelProto, Path | None, Any], Any]

    def is_class(self, kind: object) -> bool:
        """Return whether this is the class, or a subclass."""
        package, name = self.name.split(".")[0], self.name.split(".")[-1]
        mro = getattr(kind, "__mro__", ())
        return (package, name) in [(one.__module__.split(".")[0], one.__name__) for one in mro]


def taken(source: object) -> tuple[ModelProto, Unnamed | None]:
    """The proto of a model of another package, with a path if its data is external.

    Raises:
        TypeError: it is no model; the sentence lists what is.
        BadModel: the package cannot write it as a proto.
    """
    for kind in _KINDS:
        if kind.is_class(type(source)):
            try:
                return kind.take(source)
            except Exception as error:  # whatever the package raises
                first: BaseException = error
                while first.__cause__ is not None:
                    first = first.__cause__
                reason = str(first).partition("\n")[0]
                raise BadModel(f"the {kind.name} cannot be read ({reason})") from error
    known = ", ".join(["a path", "the bytes of a file", "ModelProto", *_NAMES])
    raise TypeError(f"a model is one of {known}, or a Result, not {type(source).__qualname__!r}")


def given(proto: ModelProto, kind: type, base_dir: Path | None) -> Any:
    """A model as another kind: ModelProto or bytes, with its external data, or a class of another
    package.

    Raises:
        TypeError: it is none of these.
        BadModel: it is too large for bytes, or has what the other package has not.
    """
    if kind is ModelProto or kind is bytes:
        made = _with_data(proto, base_dir)
        try:
            return made if kind is ModelProto else made.SerializeToString()
        except (EncodeError, ValueError) as error:
            raise BadModel("it is larger than the 2 GB of a file; `save` writes it") from error
    for one in _KINDS:
        if one.is_class(kind):
            return one.give(proto, base_dir, kind)
    known = ", ".join(["ModelProto", "bytes", *_NAMES])
    raise TypeError(f"a model is given as one of {known}, not as {kind!r}")


def _with_data(proto: ModelProto, base_dir: Path | None) -> ModelProto:
    """The proto, or a copy, with its external data in it."""
    if base_dir is None or not any(True for _ in external_tensors(proto)):
        return proto
    whole = copied(proto)
    external_data_helper.load_external_data_for_model(whole, os.fspath(base_dir))
    return whole


def _held(base_dir: Path | None) -> Held | None:
    return base_dir.held if isinstance(base_dir, Folder) else None


def _initializers(model: Any) -> Iterator[Any]:
    """The values of an onnx_ir.Model that have a tensor, at any depth."""
    values = (value for graph in model.graphs() for value in graph.initializers.values())
    return (value for value in values if value.const_value is not None)


def _from_onnx_ir(model: Any) -> tuple[ModelProto, Unnamed | None]:
    import onnx_ir

    external, inside = set(), 0
    for weight in (value.const_value for value in _initializers(model)):
        if isinstance(weight, onnx_ir.ExternalTensor):
            external.add(os.fspath(weight.base_dir))
        elif weight.dtype != onnx_ir.DataType.STRING:
            inside += weight.nbytes
    if len(external) < 2 and inside < _MUCH:
        path = Unnamed.of(Path(external.pop())) if external else None
        return onnx_ir.to_proto(model), path
    held, lean = Held(), model.clone()
    for value in _initializers(lean):
        weight, kind = value.const_value, value.const_value.dtype
        if kind == onnx_ir.DataType.STRING:  # which has no file
            continue
        if isinstance(weight, onnx_ir.ExternalTensor) or weight.nbytes >= _LARGE:
            like = TensorProto(name=value.name, data_type=kind.value, dims=weight.shape.numpy())
            data = weight.numpy() if kind.itemsize >= 1 else weight.tobytes()
            tensor = held.tensor(weight, like, data)
            value.const_value = onnx_ir.serde.TensorProtoTensor(tensor)
    return onnx_ir.to_proto(lean), Unnamed.of(Folder.of(held))


def _to_onnx_ir(proto: ModelProto, base_dir: Path | None, _: object) -> Any:
    import onnx_ir

    for _, top in scoping.owners(proto):
        for graph in scoping.graphs_below(top):
            if isinstance(graph, GraphProto) and graph.sparse_initializer:
                name = graph.sparse_initializer[0].values.name
                raise BadModel(f"onnx_ir has no sparse initializers, as {name!r} is one")
    model = onnx_ir.from_proto(proto)
    if base_dir is not None:
        onnx_ir.external_data.set_base_dir(model.graph, base_dir)
    held = _held(base_dir)
    for value in _initializers(model):
        tensor = value.const_value
        if held is not None and isinstance(tensor, onnx_ir.ExternalTensor):
            where = (tensor.offset or 0, tensor.dtype.value, tuple(tensor.shape.numpy()))
            weight = held.weight(*where)
            value.const_value = onnx_ir.Tensor(tensor.numpy()) if weight is None else weight
    return model


def _constants(graph: Any) -> list[Any]:
    """The dense constants of a graph of onnx-graphsurgeon, at any depth."""
    import onnx_graphsurgeon as gs

    graphs = [graph, *graph.subgraphs(recursive=True)]
    every = {id(one): one for each in graphs for one in each.tensors().values()}.values()
    found = [one for one in every if isinstance(one, gs.Constant)]
    return [one for one in found if not isinstance(one._values, gs.ir.tensor.SparseValues)]


def _from_graphsurgeon(graph: Any) -> tuple[ModelProto, Unnamed | None]:
    import onnx_graphsurgeon as gs

    if sum(one._values.nbytes for one in _constants(graph)) < _MUCH:
        return gs.export_onnx(graph), None
    held, lean = Held(), graph.copy()
    lean.producer_name, lean.producer_version = graph.producer_name, graph.producer_version
    for constant in _constants(lean):
        values, lazy = constant._values, isinstance(constant._values, gs.ir.tensor.LazyValues)
        if values.nbytes < _LARGE or constant.export_dtype != values.dtype:
            continue
        if lazy and values.tensor.HasField("raw_data"):
            like, data = values.tensor, values.tensor.raw_data
        elif lazy:  # external, or with an element at a time
            continue
        else:
            data, data_type = values, helper.np_dtype_to_tensor_dtype(values.dtype)
            like = TensorProto(name=constant.name, data_type=data_type, dims=values.shape)
        constant.values = gs.ir.tensor.LazyValues(held.tensor(values, like, data))
    return gs.export_onnx(lean), Unnamed.of(Folder.of(held))


def _to_graphsurgeon(proto: ModelProto, base_dir: Path | None, _: object) -> Any:
    import onnx_graphsurgeon as gs

    graph, held = gs.import_onnx(proto), _held(base_dir)
    for constant in _constants(graph):
        tensor = constant._values.tensor
        if base_dir is None or not is_external(tensor):
            continue
        where = ExternalTensor.of(tensor)
        weight = held and held.weight(where.offset, tensor.data_type, tuple(tensor.dims))
        constant.values = where.read(tensor, base_dir) if weight is None else weight
        constant.data_location = None  # the data is in the graph, or mapped
    return graph


def _from_torch(program: Any) -> tuple[ModelProto, Unnamed | None]:
    return _from_onnx_ir(program.model)


def _to_torch(proto: ModelProto, base_dir: Path | None, kind: Any) -> Any:
    """A program that computes as others do; only torch makes the exported program of one."""
    return kind(_to_onnx_ir(proto, base_dir, kind), None)


#: The public names, with what takes and gives models of these classes.
_KINDS = (
    Kind("onnx_ir.Model", _from_onnx_ir, _to_onnx_ir),
    Kind("onnx_graphsurgeon.Graph", _from_graphsurgeon, _to_graphsurgeon),
    Kind("torch.onnx.ONNXProgram", _from_torch, _to_torch),
)
_NAMES = [kind.name for kind in _KINDS]
