"""Options of a class read from texts, as a command line or a form has them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any, TypeVar

from passes.commands.declaring import Option, WrongOption, options_of
from passes.errors import WrongUsage

NUMBERS = (int, float)
#: What reads the entries of options that are mappings; it is imported when there are any.
ENTRIES: Mapping[Any, tuple[str, str]] = {
    Mapping[str, str]: (__name__, "pair"),
    Mapping[str, int | str]: ("passes.binding.dims", "parsed"),
    Mapping[str, Sequence[int | None]]: ("passes.binding.inputs", "parsed_shape"),
    Mapping[str, Any]: ("passes.binding.values", "parsed"),
    Mapping[str, tuple[float, float]]: (__name__, "ends"),
}
_T = TypeVar("_T")


class WrongText(WrongUsage):
    """A text is no value of an option, or the options do not go together."""


def read_options(declared: Callable[..., _T], given: dict[str, Any]) -> _T:
    """The options of a class from texts, flags and lists of texts by name, which are taken out of
    `given`.

    Raises:
        WrongText: an option has a value that it cannot have.
    """
    values: dict[str, Any] = {}
    kind: Any = declared
    for name, option in options_of(kind).items():
        if name not in given:
            continue
        value = given.pop(name)
        if option.annotation in ENTRIES:
            value = _entries(option, value or ()) or None
        elif option.annotation == tuple[str, str]:
            value = next(iter(_entries(option, [value]).items()))
        elif option.annotation in NUMBERS and value is not None:
            with suppress(ValueError):  # what is no number is refused as such
                value = option.annotation(value)
        values[name] = value if value is not None or option.optional else option.default
    try:
        return declared(**values)
    except WrongOption as error:
        flag = options_of(kind)[error.name].key
        raise WrongText(f"--{flag} {error.sentence}") from error
    except ValueError as error:
        raise WrongText(f"{error}") from error


def _entries(option: Option, texts: Iterable[str]) -> dict[str, Any]:
    """Return the values of entries of the form NAME=..., by name."""
    module, function = ENTRIES.get(option.annotation, (__name__, "pair"))
    read = getattr(import_module(module), function)
    found: dict[str, Any] = {}
    try:
        for text in texts:
            name, value = read(text)
            if name in found:
                raise ValueError(f"{name!r} is given twice")
            found[name] = value
    except ValueError as error:
        raise WrongText(f"--{option.key}: {error}") from error
    return found


def pair(text: str) -> tuple[str, str]:
    """Both names of `h=new_h`. Raises ValueError if it is not of that form."""
    name, _, other = text.partition("=")
    if not name or not other:
        raise ValueError(f"{text!r} is not of the form IN=OUT")
    return name, other


def ends(text: str) -> tuple[str, tuple[float, float]]:
    """The name and both numbers of `x=-1..1`. Raises ValueError if it is not of that form."""
    name, _, numbers = text.partition("=")
    low, _, high = numbers.partition("..")
    try:
        return name, (float(low), float(high))
    except ValueError as error:
        raise ValueError(f"{text!r} is not of the form INPUT=LOW..HIGH") from error
