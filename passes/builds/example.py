"""A commented `passes.toml` to begin with."""

from __future__ import annotations

import glob
import json
from collections.abc import Sequence
from pathlib import Path

_TEXT = """\
# What `passes run` does. Paths are relative to this file. Every key is explained in docs/build.md.

# Files, folders, or patterns; ** matches any folders.
models = [{models}]

# {{stem}}, {{name}} and {{suffix}} are of the model's file, {{folder}} is its folder below the one
# that all models are in, {{opset}} the opset of the outcome.
output = "build/{{folder}}/{{name}}"

# The pipeline that is run unless `passes run PIPELINE` names another.
pipeline = "default"

# Processes that work at a time.
jobs = 2

# A line of JSON for each model.
results = "build/results.jsonl"

# What fails the build: by default all but written and unchanged of written, unchanged, incomplete,
# refused, unverified, mismatch, invalid, usage, time, memory, died.
# fail-on = ["mismatch", "invalid", "usage", "time", "memory", "died"]

# Seconds and MiB that one model may take.
time-limit = 600
# memory-limit = 4096

# Whether a model is not written, and ends as incomplete, if a loop stays that the pipeline is to
# rewrite.
# strict = true

# Symbolic dims that are fixed, or equal to another one, in the models that have them.
# dims = {{batch = 1, T = "time"}}

[pipelines]
# A list of commands: names, or tables with their options. `passes COMMAND --help` explains these.
default = ["optimize"]
# portable = [
#   {{command = "convert", opset = 17}},
#   {{command = "optimize", target = "loop-only", max-nodes = 5000}},
# ]

[verify]
# Seconds that the verification of one model may take.
budget = 60
# executor = "both"
# seed = 0
# Prove each outcome, too, and write none without a proof of that scope: all, sizes or summation.
# prove = true
# require-proof = "summation"

# Some models, another way; the last entry that matches counts.
# [[overrides]]
# models = ["models/large/*"]
# pipeline = "portable"
# verify = {{budget = 300}}
"""


def example(models: Sequence[Path]) -> str:
    """The text of a file for the models below a folder."""
    folders = {(model.parts[0] if len(model.parts) > 1 else "", model.suffix) for model in models}
    patterns = [
        f"{glob.escape(folder)}/**/*{suffix}" if folder else f"*{suffix}"
        for folder, suffix in sorted(folders)
        if not folder.startswith(".") and folder != "build" and ".reproducer" not in folder
    ]
    # a string of JSON is one of TOML
    quoted = [json.dumps(one, ensure_ascii=False) for one in patterns or ["models/**/*.onnx"]]
    return _TEXT.format(models=", ".join(quoted))
