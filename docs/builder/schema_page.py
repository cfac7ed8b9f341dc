"""Tables of the keys that a JSON schema describes, a heading for each table in it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from typing import Any

Schema = Mapping[str, Any]
_TOP = "Top level"

#: What the keys mean of which a schema has no description.
MEANINGS = {
    "pipelines": "Pipelines by name: lists of steps.",
    "verify": "How outcomes are verified.",
    "overrides": "Options for some of the models; the last entry that matches counts.",
    "overrides.verify": "How outcomes of these models are verified.",
    "schema_version": "The version of this form.",
    "tools": "Versions of this tool, Python and what executes models.",
    "end": "What became of the model.",
    "exit_code": "The exit code.",
    "error": "The sentence that tells why there is no outcome; empty where there is one.",
    "seconds": "Seconds that the work took.",
    "commands": "The commands of the pipeline, with all options.",
    "dims": "Symbolic dims that were fixed.",
    "input": "The model file and the files of its weights.",
    "output": "The files that were written.",
    "remarks": "What to know of the files, such as a damaged entry of the cache.",
    "reproducer": "The folder with both sides of a mismatch, and the inputs that show it.",
    "meanings": "The meaning of each refusal code in `records`.",
    "command": "The last command.",
    "file": "The model, as it was named.",
    "opsets": "The opset before and after.",
    "sizes": "The size of the model before and after.",
    "records": "Each place that a rule rewrote or refused.",
    "checked": "The verdict on the whole model; null without verification.",
    "failure": "Why there is no outcome, where no record tells it.",
    "warnings": "What to know of the outcome.",
    "notes": "What to know of the model as it was read.",
    "ir_versions": "The IR version before and after; 0 where the command chooses none.",
    "bound": "A sentence for each input and output whose type changed.",
    "proof": "With `--prove`: [what the proof found](../proof.md).",
    "casts": "By `cast`: [what became of element types](../precision.md).",
    "casts.before": "An element type.",
    "casts.after": "The type that it became, as far as that holds.",
    "casts.values": "Values of the second type, and those of the first one before.",
    "casts.weights": "Bytes of weights of the first type before, and of the same after.",
    "casts.casts": "Casts that were written.",
    "casts.kept": "Nodes that keep the first type, by reason.",
    "kept.code": "The reason in a word.",
    "kept.sentence": "The reason.",
    "kept.paths": "The paths of the nodes.",
    "kept.operators": "Nodes by operator.",
    "within": "How far the outcome of a cast is off; null if it was not executed.",
    "within.bound": "The error that is allowed; null if any is.",
    "within.errors": "The error of each output at each length.",
    "within.differing": "Discrete results that differ.",
    "within.ranges": "Values that overflow or become 0, the worst first, and the largest one.",
    "within.grows": "Outputs whose error grows with the length.",
    "within.inputs": "What the models were run on.",
    "within.executor": "How they were executed.",
    "within.loads": "Why onnxruntime does not run the outcome; empty if it does.",
    "within.not_run": "Lengths that were not run, with the reason.",
    "within.raised": "Nodes that keep their type for the sake of the bound.",
    "within.ran": "Whether a case ran.",
    "within.failure": "Why there are no errors; empty if there are.",
    "errors.output": "The output.",
    "errors.length": "The size of the dims on which trip counts depend; null if there is none.",
    "errors.error": "The largest difference over the largest element.",
    "errors.worst": "The index of the element with the largest difference.",
    "errors.was": "That element before.",
    "errors.now": "That element after; null if it is not finite.",
    "errors.unsure": "The error of the original under other roundings.",
    "errors.overflows": "Elements that are finite before, and not after.",
    "differing.what": "An output, a trip count or a branch.",
    "differing.length": "As that of errors.",
    "differing.different": "How many differ.",
    "differing.total": "Of how many.",
    "differing.unsure": "How many differ under other roundings of the original.",
    "ranges.path": "The path of the node that computes the value.",
    "ranges.largest": "Its largest magnitude.",
    "ranges.smallest": "Its smallest magnitude but 0.",
    "ranges.overflows": "Elements that the type makes infinite.",
    "ranges.underflows": "Elements that the type makes 0.",
    "advice": "What to do next, the most valuable first.",
    "advice.command": "A command line.",
    "advice.effect": "What it does, as far as that was tried; empty where it was not.",
    "advice.gain": "How many times as fast as the original its outcome is; null if not measured.",
    "findings": "Under `--strict`: what is in the way of the outcome at its target.",
    "commands.command": "Its name.",
    "commands.options": "Its options, also those that were not named.",
    "commands.flags": "The arguments that give those that are no defaults.",
    "input.path": "The path.",
    "input.bytes": "The size in bytes.",
    "input.sha256": "The SHA-256 of the content.",
    "output.path": "The path.",
    "output.bytes": "The size in bytes.",
    "output.sha256": "The SHA-256 of the content.",
    "sizes.nodes": "Nodes, those of bodies and functions included.",
    "sizes.loops": "Scan and Loop nodes.",
    "sizes.operators": "Nodes by operator.",
    "records.rule": "The rule.",
    "records.path": "The path of the node.",
    "records.op": "Its operator.",
    "records.outcome": "What the rule did.",
    "records.note": "How it rewrote the node.",
    "records.code": "The code of a refusal.",
    "records.sentence": "Why it refused.",
    "records.culprits": "The nodes and values that are in the way.",
    "records.optional": "Whether the outcome can do without this rewrite.",
    "records.checked": "The verdict on the rewrite.",
    "records.extras": "Nodes that a shorter rewrite would do without.",
    "records.asked": "Whether the rule was asked for, by its name or by the command.",
    "records.lifted_by": "Options, by name, each of which would lift a refusal; null for a value "
    "that only the user knows.",
    "records.loop": "The innermost loop that the node is, or is located in.",
    "checked.verdict": "`verified`, `mismatch` or `not-compared`.",
    "checked.reason": "What the verdict rests on.",
    "checked.compared": "Cases that were compared, by executor.",
    "checked.crossed": "Cases compared with the reference executor, by executor.",
    "checked.max_absolute_error": "The largest absolute difference of floats.",
    "checked.max_relative_error": "The largest relative difference of floats.",
    "checked.max_ulp_error": "The largest difference in units of the last place.",
    "checked.alike": "`bits`, `values` (only signs of zeros differ) or `near`.",
    "checked.not_run": "What was left out when the time was over.",
    "checked.notes": "Differences that do not count, and why.",
    "checked.unreached": "What no case reached.",
    "checked.same_as": "The path of an equal rewrite that was verified for both.",
    "checked.excuses": "Cases whose differences do not count, by excuse.",
    "checked.seconds": "Seconds that verification took.",
    "spent": "Seconds that the command took, by phase.",
    "records.value": "The first output of that loop, which keeps its name when paths change.",
    "checked.cases": "Each case in each executor.",
    "cases.executor": "The executor.",
    "cases.case": "The kind of inputs.",
    "cases.status": "The result of the case.",
    "cases.sentence": "Why the case shows no agreement; empty if it does.",
    "cases.inputs": "The inputs, in short.",
    "cases.worst": "The element with the largest difference of floats.",
    "measured": "With `--measure`: [the time before and after](../tasks/measure.md).",
    "measured.files": "The models.",
    "measured.bytes": "Their sizes in bytes, weights in other files included.",
    "measured.free": "The dim that the trip count of a loop depends on.",
    "measured.rows": "The times at each set of sizes in each runtime.",
    "rows.runtime": "The runtime.",
    "rows.version": "Its version.",
    "rows.threads": "The number of its threads; 0 for as many as it likes.",
    "rows.sizes": "The sizes by dim.",
    "rows.iterations": "Iterations of the loops of the first model; null if unknown.",
    "rows.timings": "The time of each model.",
    "timings.seconds": "The median of the calls, in seconds.",
    "timings.spread": "Half the distance between their quartiles, as a share of it.",
    "timings.calls": "The number of calls.",
    "timings.loading": "Seconds to load the model.",
    "timings.memory": "Peak of the memory in bytes beyond that of the runtime; 0 if unknown.",
    "timings.failure": "Why the model was not measured; empty if it was.",
    "records.regroups": "Whether sums of floats are regrouped.",
    "spent.loading": "Seconds to load the model.",
    "spent.rewriting": "Seconds to rewrite it, checks included.",
    "spent.rules": "Seconds of the rewriting in each rule.",
    "spent.verifying": "Seconds to verify the outcome.",
    "spent.proving": "Seconds to prove it.",
    "extras.nodes": "How many nodes.",
    "extras.purpose": "What they are for.",
    "extras.option": "The option that leaves them out.",
    "proof.verdict": "`proven`, `unproven`, `not-provable`, or `disproven` (by `passes prove`).",
    "proof.code": "Why it is not proven, in a word.",
    "proof.detail": "A sentence on it.",
    "proof.output": "The output that is not proven, and its element or size.",
    "proof.before": "What it is before, as a formula: the smallest part that differs.",
    "proof.after": "What it is after.",
    "proof.within": "What these are a part of, as the step of a state.",
    "proof.where": "The conditions of the case in which the proof ended.",
    "proof.node": "The node at which it ended.",
    "proof.assumed": "What the proof assumes, in words.",
    "proof.promised": "The promises of the user that the proof may use, each after its option.",
    "proof.paths": "The number of cases that it distinguished.",
    "proof.inputs": "The inputs that disprove it, in short.",
    "proof.scope": "What the proof covers.",
    "proof.at_sizes": "Why there is no proof at drawn sizes, either; empty if it was not tried.",
    "scope.method": "`symbolic`, or at drawn sizes `terms` or `field` (up to the order of sums).",
    "scope.draws": "The drawn cases, unless it is symbolic.",
    "scope.decisions": "The number of conditions on floats after which a run was left out.",
    "scope.bits": "The error of `field` is below 2 to the power of minus this.",
    "scope.executed": "The number of executed cases that agree.",
    "scope.static": "Whether no size of an input is free, and all inputs are covered.",
    "scope.stated": "The ranges of sizes for which it is proven, if these are not all.",
    "stated.name": "A size, or an input that is a trip count.",
    "stated.first": "Its first value.",
    "stated.last": "Its last value.",
    "scope.regrouped": "Whether a symbolic proof holds up to the order of sums only.",
    "draws.shapes": "The shape of each input.",
    "draws.elements": "The elements of inputs that are not left open.",
    "findings.code": "The kind of the finding.",
    "findings.path": "The path of a node, value or function.",
    "findings.op": "The operator.",
    "findings.sentence": "What the target does not take.",
    "findings.confidence": "How sure that is.",
    "findings.otherwise": "What the target does with it.",
}

_CONFIGURATION = """# The configuration file: passes.toml

