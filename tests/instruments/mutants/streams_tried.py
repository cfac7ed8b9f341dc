"""`stream` as a target: the models of its tests, each with its options in its metadata."""

from __future__ import annotations

import importlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx
from onnx import ModelProto

from tests.instruments.mutants.targets import STREAM, Target
from tests.instruments.mutants.trial import Outcome

#: The modules that are changed; what compares chunks with the whole is not.
_MODULES = (
    "with_states",
    "frame_by_frame",
    "frames_counted",
    "streamer",
    "states",
    "stream",
    "observed",
    "plan",
)
#: Test modules, and options with which each of their models is tried.
_TESTS = ("test_stream", "test_look_ahead", "test_speech", "test_frames_counted")
_OPTIONS: tuple[dict[str, Any], ...] = ({}, {"chunk": 2}, {"each": True})
_KEY = "options of stream"
_SEEDS = range(1, 5)


def stream_target(folder: Path) -> Target:
    """The target; the models are written into `folder`."""
    texts = {}
    for name in _TESTS:
        module = importlib.import_module(f"tests.streaming.{name}")
        found = {f"{name}.{key}": text for key, text in vars(module).items() if key.isupper()}
        texts |= {key: text for key, text in found.items() if f"{text}".startswith("<ir")}
    for key, text in texts.items():
        model = onnx.parser.parse_model(text)
        dims = [
            dim.dim_param for one in model.graph.input for dim in one.type.tensor_type.shape.dim
        ]
        axis = "T" if "T" in dims else "time"
        for number, options in enumerate(_OPTIONS):
            model.metadata_props.add(key=_KEY, value=json.dumps({"axis": axis, **options}))
            onnx.save(model, folder / f"{key}.{number}.onnx")
            del model.metadata_props[:]
    modules = tuple(f"passes.streaming.{name}" for name in _MODULES)
    return Target(STREAM, STREAM, modules, tuple(sorted(folder.glob("*.onnx"))))


def streamed(path: Path, *, verify: bool) -> Outcome:
    """What `stream` makes of a model; a fault may be seeded."""
    from passes import stream
    from passes.errors import PassesError
    from passes.streaming.chunks import Judge, NotCompared, NotSame
    from passes.streaming.plan import CannotStream

    judge = Judge("reference", budget=10)
    if not verify:
        judge = replace(judge, budget=1)
    try:
        made = stream(onnx.load(path), **_options(onnx.load(path)), judge=judge).model
    except NotSame as error:
        return Outcome("verification", str(error))
    except NotCompared as error:
        return Outcome("not verified", str(error))
    except CannotStream as error:
        return Outcome("refused", str(error))
    except TimeoutError:
        raise
    except PassesError as error:
        return Outcome("check", str(error))
    except Exception as error:  # whatever a mutant may raise
        return Outcome("crash", f"{type(error).__name__}: {error}")
    return Outcome(made=made.SerializeToString(deterministic=True))


def difference(before: ModelProto, made: bytes) -> str:
    """How chunks differ from the whole on other inputs; empty where they do not."""
    from passes.ir.model import Model
    from passes.streaming.chunks import Judge, NotCompared, NotSame
    from passes.streaming.plan import KEY, Plan, Port, State
    from passes.streaming.stream import _with_scans, _with_time

    after = onnx.load_from_string(made)
    (told,) = [json.loads(one.value) for one in after.metadata_props if one.key == KEY]
    fields = {name: told[name] for name in Plan.__dataclass_fields__}
    for name, kind in (("inputs", Port), ("outputs", Port), ("states", State)):
        fields[name] = [kind(**one) for one in fields[name]]
    judge, options = Judge("reference", budget=10), _options(before)
    model = _with_scans(before, judge, each=options.get("each", False))
    whole, _ = _with_time(model, options["axis"], alone=False)
    for seed in _SEEDS:
        try:
            replace(judge, seed=seed).compare(Model(whole.proto), after, Plan(**fields))
        except (NotSame, NotCompared) as error:
            return str(error)
    return ""


def _options(model: ModelProto) -> dict[str, Any]:
    (found,) = [json.loads(one.value) for one in model.metadata_props if one.key == _KEY]
    options: dict[str, Any] = found
    return options
