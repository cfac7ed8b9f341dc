"""Runs a rule on models in a process of its own, in which its code may be changed."""

from __future__ import annotations

import hashlib
import multiprocessing
import signal
import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from tests.instruments.mutants.faults import Fault
from tests.instruments.mutants.seeded import seed, traced
from tests.instruments.mutants.targets import STREAM, Target

if TYPE_CHECKING:
    from onnx import ModelProto

    from passes.session import Session

Result = TypeVar("Result")
_FORK = multiprocessing.get_context("fork")
SECONDS = 40  # a model; a change may make code run for ever


@dataclass(frozen=True)
class Outcome:
    """What became of one model: who stopped it, or the model that was made of it."""

    stopped: str = ""  # verification, not verified, check, refused, crash, too slow
    why: str = ""
    made: bytes = b""
    rewrites: int = 0

    @property
    def digest(self) -> str:
        """Tells models apart."""
        return hashlib.sha256(self.made).hexdigest()


@dataclass(frozen=True)
class Run:
    """The outcomes of all models, and the lines of each file that ran for each of them."""

    outcomes: dict[str, Outcome] = field(default_factory=dict)
    lines: dict[str, dict[str, set[int]]] = field(default_factory=dict)


def run(
    target: Target,
    models: Sequence[Path],
    fault: Fault | None,
    *,
    trace: bool = False,
    verify: bool = True,
) -> Run:
    """Run the pipeline of a target on models; with `trace` the lines that run are noted, and
    nothing is verified."""
    try:
        return apart(_run, target, models, fault, trace, verify)
    except EOFError:
        return Run({path.name: Outcome("crash", "the process died") for path in models})


def apart(work: Callable[..., Result], *arguments: object) -> Result:
    """What `work` answers in a process of its own, which imports what it needs.

    Raises EOFError where the process dies.
    """
    ours, theirs = _FORK.Pipe(duplex=False)
    process = _FORK.Process(target=lambda: theirs.send(work(*arguments)))
    process.start()
    theirs.close()
    try:
        result: Result = ours.recv()
    finally:
        process.join()
    return result


def _run(
    target: Target, models: Sequence[Path], fault: Fault | None, trace: bool, verify: bool
) -> Run:
    warnings.simplefilter("ignore")
    if fault is not None:
        seed(fault.module, fault.source)
    result = Run()
    try:
        from passes.engine.plugins import load_rules

        load_rules()
    except BaseException:  # whatever the import of a mutant may raise
        why = traceback.format_exc().splitlines()[-1]
        return Run({path.name: Outcome("crash", why) for path in models})
    for path in models:
        signal.signal(signal.SIGALRM, _too_slow)
        signal.alarm(SECONDS)
        try:
            if trace:
                with traced(target.files, result.lines.setdefault(path.name, {})):
                    result.outcomes[path.name] = outcome_of(target, path, verify=False)
            else:
                result.outcomes[path.name] = outcome_of(target, path, verify=verify)
        except TimeoutError:
            result.outcomes[path.name] = Outcome("too slow")
        finally:
            signal.alarm(0)
    return result


def _too_slow(number: int, frame: object) -> None:
    raise TimeoutError


def outcome_of(target: Target, path: Path, *, verify: bool) -> Outcome:
    if target.pipeline == STREAM:
        from tests.instruments.mutants.streams_tried import streamed

        return streamed(path, verify=verify)
    from passes import session
    from passes.errors import PassesError

    model, command = prepared(target, path, verify=verify)
    try:
        result = command.run(model)
    except session.Mismatch as error:
        return Outcome("verification", str(error))
    except session.NotVerified as error:
        return Outcome("not verified", str(error))
    except session.NotProduced as error:
        return Outcome("refused", str(error))
    except TimeoutError:
        raise
    except PassesError as error:
        return Outcome("check", str(error))
    except Exception as error:  # whatever a mutant may raise
        return Outcome("crash", f"{type(error).__name__}: {error}")
    made = result.model.SerializeToString(deterministic=True)
    return Outcome(made=made, rewrites=len(result.report.records))


def prepared(target: Target, path: Path, *, verify: bool) -> tuple[ModelProto, Session]:
    """A model, and the session that runs the pipeline of a target with what the model asks for."""
    import onnx

    from passes.choices import Verifying
    from passes.engine.schedules import SCHEDULES
    from passes.session import Session
    from passes.testing import options_of

    model = onnx.load(path)
    said = {entry.key: entry.value for entry in model.metadata_props}
    options = options_of(
        {key[7:]: value for key, value in said.items() if key.startswith("option ")}
    )
    opset = int(said["opset"]) if "opset" in said else target.opset
    assume = options.assume
    verifying = Verifying("reference", budget=20, assume=assume) if verify else None
    return model, Session(SCHEDULES[target.pipeline], opset, options, verifying)
