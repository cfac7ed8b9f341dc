"""Chooses the functions of a model to inline, and lists what the model declares before and
after."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from onnx import FunctionProto, ModelProto

from passes.choices import RuleOptions
from passes.errors import DoesNotFit, nearest
from passes.ir import scope as scoping
from passes.ir.model import Model
from passes.ir.operators import FunctionKey, called_key, function_key, plain_domain
from passes.ir.places import called_functions, calls
from passes.ir.protos import copied, replace_all
from passes.ir.scope import Owner
from passes.ir.versions import FUNCTIONS, FUNCTIONS_HAVE_DEFAULTS, FUNCTIONS_HAVE_OVERLOADS

if TYPE_CHECKING:
    from passes.engine.rounds import Round
    from passes.onnxruntime.releases import Release

ALL, UNSUPPORTED = "all", "unsupported"


class UnknownFunction(DoesNotFit):
    """The model has no function of a name that was given."""


def check_named(
    model: Model, asked: int | None, release: Release | None, options: RuleOptions
) -> None:
    """See that the model has the functions that are to be inlined.

    Raises:
        UnknownFunction: it has none of a name.
    """
    known = [name for function in model.proto.functions for name in _names(function)]
    for name in options.inline:
        if name not in (ALL, UNSUPPORTED, *known):
            raise UnknownFunction(f"the model has no function {name!r}; {nearest(name, known)}")


def chosen(model: ModelProto, options: RuleOptions) -> dict[FunctionKey, FunctionProto]:
    """The functions whose calls are to be replaced."""
    return {
        function_key(one): one
        for one in model.functions
        if ALL in options.inline
        or (UNSUPPORTED in options.inline and not _is_held(one, options.ir_version))
        or _names(one).intersection(options.inline)
    }


def _names(function: FunctionProto) -> set[str]:
    return {function.name, f"{function.domain}::{function.name}"}


def _is_held(function: FunctionProto, ir_version: int | None) -> bool:
    """Return whether a model of an IR version can have such a function."""
    needed = FUNCTIONS
    if function.attribute_proto:
        needed = FUNCTIONS_HAVE_DEFAULTS
    if function.overload:
        needed = FUNCTIONS_HAVE_OVERLOADS
    return ir_version is None or ir_version >= needed


def with_imports(model: Model, asked: int | None, options: RuleOptions) -> Model | None:
    """The model with what the chosen functions import imported by their callers, too; None if none
    are chosen."""
    gone = chosen(model.proto, options)
    wanted = {
        plain_domain(entry.domain): entry
        for function in gone.values()
        for entry in function.opset_import
    }
    lacking = []
    for position, owner in enumerate(_importers(model.proto)):
        known = {plain_domain(entry.domain) for entry in owner.opset_import}
        if not known >= wanted.keys() and calls(_graph(owner)) & gone.keys():
            lacking.append((position, [wanted[domain] for domain in wanted.keys() - known]))
    if not lacking:
        return model if gone else None
    copy = copied(model.proto)
    for position, entries in lacking:
        _importers(copy)[position].opset_import.extend(entries)
    return Model(copy, model.path)


def without_uncalled(round_: Round, target: int | None, options: RuleOptions) -> None:
    """Drop from the outcome those of the chosen functions that nothing calls any more, what only
    they call, and the imports that only they need."""
    if round_.refused:
        return
    model, gone = round_.proto, chosen(round_.model.proto, options)
    everywhere = set().union(*map(calls, model.functions))
    idle = [one for one in model.functions if function_key(one) not in everywhere | gone.keys()]
    kept = {*map(function_key, [*called_functions(model, [model.graph, *idle]), *idle])}
    dropped = [one for one in model.functions if function_key(one) not in kept]
    if not dropped:
        return
    copy = copied(model)
    replace_all(copy.functions, [one for one in copy.functions if function_key(one) in kept])
    domains = {plain_domain(entry.domain) for one in dropped for entry in one.opset_import}
    domains.update(plain_domain(one.domain) for one in dropped)
    for owner in _importers(copy):
        used = {domain for domain, _, _ in calls(_graph(owner))} | {""}
        entries = [
            entry
            for entry in owner.opset_import
            if plain_domain(entry.domain) in used or plain_domain(entry.domain) not in domains
        ]
        replace_all(owner.opset_import, entries)
    round_.proto = copy


def nodes_after(model: ModelProto, gone: Mapping[FunctionKey, FunctionProto]) -> int:
    """Return the number of nodes of the model once every call of these functions is replaced."""
    sizes: dict[FunctionKey, int] = {}

    def size(owner: Owner) -> int:
        total = 0
        for graph in scoping.graphs_below(owner):
            for node in graph.node:
                key = called_key(node)
                if key in gone and key not in sizes:
                    sizes[key] = size(gone[key])
                total += sizes.get(key, 1)
        return total

    stay = [one for one in model.functions if function_key(one) not in gone]
    return size(model.graph) + sum(map(size, stay))


def _importers(model: ModelProto) -> list[ModelProto | FunctionProto]:
    return [model, *model.functions]


def _graph(owner: ModelProto | FunctionProto) -> Owner:
    return owner.graph if isinstance(owner, ModelProto) else owner
