"""Models with float32 in loops or branches, and inputs for 1 to 1,024 iterations."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import onnx.inliner
from onnx import ModelProto, TensorProto

from passes.errors import DoesNotFit
from passes.ir.model import Model
from passes.ir.scope import holds_graphs
from passes.precision.flow import Flow
from passes.types.signature import inputs
from passes.verify.executor import Feeds
from passes.verify.inputs.drawer import Drawer
from passes.verify.inputs.hints import model_hints
from passes.verify.inputs.lengths import length_of, taken
from passes.verify.installed import OnnxRuntimeExecutor

_GOLDEN = Path(__file__).parent.parent / "golden_models"
#: The numbers of iterations, and of draws for each.
LENGTHS, DRAWS = (1, 16, 128, 1024), 3
#: The other free sizes.
_OTHER = 2
#: What the length of inputs is called if it cannot be chosen, or an exporter stored them.
STORED = "stored"


@dataclass(frozen=True)
class Fed:
    """Inputs, and the number of iterations that they ask for, as `1,024`."""

    length: str
    feeds: Feeds


@dataclass(frozen=True)
class Case:
    """A model without functions, and the inputs that it is run on."""

    name: str
    model: ModelProto
    fed: Sequence[Fed]


def exported(*, quick: bool = False) -> Iterator[Case]:
    """The exported models, each at the newest opset at which it is stored."""
    newest: dict[str, tuple[int, Path]] = {}
    for path in sorted((_GOLDEN / "exported").glob("*/*.onnx")):
        stem, _, opset = path.stem.partition(".opset")
        name = f"{path.parent.name}/{stem}"
        newest[name] = max(newest.get(name, (0, path)), (int(opset), path))
    return _cases([(name, path) for name, (_, path) in newest.items()][:: 40 if quick else 1])


def golden(*, quick: bool = False) -> Iterator[Case]:
    """The other golden models, before they are rewritten."""
    warnings.simplefilter("ignore")  # the format of texts is experimental
    paths = sorted(_GOLDEN.glob("*/*.before.onnxtxt"))[:: 150 if quick else 1]
    return _cases((f"{path.parent.name}/{path.name.partition('.')[0]}", path) for path in paths)


def _cases(paths: Iterable[tuple[str, Path]]) -> Iterator[Case]:
    with OnnxRuntimeExecutor() as executor:
        for name, path in paths:
            model = onnx.load(path)
            if model.functions:
                model = onnx.inliner.inline_local_functions(model)
            if _has_floats_in_bodies(model):
                fed = [*_stored(path, model), *_drawn(Model(model), executor)]
                if fed:
                    yield Case(name, model, fed)


def _has_floats_in_bodies(model: ModelProto) -> bool:
    if not any(map(holds_graphs, model.graph.node)):
        return False
    values = Flow.of(Model(model)).values
    return any(one.graph and one.elem_type == TensorProto.FLOAT for one in values)


def _stored(path: Path, model: ModelProto) -> Iterator[Fed]:
    file = path.with_name(f"{path.name.partition('.')[0]}.inputs.npz")
    if file.exists():
        with np.load(file) as archive:
            names = {value.name for value in inputs(model.graph)}
            yield Fed(STORED, {name: value for name, value in archive.items() if name in names})


def _drawn(model: Model, executor: OnnxRuntimeExecutor) -> Iterator[Fed]:
    """Inputs of each length that the model takes: the size that the trip count depends on, or, if
    that is unknown, all free sizes. Without free sizes, inputs of the sizes that there are."""
    unfit = set[int]()
    for draw in range(DRAWS):
        drawer = Drawer(tuple(inputs(model.proto.graph)), draw, model_hints(model))
        free = drawer.symbols()
        length = length_of(model, free)
        for count in LENGTHS if free else (0,):
            if count in unfit:
                continue
            sizes = {name: _OTHER if length and name != length else count for name in free}
            try:
                drawer, feeds, _ = taken(model, drawer, sizes, executor)
            except DoesNotFit:
                unfit.add(count)
                continue
            yield Fed(f"{count:,}" if free else STORED, feeds)
