"""What the library's functions take, and the session that runs with it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import wraps
from inspect import Parameter, signature
from typing import ParamSpec, TypedDict, TypeVar

from onnx import IR_VERSION

from passes.choices import Assumption, Bounded, Executors, Peel, RuleOptions, Verifying
from passes.engine.pipelines import PIPELINES
from passes.errors import nearest
from passes.ir.versions import OLDEST_IR_VERSION
from passes.onnxruntime.releases import Release, release_of
from passes.session import Progress, Session

_P = ParamSpec("_P")
_R = TypeVar("_R")
_LISTS = ("only", "rules", "skip", "assume", "inline")


class Options(TypedDict, total=False):
    """What every rewriting function takes by keyword.

    `verify` (on by default) executes before and after: `executor` (reference, onnxruntime, both)
    runs both models on `inputs` (an .npz or a folder of test data) and on inputs drawn from
    `seed`, for at most `verify_budget` seconds (60). `allow_unverified` lets rewrites pass that
    could not be compared. `assume=["valid-inputs"]` leaves out the guards that make the new
    model fail where the old one would have, `"non-empty"` what handles sizes of 0. `robust` goes
    around the loops of an upgraded Scan-8 where there is nothing to run, for runtimes that fail on
    that. `for_`, as `"onnxruntime==1.22"`, names the newest opset that this release loads.
    `progress` receives what goes on.
    """

    verify: bool
    executor: str
    inputs: str | os.PathLike[str] | None
    verify_budget: float
    seed: int
    allow_unverified: bool
    assume: Sequence[str]
    for_: str | None
    robust: bool
    progress: Progress | None


class WithOpset(Options):
    """The same, and the opset to go to; None where none was requested."""

    opset: int | None


def checking_keywords(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Make a function that takes `Options` refuse keywords that it does not know, a string for a
    list of strings, and what is no mapping for `dims`, each with a TypeError."""
    own = signature(function).parameters.values()
    known = {parameter.name for parameter in own if parameter.kind != Parameter.VAR_KEYWORD}
    known.update(Options.__annotations__)

    @wraps(function)
    def checked(*arguments: _P.args, **keywords: _P.kwargs) -> _R:
        for name, value in keywords.items():
            if name not in known:
                what = f"{function.__name__}() got an unexpected keyword argument {name!r}"
                raise TypeError(f"{what}; {nearest(name, sorted(known))}")
            if name in _LISTS and not _is_list_of_strings(value):
                raise TypeError(f"{name} is {value!r}, not a list of strings")
            if name == "dims" and not isinstance(value, Mapping | None):
                raise TypeError(f"dims is {value!r}, not a mapping from names to sizes")
        return function(*arguments, **keywords)

    return checked


def _is_list_of_strings(value: object) -> bool:
    if isinstance(value, str) or not isinstance(value, Sequence):
        return False
    return all(isinstance(item, str) for item in value)


def check_choice(name: str, choice: str, known: type[StrEnum]) -> None:
    """See that an option says something known.

    Raises:
        ValueError: it does not.
    """
    if choice not in tuple(known):
        raise ValueError(f"{name} is {choice!r}, not one of {', '.join(known)}")


def check_unrolling(
    factor: int | None,
    max_trips: int | None,
    bounded: str,
    check_output: str | None,
    peel: str | None,
) -> None:
    """See that the options of `unroll` make sense together.

    Raises:
        ValueError: they do not.
    """
    for name, number in (("factor", factor), ("max_trips", max_trips)):
        if number is not None and number < 1:
            raise ValueError(f"{name} is {number}, it must be 1 or more")
    check_choice("bounded", bounded, Bounded)
    if peel is not None:
        check_choice("peel", peel, Peel)
    whole = {"factor": factor, "peel": peel, "max_trips": max_trips}
    declared = [name for name, value in whole.items() if value is not None]
    if len(declared) > 1:
        raise ValueError(f"{declared[0]} and {declared[1]} do not go together")
    if check_output is not None and (max_trips is None or not check_output):
        raise ValueError("check_output is the name of an output that goes with max_trips")


def check_converting(
    opset: int | None, for_: str | None, ir_version: int | None, inline: Sequence[str]
) -> None:
    """See that the options of `convert` make sense together.

    Raises:
        ValueError: they do not.
    """
    if opset is None and for_ is None and ir_version is None and not inline:
        raise ValueError("name an opset, a release, an IR version or functions to inline")
    if ir_version is None:
        return
    if for_ is not None:
        raise ValueError("an IR version and a release that it is for do not go together")
    if not OLDEST_IR_VERSION <= ir_version <= int(IR_VERSION):
        known = f"known are {OLDEST_IR_VERSION} to {int(IR_VERSION)}"
        raise ValueError(f"IR version {ir_version} is not known to the installed onnx, {known}")


def asked_for(opset: int | None, for_: str | None) -> tuple[int | None, Release | None]:
    """The requested opset, and the release of onnxruntime that it is for.

    Raises:
        ValueError: both were named.
        UnknownRelease: there is no such release.
    """
    if for_ is None:
        return opset, None
    if opset is not None:
        raise ValueError("an opset and a release that it is for do not go together")
    release = release_of(for_)
    return release.opset, release


def session_of(command: str, opset: int | None, own: RuleOptions, options: Options) -> Session:
    """The session of a command.

    Raises:
        ValueError: the executor or an assumption is unknown, or the opset is given twice.
        UnknownRelease: it is for a release of onnxruntime that is not known.
    """
    opset, release = asked_for(opset, options.get("for_"))
    assume = tuple(options.get("assume", ()))
    if not set(assume) <= set(Assumption):
        raise ValueError(f"assume is {list(assume)}, not among {', '.join(Assumption)}")
    own = replace(
        own,
        assume=assume,
        robust=options.get("robust", False),
        for_onnxruntime=release is not None,
    )
    if release is not None and PIPELINES[command].down:
        own = replace(own, ir_version=release.ir_version)
    progress = options.get("progress")
    return Session(command, opset, own, _verifying(options), progress, release)


def _verifying(options: Options) -> Verifying | None:
    """How to verify, None for not at all."""
    executor = options.get("executor", "both")
    check_choice("executor", executor, Executors)
    if not options.get("verify", True):
        return None
    return Verifying(
        executor=executor,
        budget=options.get("verify_budget", 60.0),
        seed=options.get("seed", 0),
        inputs=options.get("inputs"),
        allow_unverified=options.get("allow_unverified", False),
        assume=tuple(options.get("assume", ())),
    )
