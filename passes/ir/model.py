"""A model file: the proto, where it came from, and its weights, by reference.

The ModelProto is the model. External data is never loaded with it; a weight is read, memory
mapped, only when somebody asks for its value.
"""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from google.protobuf import json_format, text_format
from google.protobuf.message import DecodeError
from onnx import FunctionProto, ModelProto, NodeProto, TensorProto, numpy_helper

from passes.errors import BadModel
from passes.ir import scope as scoping
from passes.ir.external_data import ExternalTensor, check_external_data
from passes.ir.operators import plain_domain
from passes.ir.scope import Owner
from passes.types.inference import ValueTypes

_MOST_QUOTED = 300  # characters of a parser's message


@dataclass
class Model:
    """A model in memory. `path` is the file it was read from, None for a proto of the caller.

    What it looks up is looked up once: the proto must not change any more.
    """

    proto: ModelProto
    path: Path | None = None
    _tables: dict[int, _Table] = field(default_factory=dict, repr=False)

    @classmethod
    def load(cls, source: ModelProto | str | os.PathLike[str]) -> Model:
        """A model from a file (binary, `.onnxtxt`, `.json`, ...) or a proto, which is not copied.

        Raises:
            BadModel: the file cannot be read, holds no model, or its external data is missing,
                too short, or outside its folder.
        """
        if isinstance(source, ModelProto):
            return cls(source)
        path = Path(source)
        proto = _read(path)
        model = cls(proto, path)
        check_external_data(proto, path)
        return model

    @property
    def base_dir(self) -> Path | None:
        """The folder that external data is relative to."""
        return None if self.path is None else self.path.parent

    @property
    def file(self) -> str:
        """The file's name for messages."""
        return "" if self.path is None else str(self.path)

    def opset(self, owner: Owner | None = None, domain: str = "") -> int:
        """The version of a domain that a function, or the main graph, imports; 0 if none."""
        imports = (
            owner.opset_import if isinstance(owner, FunctionProto) else self.proto.opset_import
        )
        wanted = plain_domain(domain)
        for entry in imports:
            if plain_domain(entry.domain) == wanted:
                return int(entry.version)
        return 0

    @property
    def newest_opset(self) -> int:
        """The newest opset among those of the main graph and of the functions; 0 if none."""
        return max(map(self.opset, (None, *self.proto.functions)))

    def initializer(self, owner: Owner, name: str) -> TensorProto | None:
        """The dense initializer of this very graph that is called `name`."""
        return self._table(owner).initializers.get(name)

    def producer(self, owner: Owner, name: str) -> NodeProto | None:
        """The node of this very graph that writes `name`."""
        return self._table(owner).producers.get(name)

    def position(self, owner: Owner, name: str) -> int | None:
        """The position in this very graph of the node that writes `name`."""
        return self._table(owner).positions.get(name)

    def defines(self, owner: Owner, name: str) -> bool:
        """Whether `name` is an input, an initializer or a node's output of this very graph."""
        table = self._table(owner)
        known = (table.producers, table.initializers, table.inputs, table.sparse)
        return any(name in names for names in known)

    def input_names(self, owner: Owner) -> frozenset[str]:
        """The names of the inputs of this very graph."""
        return self._table(owner).inputs

    @cached_property
    def types(self) -> ValueTypes:
        """The types of its values."""
        return ValueTypes(self.proto)

    def read(self, tensor: TensorProto) -> npt.NDArray[Any]:
        """The value of a tensor, memory mapped where its data is external."""
        if tensor.data_location != TensorProto.EXTERNAL:
            return np.asarray(numpy_helper.to_array(tensor))
        if self.base_dir is None:
            raise BadModel(f"the data of {tensor.name!r} is external, but the model has no file")
        return ExternalTensor.of(tensor).read(tensor, self.base_dir)

    def _table(self, owner: Owner) -> _Table:
        table = self._tables.get(id(owner))
        if table is None or table.owner is not owner:
            table = self._tables[id(owner)] = _Table.of(owner)
        return table


@dataclass(frozen=True)
class _Table:
    """Who defines what in one graph; made once, for models that do not change any more."""

    owner: Owner
    initializers: dict[str, TensorProto]
    producers: dict[str, NodeProto]
    inputs: frozenset[str]
    sparse: frozenset[str]

    @classmethod
    def of(cls, owner: Owner) -> _Table:
        dense = () if isinstance(owner, FunctionProto) else owner.initializer
        return cls(
            owner,
            {tensor.name: tensor for tensor in dense},
            {name: node for node in owner.node for name in node.output if name},
            frozenset(scoping.input_names(owner)),
            frozenset(scoping.initializer_names(owner).difference(one.name for one in dense)),
        )

    @cached_property
    def positions(self) -> dict[str, int]:
        """Where the node stands that writes a name."""
        return {name: at for at, node in enumerate(self.owner.node) for name in node.output if name}


#: How deep a file may be nested, for people.
DEEPEST = "protobuf reads 100 levels of messages, which are some 31 bodies in one another"


def _read(path: Path) -> ModelProto:
    file = str(path)
    try:
        if path.stat().st_size == 0:
            raise BadModel("the file is empty", file=file)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="The onnxtxt format is experimental")
            proto = onnx.load(file, load_external_data=False)
    except OSError as error:
        raise BadModel(f"cannot be read ({error.strerror or error})", file=file) from error
    except (DecodeError, UnicodeDecodeError, onnx.parser.ParseError) as error:
        reason = _in_short(error)
        if "MaxDepth" in reason:
            raise BadModel(f"bodies stand too deep in one another: {DEEPEST}", file=file) from error
        raise BadModel(f"is no ONNX model, or is cut short ({reason})", file=file) from error
    except (json_format.ParseError, text_format.ParseError, ValueError) as error:
        reason = _in_short(error)
        raise BadModel(f"is no ONNX model ({reason})", file=file) from error
    if not proto.HasField("graph"):
        raise BadModel("is no ONNX model (it has no graph)", file=file)
    return proto


def _in_short(error: Exception) -> str:
    """The message in one line; parsers quote whole lines of what they could not read."""
    reason = " ".join(str(error).split())
    return reason if len(reason) <= _MOST_QUOTED else f"{reason[:_MOST_QUOTED]}..."
