"""The library functions behind the commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Unpack

from passes.choices import (
    DEFAULT_OPSET,
    MOST_BYTES,
    MOST_NODES,
    Batch,
    Bounded,
    RuleOptions,
    Target,
)
from passes.lowest import Lowest, find_lowest
from passes.options import (
    Options,
    check_choice,
    check_converting,
    check_unrolling,
    checking_keywords,
    session_of,
)
from passes.session import Result, Source

__all__ = [
    "DEFAULT_OPSET",
    "Options",
    "convert",
    "hoist",
    "lower",
    "lowest_opset",
    "optimize",
    "raise_",
    "simplify",
    "unroll",
    "upgrade",
]


@checking_keywords
def upgrade(
    model: Source,
    *,
    opset: int | None = None,
    batch: str = "auto",
    **options: Unpack[Options],
) -> Result:
    """Upgrade a model to `opset`: Scan-8 with its batch and sequence_lens, and all else.

    `model` is a path or a ModelProto, which is not changed. Where no `opset` is named it goes to
    `DEFAULT_OPSET`, and one that is newer keeps its own. `batch` says how a Scan-8 is rewritten
    (auto, vectorize, nest, unroll); for the other options see `Options`.

    Raises:
        BadModel: the input is no valid model.
        NotProduced: a node cannot be brought to `opset`; `.report` lists all of them.
        NotVerified: no case of a rewrite could be compared.
        Mismatch: a rewrite disagrees with the original.
        ValueError: an option has a value that is not known.
        TypeError: there is no such option, or it is given what it cannot be.
    """
    check_choice("batch", batch, Batch)
    return session_of("upgrade", opset, RuleOptions(batch=batch), options).run(model)


@checking_keywords
def convert(
    model: Source,
    *,
    opset: int | None = None,
    ir_version: int | None = None,
    inline: Sequence[str] = (),
    drop_metadata: bool = False,
    **options: Unpack[Options],
) -> Result:
    """Bring a model to `opset`, a newer or an older one, between 7 and the newest that onnx knows.

    Where only `for_` is given, that is the newest that this release loads, and so is its IR
    version at most. The `ir_version` may be named, too; else it is the model's on the way up, or
    what the opset needs, and on the way down the smallest that opset and content need. What it
    cannot hold is refused; with `drop_metadata`, what says nothing of what is computed is dropped.
    Of the model-local functions those in `inline` become the nodes that they stand for: by name
    (`name` or `domain::name`), `all`, or `unsupported`, which is what the IR version cannot hold,
    where none is named. Without an `opset` and `for_` the model keeps its own.

    Raises what `upgrade` raises; `NotProduced` where a node says what the older opset cannot say,
    and:

    Raises:
        UnknownFunction: the model has no function of a name in `inline`.
        ValueError: nothing is asked for, or an IR version that is not known, or one besides `for_`.
    """
    check_converting(opset, options.get("for_"), ir_version, inline)
    own = RuleOptions(
        inline=tuple(inline) or ("unsupported",), ir_version=ir_version, drop_metadata=drop_metadata
    )
    return session_of("convert", opset, own, options).run(model)


def lowest_opset(model: Source, *, inline: Sequence[str] = ()) -> Lowest:
    """Whether a model can be written in each opset from its own down to 7, and what stops it.

    Nothing is executed, so no outcome is verified, and nothing is written. `inline` is that of
    `convert`.

    Raises:
        BadModel: the input is no valid model.
        UnknownFunction: the model has no function of a name in `inline`.
    """
    return find_lowest(model, RuleOptions(inline=tuple(inline) or ("unsupported",)))


@checking_keywords
def lower(
    model: Source,
    *,
    only: Sequence[str] = (),
    opset: int | None = None,
    **options: Unpack[Options],
) -> Result:
    """Turn every Scan into a Loop.

    `only` are patterns for the paths or names of the loops to rewrite (`main/*/scan_0`). Where an
    `opset` is named, the model is upgraded to it first; a model with a Scan-8 is in any case, to
    `DEFAULT_OPSET`. Raises what `upgrade` raises.
    """
    return session_of("lower", opset, RuleOptions(only=tuple(only)), options).run(model)


@checking_keywords
def raise_(
    model: Source,
    *,
    only: Sequence[str] = (),
    opset: int | None = None,
    **options: Unpack[Options],
) -> Result:
    """Turn Loops into Scans, and whiles into fors, where that is proven.

    Loops that stay are in the report's refusals. Arguments and errors are those of `lower`.
    """
    return session_of("raise", opset, RuleOptions(only=tuple(only)), options).run(model)


@checking_keywords
def unroll(
    model: Source,
    *,
    only: Sequence[str] = (),
    max_nodes: int = MOST_NODES,
    dims: Mapping[str, int] | None = None,
    factor: int | None = None,
    max_trips: int | None = None,
    bounded: str = "auto",
    check_output: str | None = None,
    peel: str | None = None,
    opset: int | None = None,
    **options: Unpack[Options],
) -> Result:
    """Write out every iteration of the loops whose trip count is static, or bounded.

    `dims` fixes symbolic dims of the whole model first, `{"batch": 4}`; the outcome is compared
    with the model so fixed. Loops that stay are in the report's refusals; what all of them
    together write is at most `max_nodes` nodes. With a `factor`, loops do that many iterations at
    a time, whatever their trip count. `peel` (first, last) writes out that one iteration only.

    `max_trips` promises that no Loop runs more often: one whose trip count is not known is written
    out so often. Where that is not enough the outcome fails, or says so in one more output,
    `check_output`, a bool. `bounded` says how an iteration that may not take place is written
    (auto, select, if). The other arguments and errors are those of `lower`, and:

    Raises:
        UnknownDim: no input has a dim of a name in `dims`.
        NameTaken: a value of the model is called as the `check_output` is to be.
        ValueError: an option has a value that is not known, or does not go with the others.
    """
    check_unrolling(factor, max_trips, bounded, check_output, peel)
    own = RuleOptions(
        only=tuple(only),
        max_nodes=max_nodes,
        dims=dims or {},
        bounded=bounded,
        max_trips=max_trips,
        check_output=check_output or "",
    )
    if peel is not None:
        return session_of("peel", opset, replace(own, peel=peel), options).run(model)
    if factor is not None:
        return session_of("unroll-partial", opset, replace(own, factor=factor), options).run(model)
    return session_of("unroll", opset, own, options).run(model)


@checking_keywords
def hoist(
    model: Source,
    *,
    only: Sequence[str] = (),
    rules: Sequence[str] = (),
    skip: Sequence[str] = (),
    max_bytes: int = MOST_BYTES,
    opset: int | None = None,
    **options: Unpack[Options],
) -> Result:
    """Move out of loops and branches what is the same every time, and constants to the top.

    What moves out of a loop and lives on while it runs is at most `max_bytes` bytes. Of the
    `rules` that are named only those run, rules of other commands and distributions behind the
    command's own; those in `skip` do not. What is refused is in the report's refusals. The other
    arguments and errors are those of `lower`, and:

    Raises:
        UnknownRule: there is no rule of a name, or only `upgrade` can run it.
    """
    own = RuleOptions(only=tuple(only), rules=tuple(rules), skip=tuple(skip), max_bytes=max_bytes)
    return session_of("hoist", opset, own, options).run(model)


@checking_keywords
def simplify(
    model: Source,
    *,
    only: Sequence[str] = (),
    rules: Sequence[str] = (),
    skip: Sequence[str] = (),
    opset: int | None = None,
    **options: Unpack[Options],
) -> Result:
    """Drop what loops and branches do in vain or twice, and those that are none.

    Arguments and errors are those of `hoist`.
    """
    own = RuleOptions(only=tuple(only), rules=tuple(rules), skip=tuple(skip))
    return session_of("simplify", opset, own, options).run(model)


@checking_keywords
def optimize(
    model: Source,
    *,
    target: str = "onnxruntime",
    only: Sequence[str] = (),
    rules: Sequence[str] = (),
    skip: Sequence[str] = (),
    dims: Mapping[str, int] | None = None,
    max_nodes: int = MOST_NODES,
    max_bytes: int = MOST_BYTES,
    allow_reassociation: bool = False,
    opset: int | None = None,
    **options: Unpack[Options],
) -> Result:
    """Make the control flow of a model quick, or what a runtime can take.

    `target` is one of four: `onnxruntime` raises Loops to Scans, moves work out of them, and
    simplifies what is left; `scan-only` does the same, for runtimes without Loop; `loop-only`
    leaves no Scan; `no-control-flow` unrolls loops and inlines Ifs, up to `max_nodes` nodes.
    `dims` fixes symbolic dims of the whole model first. With `allow_reassociation`, a loop that
    only sums, multiplies or compares floats becomes an op that does so in another order. Loops
    that stay what they are are in the report's refusals. The other arguments and errors are those
    of `hoist`, and:

    Raises:
        UnknownDim: no input has a dim of a name in `dims`.
        ValueError: there is no such target.
    """
    check_choice("target", target, Target)
    command = "optimize" if target == Target.onnxruntime else f"optimize-{target}"
    own = RuleOptions(
        only=tuple(only),
        rules=tuple(rules),
        skip=tuple(skip),
        dims=dims or {},
        max_nodes=max_nodes,
        max_bytes=max_bytes,
        allow_reassociation=allow_reassociation,
    )
    if target == Target.no_control_flow:  # to unroll into Ifs would not do away with it
        own = replace(own, flat=True, bounded=Bounded.select)
    return session_of(command, opset, own, options).run(model)
