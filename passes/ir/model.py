"""A model file: the proto, where it came from, and its weights, by reference.

The ModelProto is the model. External data is never loaded with it; a weight is read, memory
mapped, only when somebody asks for its value.
"""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from google.protobuf import json_format, text_format
from google.protobuf.message import DecodeError
from onnx import FunctionProto, ModelProto, NodeProto, TensorProto, numpy_helper

from passes.errors import BadModel
from passes.ir.external_data import ExternalTensor, check_external_data
from passes.ir.graph_index import GraphIndex
from passes.ir.kinds import Foreign, Unnamed, taken
from passes.ir.operators import SPELLED_OUT, plain_domain
from passes.ir.places import imports_of
from passes.ir.protos import copied
from passes.ir.scope import Owner, Scope, declared_names, owners
from passes.types.inference import ValueTypes

_MOST_QUOTED = 300  # characters of a parser's message


@dataclass
class Model:
    """A model in memory. `path` is the file it was read from, None for a proto of the caller.

    Lookups are cached: the proto must not change any more.
    """

    proto: ModelProto
    path: Path | None = None
    _indices: dict[int, GraphIndex] = field(default_factory=dict, repr=False)

    @classmethod
    def load(cls, source: ModelProto | bytes | str | os.PathLike[str] | Foreign) -> Model:
        """A model from a file (binary, `.onnxtxt`, `.json`, ...), the bytes of a binary one, a
        model of another package, or a proto, which is not copied unless nodes spell the domain of
        ONNX out: they get its short name, the only one that onnx's inference knows.

        Raises:
            TypeError: it is none of these.
            BadModel: the file cannot be read, holds no model, or its external data is missing,
                too short, or outside its folder.
        """
        if isinstance(source, ModelProto):
            return cls(source)._with_short_domains()
        if isinstance(source, bytes):
            return cls(_parsed(source))._with_short_domains()
        path: Path | None
        if isinstance(source, str | os.PathLike):
            path = Path(source)
            proto = _read(path)
        else:
            proto, path = taken(source)
        model = cls(proto, path)._with_short_domains()
        if path is not None:
            check_external_data(model.proto, path.parent, model.file)
        return model

    def _with_short_domains(self) -> Model:
        """The model, or a copy, without nodes and functions whose domain is spelled `ai.onnx`."""
        if not self._spelled_out:
            return self
        new = Model(copied(self.proto), self.path)
        for one in new._spelled_out:
            one.domain = ""
        return new

    @property
    def _spelled_out(self) -> list[NodeProto | FunctionProto]:
        """The nodes and functions whose domain is spelled `ai.onnx`."""
        nodes = [
            node for _, below in self.graphs for one in below for node in self.index(one).nodes
        ]
        found: list[NodeProto | FunctionProto] = [*nodes, *self.proto.functions]
        return [one for one in found if one.domain == SPELLED_OUT]

    @property
    def base_dir(self) -> Path | None:
        """The folder that external data is relative to."""
        if isinstance(self.path, Unnamed):
            return self.path.folder
        return None if self.path is None else self.path.parent

    @property
    def file(self) -> str:
        """The file's name for messages."""
        return "" if self.path is None or isinstance(self.path, Unnamed) else str(self.path)

    def opset(self, owner: Owner | None = None, domain: str = "") -> int:
        """The version of a domain that a function, or the main graph, imports; 0 if none."""
        wanted = plain_domain(domain)
        for entry in imports_of(self.proto, owner):
            if plain_domain(entry.domain) == wanted:
                return int(entry.version)
        return 0

    def opset_at(self, scope: Scope, domain: str = "") -> int:
        """The version of a domain that the nodes of a scope are written in; 0 if none."""
        return self.opset(scope.outermost.owner, domain)

    @property
    def newest_opset(self) -> int:
        """The newest opset among those of the main graph and of the functions; 0 if none."""
        return max(map(self.opset, (None, *self.proto.functions)))

    @cached_property
    def graphs(self) -> list[tuple[Owner, list[Owner]]]:
        """The main graph and each function, with itself and every graph nested in it."""
        return [(top, list(self._below(top))) for _, top in owners(self.proto)]

    def _below(self, owner: Owner) -> Iterator[Owner]:
        """`owner` and every graph nested in it."""
        yield owner
        for bodies in self.index(owner).holders.values():
            for _, graph in bodies:
                yield from self._below(graph)

    @cached_property
    def _own(self) -> frozenset[str]:
        """The names of the functions."""
        return frozenset(function.name for function in self.proto.functions)

    @cached_property
    def names(self) -> set[str]:
        """Every name of a value that occurs in it, at any depth."""
        found: set[str] = set()
        for index in (self.index(graph) for _, below in self.graphs for graph in below):
            found.update(declared_names(index.owner), *index.reads, *index.writes)
        found.discard("")
        return found

    @cached_property
    def has_bodies(self) -> bool:
        """True if any node has a body."""
        return any(len(below) > 1 for _, below in self.graphs)

    @cached_property
    def operators(self) -> list[tuple[Owner, Counter[str]]]:
        """The main graph and each function, with how often each operator occurs in it, bodies
        included."""
        return [
            (top, Counter(list(chain.from_iterable(self.index(graph).ops for graph in below))))
            for top, below in self.graphs
        ]

    def index(self, owner: Owner) -> GraphIndex:
        """The definitions and readers of values in a graph or function."""
        index = self._indices.get(id(owner))
        if index is None or index.owner is not owner:
            index = self._indices[id(owner)] = GraphIndex(owner, self._own)
        return index

    def producer(self, owner: Owner, name: str) -> NodeProto | None:
        """The node of this very graph that writes `name`."""
        return self.index(owner).producers.get(name)

    def defines(self, owner: Owner, name: str) -> bool:
        """Return whether `name` is an input, an initializer or a node's output of this very
        graph."""
        return self.index(owner).defines(name)

    def home(self, scope: Scope, name: str) -> Scope | None:
        """The scope that defines what a name means in `scope`; None where none does."""
        return next(
            (enclosing for enclosing in scope.chain() if self.defines(enclosing.owner, name)), None
        )

    def visible_producer(self, scope: Scope, name: str) -> NodeProto | None:
        """The node that computes what a name means in a scope; None where it is not a node's
        output."""
        home = self.home(scope, name)
        return None if home is None else self.producer(home.owner, name)

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