`passes run` reads `passes.toml`, or the table `[tool.passes]` of `pyproject.toml`, of the current
folder or of the nearest one above; `--config FILE` names another. `passes init` writes a commented
one. [Builds in detail](../build.md) explains outcomes, limits, the cache and clusters.

Paths are relative to the file. Editors complete and check it with the schema
`passes/builds/config.schema.json`, of which this page is made. An unknown key is an error: the
sentence names its line and the nearest key.
"""
_STEPS = """
## Steps of a pipeline

A step is the name of a command, or a table `{command = "unroll", max-nodes = 5000}` with any of its
options:

"""
_REPORT = """# The JSON report

`passes COMMAND MODEL --json FILE` writes it on every exit, `--json -` to stdout; `passes run
--results FILE` writes one a line, as the key `report`. It fits the schema
`passes/builds/report-1.schema.json`, of which this page is made. `schema_version` changes when a
key is removed or changes its meaning.

A key that is not required has its default in the report of a model that cannot be read.
[Exit codes](exit-codes.md) explains `exit_code`.
"""


def configuration() -> str:
    """The page of `passes.toml`."""
    schema = _read("config.schema.json")
    steps = [step for step in schema["$defs"]["step"]["anyOf"] if "properties" in step]
    lines = [_CONFIGURATION, *_tables(_TOP, schema, schema)]
    options = {
        step["properties"]["command"]["const"]: [
            key for key in step["properties"] if key != "command"
        ]
        for step in steps
    }
    shared = [key for key in options["lower"] if all(key in own for own in options.values())]
    lines += [_STEPS.rstrip("\n"), "", "| command | options |", "|---|---|"]
    lines.append(_row(("every command", _listed(shared))))
    for name, own in options.items():
        lines.append(_row((f"`{name}`", _listed([key for key in own if key not in shared]))))
    lines += ["", "[Commands and options](commands.md) explains each."]
    return "\n".join(lines) + "\n"


def report() -> str:
    """The page of the report file."""
    schema = _read("report-1.schema.json")
    return "\n".join([_REPORT, *_tables(_TOP, schema, schema)]) + "\n"


def _listed(keys: Sequence[str]) -> str:
    return ", ".join(f"`{key}`" for key in keys)


def _read(name: str) -> Any:
    return json.loads(resources.files("passes.builds").joinpath(name).read_text(encoding="utf-8"))


def _tables(
    title: str, table: Schema, whole: Schema, shown: set[str] | None = None
) -> Iterator[str]:
    """A heading and a table for an object, then those of the objects in it, each once."""
    shown = set() if shown is None else shown
    required = table.get("required", ())
    head = ("key", "type", "default", "meaning")
    yield from (f"## {title}", "", _row(head), _row(["---"] * len(head)))
    inner: dict[str, Schema] = {}
    for key, found in table["properties"].items():
        schema = _resolved(found, whole)
        deeper = _object_in(schema, whole)
        kind = _type(schema, whole)
        if deeper is not None:
            inner[key] = deeper
            kind += f", [see below](#{_anchor(key)})"
        default = "required" if key in required else ""
        if "default" in schema:
            default = f"`{json.dumps(schema['default'])}`"
        meaning = schema.get("description") or MEANINGS.get(_name(title, key), "")
        yield _row((f"`{key}`", kind, default, meaning))
    yield ""
    for key, deeper in inner.items():
        if key not in shown:
            shown.add(key)
            yield from _tables(f"`{key}`", deeper, whole, shown)


def _name(title: str, key: str) -> str:
    """What a key is called in `MEANINGS`."""
    return key if title == _TOP else f"{title.strip('`')}.{key}"


def _anchor(key: str) -> str:
    return key.lower()


def _row(cells: Any) -> str:
    return "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells) + " |"


def _resolved(schema: Schema, whole: Schema) -> Schema:
    if "$ref" not in schema:
        return schema
    found: Schema = whole["$defs"][schema["$ref"].rpartition("/")[2]]
    return found


def _object_in(schema: Schema, whole: Schema) -> Schema | None:
    """The table that values are, or are lists of, where its keys are known."""
    options = [schema, *schema.get("anyOf", ())]
    options += [_resolved(one["items"], whole) for one in options if one.get("items")]
    return next((one for one in options if "properties" in one), None)


def _type(schema: Schema, whole: Schema) -> str:
    """A type in words."""
    schema = _resolved(schema, whole)
    if "enum" in schema:
        return " or ".join(f"`{word}`" for word in schema["enum"])
    if "prefixItems" in schema:
        return f"a pair of {_type(schema['prefixItems'][0], whole)}s"
    if "anyOf" in schema:
        if any("properties" in one and "command" in one["properties"] for one in schema["anyOf"]):
            return "step"
        return " or ".join(_type(one, whole) for one in schema["anyOf"])
    if "const" in schema:
        return f"`{schema['const']}`"
    kind: str = schema.get("type", "any value")
    if kind == "array":
        item = _type(schema["items"], whole)
        return f"list of {item}" if item.startswith("`") else f"list of {item}s"
    if kind == "object":
        values = schema.get("additionalProperties")
        if not values:
            return "table"
        item = _type(values, whole)
        return f"{item}s by name" if " " not in item else f"by name, a {item}"
    return kind
