"""For tests of rules, here and elsewhere: `assert_rewrite` and `assert_refused`.

Models may be given in ONNX text. Both functions execute before and after; a rewrite that was
not compared in any case fails the test.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

import onnx
from onnx import ModelProto

from passes.binding import dims, values
from passes.binding.inputs import parsed_shape
from passes.choices import Retyping, RuleOptions, Verifying
from passes.commands.schedules import SCHEDULES
from passes.engine.finish import is_given_name
from passes.engine.outcome import Pass
from passes.engine.schedules import Schedule
from passes.errors import NotProduced, NotVerified, nearest
from passes.ir.protos import copied
from passes.ir.scope import walk_model
from passes.session import Result, Session

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    _T = TypeVar("_T", bound=DataclassInstance)

#: How a name that was set to nothing is printed.
NO_NAME = '[""] '


def as_model(source: ModelProto | str) -> ModelProto:
    """A model from ONNX text; a ModelProto as it is."""
    if isinstance(source, ModelProto):
        return source
    try:
        parsed: ModelProto = onnx.parser.parse_model(source)
    except onnx.parser.ParseError as error:
        reason = error.args[0].decode(errors="replace")
        raise ValueError(f"{source[:40]!r}... is no model in ONNX text: {reason}") from error
    return parsed


def _schedule(pipeline: str) -> Schedule:
    if pipeline not in SCHEDULES:
        raise ValueError(f"there is no pipeline {pipeline!r}; {nearest(pipeline, SCHEDULES)}")
    return SCHEDULES[pipeline]


def assert_rewrite(
    before: ModelProto | str,
    after: ModelProto | str | None = None,
    *,
    pipeline: str = "upgrade",
    opset: int | None = None,
    options: Mapping[str, Any] | None = None,
    executor: str = "both",
    inputs: str | None = None,
    budget: float = 60.0,
) -> Result:
    """Run a pipeline on `before`, verify it, and answer with the result.

    `after`, where it is given, is the exact outcome. `before` must not be changed by it.

    Raises:
        AssertionError: the outcome is another one, is no valid model, or was not compared.
        NotProduced: a rule refused, the outcome does not agree with `before`, or a rewrite was left
            out, since no case of it could be compared, or the model is invalid after it.
    """
    model = as_model(before)
    untouched = model.SerializeToString(deterministic=True)
    asked = options_of(options or {})
    verifying = Verifying(executor, budget, inputs=inputs, assume=asked.assume)
    session = Session([Pass(_schedule(pipeline), opset, asked)], verifying)
    result = session.run(model)
    assert model.SerializeToString(deterministic=True) == untouched, "the argument was changed"
    if left_out := result.report.left_out:
        raise NotVerified(f"{left_out[0].path}: {left_out[0].sentence}", result.report)
    checked = result.report.checked
    assert checked is None or checked.verdict == "verified", str(checked)
    onnx.checker.check_model(result.model, full_check=True)
    if after is not None:
        expected, actual = map(as_text, (as_model(after), result.model))
        assert actual == expected, f"the outcome is\n{actual}"
    return result


def options_of(given: Mapping[str, Any]) -> RuleOptions:
    """Options of rules by name; a string in place of a number, a list, yes or no is read, and for
    `retyping` one as `to=float16; keep=Exp,main/*`.

    Raises:
        ValueError: there is no option of a name, or a string is none of its values.
    """
    return _read_into(RuleOptions, given)


def _read_into(declared: type[_T], given: Mapping[str, Any]) -> _T:
    """The options of a class. Raises what `options_of` raises."""
    kinds = {option.name: str(option.type) for option in fields(declared)}
    read = dict(given)
    for name, value in given.items():
        if name not in kinds:
            raise ValueError(f"there is no option {name!r}; {nearest(name, sorted(kinds))}")
        kind, read_string = _READ.get(kinds[name], ("text", str))
        if isinstance(value, str):
            try:
                read[name] = read_string(value)
            except (KeyError, ValueError):
                raise ValueError(f"{name} is {value!r}, not {kind}") from None
    return declared(**read)


def _retyping(text: str) -> Retyping:
    entries = (entry.partition("=") for entry in text.split(";"))
    return _read_into(Retyping, {name.strip(): value.strip() for name, _, value in entries})


def _entries(read: Callable[[str], tuple[str, Any]]) -> Callable[[str], dict[str, Any]]:
    """Return a reader of entries separated by semicolons."""
    return lambda text: dict(read(entry.strip()) for entry in text.split(";"))


_NUMBER = ("a whole number", int)
_READ: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "int": _NUMBER,
    "int | None": _NUMBER,
    "float | None": ("a number", float),
    "bool": ("yes or no", {"yes": True, "no": False}.__getitem__),
    "tuple[str, ...]": ("a list", lambda text: tuple(filter(None, text.split(",")))),
    "Retyping | None": ("NAME=VALUE; ...", _retyping),
    "Mapping[str, int | str]": ("NAME=SIZE; ...", _entries(dims.parsed)),
    "Mapping[str, tuple[int | None, ...]]": ("NAME=SIZE,SIZE; ...", _entries(parsed_shape)),
    "Mapping[str, Any]": ("NAME=VALUE; ...", _entries(values.parsed)),
}


def as_text(model: ModelProto) -> str:
    """A model in ONNX text, without the names that new nodes get when a rewrite is finished."""
    copy = copied(model)
    for place in walk_model(copy):
        if is_given_name(place.node):
            place.node.ClearField("name")
    return str(onnx.printer.to_text(copy)).replace(NO_NAME, "")


def assert_refused(
    model: ModelProto | str,
    code: str,
    *,
    pipeline: str = "upgrade",
    opset: int | None = None,
    options: Mapping[str, Any] | None = None,
) -> Sequence[str]:
    """Check that a pipeline refuses a model with `code`; returns the sentences.

    Raises:
        AssertionError: it did not refuse with that code.
    """
    try:
        report = (
            Session([Pass(_schedule(pipeline), opset, options_of(options or {}))], None)
            .run(as_model(model))
            .report
        )
    except NotProduced as error:
        report = error.report
    codes = {record.code: record.sentence for record in report.refusals}
    assert code in codes, f"was not refused with {code}, but with {sorted(codes)}"
    return [record.sentence for record in report.refusals if record.code == code]


__all__ = ["as_model", "as_text", "assert_refused", "assert_rewrite", "options_of"]
