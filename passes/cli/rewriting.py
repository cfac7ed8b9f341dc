"""The commands that rewrite a model. Each imports what it needs, so help is quick."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import typer

from passes.choices import MOST_BYTES, MOST_NODES, Batch, Bounded, Target
from passes.cli.making import rewriting
from passes.cli.options import (
    BatchOption,
    BoundedOption,
    CheckOutput,
    Dims,
    DropMetadata,
    Factor,
    Inline,
    IrVersion,
    LowestOption,
    MaxBytes,
    MaxNodes,
    MaxTrips,
    Only,
    PeelOption,
    Reassociation,
    RuleOption,
    Skip,
    TargetOption,
    sizes_of,
)
from passes.cli.running import check_report, exit_code_of, fail, tell, write

if TYPE_CHECKING:
    from passes.cli.options import CommonOptions
    from passes.options import WithOpset
    from passes.session import Result

app = typer.Typer()


@rewriting(app, "upgrade", short_help="Upgrade a model to a newer opset.", suffix="opset{opset}")
def upgrade(
    model: Path,
    *,
    batch: BatchOption = Batch.auto,
    **common: Unpack[WithOpset],
) -> Result:
    """Upgrade a model to a newer opset: Scan-8, with its batch and sequence_lens, and all else.

    Nothing is written unless every node got there and every rewrite was verified.
    """
    from passes import api

    return api.upgrade(model, batch=batch.value, **common)


def _lowest(model: Path, output: Path | None, common: CommonOptions, mine: dict[str, Any]) -> bool:
    """Report how far down a model goes, where that is what was asked for."""
    if not mine.pop("lowest"):
        return False
    named = {
        "--opset": common.opset,
        "--for": common.for_,
        "--ir-version": mine["ir_version"],
        "--output": output,
    }
    for option, value in named.items():
        if value is not None:
            raise typer.BadParameter(f"does not go together with {option}", param_hint="--lowest")
    from passes import api
    from passes.errors import PassesError

    check_report(common.json, (model,))
    try:
        found = api.lowest_opset(model, inline=mine["inline"] or ())
    except PassesError as error:
        fail(f"{error}", exit_code_of(error))
    tell(found.to_text(verbose=common.verbose))
    if common.json is not None:
        write(common.json, found.to_json())
    return True


@rewriting(
    app,
    "convert",
    short_help="Bring a model to another opset, up or down.",
    suffix="opset{opset}",
    suffix_without_opset="converted",
    instead=_lowest,
)
def convert(
    model: Path,
    *,
    ir_version: IrVersion = None,
    inline: Inline = None,
    drop_metadata: DropMetadata = False,
    lowest: LowestOption = False,
    **common: Unpack[WithOpset],
) -> Result:
    """Bring a model to another opset, a newer or an older one, from 7 on, or to an IR version.

    Nothing is written unless every node got there and every rewrite was verified; what cannot be
    said in the older opset is reported, and exits with 3.
    """
    from passes import api
    from passes.options import check_converting

    named = inline or ()
    try:
        check_converting(common["opset"], common.get("for_"), ir_version, named)
    except ValueError as error:
        raise typer.BadParameter(f"{error}") from error
    return api.convert(
        model, ir_version=ir_version, inline=named, drop_metadata=drop_metadata, **common
    )


@rewriting(app, "lower", short_help="Turn every Scan into a Loop.", suffix="lowered")
def lower(model: Path, *, only: Only = None, **common: Unpack[WithOpset]) -> Result:
    """Turn every Scan into a Loop; a model with a Scan-8 is upgraded first.

    Nothing is written unless every Scan became one and every rewrite was verified.
    """
    from passes import api

    return api.lower(model, only=only or (), **common)


@rewriting(app, "raise", short_help="Turn Loops into Scans, where that is proven.", suffix="raised")
def raise_(model: Path, *, only: Only = None, **common: Unpack[WithOpset]) -> Result:
    """Turn Loops into Scans, and whiles into fors, where that is proven to be the same.

    A Loop that stays is reported with what its proof lacks; under --strict that exits with 3.
    """
    from passes import api

    return api.raise_(model, only=only or (), **common)


@rewriting(app, "unroll", short_help="Write out loops of a static length.", suffix="unrolled")
def unroll(
    model: Path,
    *,
    only: Only = None,
    max_nodes: MaxNodes = MOST_NODES,
    dim: Dims = None,
    factor: Factor = None,
    max_trips: MaxTrips = None,
    bounded: BoundedOption = Bounded.auto,
    check_output: CheckOutput = None,
    peel: PeelOption = None,
    **common: Unpack[WithOpset],
) -> Result:
    """Write out every iteration of the loops whose trip count is static, or bounded.

    A loop that stays is reported with the reason; under --strict that exits with 3.
    """
    from passes import api
    from passes.options import check_unrolling

    mode = None if peel is None else peel.value
    try:
        check_unrolling(factor, max_trips, bounded.value, check_output, mode)
    except ValueError as error:
        raise typer.BadParameter(f"{error}") from error
    return api.unroll(
        model,
        only=only or (),
        max_nodes=max_nodes,
        dims=sizes_of(dim),
        factor=factor,
        max_trips=max_trips,
        bounded=bounded.value,
        check_output=check_output,
        peel=mode,
        **common,
    )


@rewriting(app, "hoist", short_help="Move work and constants out of loops.", suffix="hoisted")
def hoist(
    model: Path,
    *,
    only: Only = None,
    rule: RuleOption = None,
    skip: Skip = None,
    max_bytes: MaxBytes = MOST_BYTES,
    **common: Unpack[WithOpset],
) -> Result:
    """Move out of loops and branches what is the same every time, and constants to the top."""
    from passes import api

    chosen = _chosen(only, rule, skip)
    return api.hoist(model, max_bytes=max_bytes, **chosen, **common)


@rewriting(app, "simplify", short_help="Drop what loops do in vain.", suffix="simplified")
def simplify(
    model: Path,
    *,
    only: Only = None,
    rule: RuleOption = None,
    skip: Skip = None,
    **common: Unpack[WithOpset],
) -> Result:
    """Drop what loops and branches do in vain or twice, and those that are none.

    What might fail stays, for the new model must fail where the old one does; --assume
    valid-inputs lets it go.
    """
    from passes import api

    return api.simplify(model, **_chosen(only, rule, skip), **common)


@rewriting(app, "optimize", short_help="Do all that helps, for a --target.", suffix="optimized")
def optimize(
    model: Path,
    *,
    target: TargetOption = Target.onnxruntime,
    only: Only = None,
    rule: RuleOption = None,
    skip: Skip = None,
    dim: Dims = None,
    max_nodes: MaxNodes = MOST_NODES,
    max_bytes: MaxBytes = MOST_BYTES,
    allow_reassociation: Reassociation = False,
    **common: Unpack[WithOpset],
) -> Result:
    """Make the control flow of a model quick, or such that a runtime can take it.

    What a rule does not apply to is reported with the reason. Under --strict it exits with 3 if a
    Loop stays, or, by target: a Scan (loop-only), any control flow (no-control-flow).
    """
    from passes import api

    return api.optimize(
        model,
        target=target.value,
        dims=sizes_of(dim),
        max_nodes=max_nodes,
        max_bytes=max_bytes,
        allow_reassociation=allow_reassociation,
        **_chosen(only, rule, skip),
        **common,
    )


def _chosen(only: Only, rule: RuleOption, skip: Skip) -> dict[str, Sequence[str]]:
    return {"only": only or (), "rules": rule or (), "skip": skip or ()}
