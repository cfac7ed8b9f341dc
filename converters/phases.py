"""What phases that convert do besides their rules, and what `convert` does after all of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from onnx import ModelProto, NodeProto

from passes.choices import DEFAULT_OPSET, RuleOptions
from passes.converters.ir_version import fit
from passes.converters.stamp import limits, newer_domains, stamp
from passes.engine.rounds import Round
from passes.errors import NotProduced
from passes.ir import scope as scoping
from passes.ir.live import keep_nodes, live
from passes.ir.model import Model
from passes.ir.operators import op_of
from passes.ir.protos import copied
from passes.ir.scope import Scope
from passes.ir.versions import SCAN_8
from passes.onnxruntime.releases import Release
from passes.reports.report import Record, Report
from passes.rule import Edit


def if_asked(model: Model, asked: int | None, options: RuleOptions) -> Model | None:
    """The model if an opset was asked for, else None."""
    return None if asked is None else model


def if_needed(model: Model, asked: int | None, options: RuleOptions) -> Model | None:
    """The model if an opset was asked for, or it holds a Scan-8, which only the rules that convert
    support, else None."""
    holds = model.opset() <= SCAN_8 and any("Scan" in counted for _, counted in model.operators)
    return model if holds else if_asked(model, asked, options)


def if_too_old(model: Model, asked: int | None, options: RuleOptions) -> Model | None:
    """The model if an opset was asked for, or the element types that are asked for need a newer
    one than it has, else None."""
    needs = options.default_opset if options.default_opset > DEFAULT_OPSET else 0
    return model if model.newest_opset < needs else if_needed(model, asked, options)


def finish(round_: Round, target: int | None, options: RuleOptions) -> None:
    """Drop what was read as fixed from the outcome, and declare the opset that it is written in;
    the original stays as it is."""
    assert target is not None
    _drop_folded(round_)
    owners = [None, *round_.model.proto.functions]
    if round_.refused or all((round_.model.opset(one) or target) == target for one in owners):
        return
    if round_.proto is round_.model.proto:
        round_.proto = copied(round_.proto)
    stamp(round_.proto, target)


def at_ir_version(
    original: Model,
    proto: ModelProto,
    report: Report,
    options: RuleOptions,
    release: Release | None,
) -> tuple[ModelProto, Report]:
    """Return the outcome at its IR version, and the report with that version.

    Raises:
        NotProduced: it holds what that version cannot.
    """
    asked, drop = options.ir_version, options.drop_metadata
    fitted = fit(original.proto, proto, asked, exact=release is None, drop=drop)
    before, after = report.opsets
    undeclared = limits(proto, after) if after < before else []
    refused = [*fitted.refused, *(("main", "graph", "no-equivalent", one) for one in undeclared)]
    newer = newer_domains(proto, after) if after < before else ()
    report = replace(
        report,
        ir_versions=(original.proto.ir_version, fitted.version),
        records=[*report.records, *(Record.not_held(*one) for one in refused)],
        notes=[*report.notes, *fitted.notes, *newer],
    )
    if refused:
        raise NotProduced(report.refusal, report)
    return fitted.model, report


def _drop_folded(round_: Round) -> None:
    """Drop, from the outcome of a round, the nodes whose values were fixed before the model runs
    and that nothing reads any more, with what was refused of them: they cannot fail."""
    folded: set[str] = set()
    for rewritten in round_.rewritten:
        # a template reads no computed values as fixed
        if rewritten.rule.name == "opset" and isinstance(rewritten.written, Edit):
            for name in (name for node in rewritten.written.context for name in node.output):
                _collect(round_.model, rewritten.scope, name, folded)
    if not folded:
        return
    for rewritten in round_.rewritten:
        if _is_among(rewritten.node, folded):
            folded.update(name for node in rewritten.edit.nodes for name in node.output)
    graphs = [graph for _, graphs in round_.model.graphs for graph in graphs]
    defined = Counter(name for graph in graphs for name in scoping.defined(graph))
    folded -= {name for name, times in defined.items() if times > 1}

    for _, owner in scoping.owners(round_.proto):
        for graph in reversed(list(scoping.graphs_below(owner))):
            kept, _ = live(
                graph.node,
                scoping.ends(graph),
                scoping.free_names,
                stays=lambda node: not _is_among(node, folded),
            )
            folded.difference_update(name for node in kept for name in node.output)
            if len(kept) < len(graph.node):
                keep_nodes(graph, kept)
    round_.refused[:] = [one for one in round_.refused if not _is_among(one.place.node, folded)]


def _is_among(node: NodeProto, names: set[str]) -> bool:
    written = [name for name in node.output if name]
    return bool(written) and names.issuperset(written)


def _collect(model: Model, scope: Scope, name: str, found: set[str]) -> None:
    """Add what is computed for a value, from constants and sizes alone."""
    home = model.home(scope, name) if name else None
    node = model.producer(home.owner, name) if home else None
    if home is None or node is None or name in found:
        return
    found.update(filter(None, node.output))
    if op_of(node) == "Shape":  # what it reads is no constant
        return
    for read in node.input:
        _collect(model, home, read, found)