#: How deep a file may be nested, for people.
DEEPEST = "protobuf reads 100 levels of messages, which are some 31 bodies in one another"


def _parsed(data: bytes) -> ModelProto:
    try:
        proto = onnx.load_model_from_string(data)
    except (DecodeError, ValueError) as error:
        raise BadModel(f"is no ONNX model, or is cut short ({_in_short(error)})") from error
    if not proto.HasField("graph"):
        raise BadModel("is no ONNX model (it has no graph)")
    return proto


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
            raise BadModel(f"bodies are nested too deeply: {DEEPEST}", file=file) from error
        raise BadModel(f"is no ONNX model, or is cut short ({reason})", file=file) from error
    except (json_format.ParseError, text_format.ParseError, ValueError) as error:
        reason = _in_short(error)
        raise BadModel(f"is no ONNX model ({reason})", file=file) from error
    if not proto.HasField("graph"):
        raise BadModel("is no ONNX model (it has no graph)", file=file)
    return proto


def _in_short(error: Exception) -> str:
    """The message in one line; parsers quote whole lines of what they could not read."""
    argument = error.args[0] if error.args else ""
    text = argument.decode(errors="replace") if isinstance(argument, bytes) else str(error)
    reason = " ".join(text.split())
    return reason if len(reason) <= _MOST_QUOTED else f"{reason[:_MOST_QUOTED]}..."
