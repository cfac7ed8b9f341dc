"""The command `measure`: the time and memory of models in the runtimes that are installed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from passes.cli.parameters import give_parameters, model_arguments, options_from, parameters_of
from passes.cli.running import beside, check_reports, fail, failing, progress, write
from passes.commands.declaring import Help, WrongValue
from passes.commands.delivery import CLI, Reporting
from passes.errors import NOT_PRODUCED

app = typer.Typer()


@dataclass(frozen=True, kw_only=True)
class Measure(Reporting):
    """The options of `measure`."""

    dims: Annotated[
        Sequence[str],
        Help(
            "Sizes of a free dim to measure at, as `T=64,256,1024`; repeatable. By default 16, 64, "
            "256 and 1024 for the trip count of a loop, and 1 for others.",
            flag="dim",
            metavar="NAME=SIZE,...",
        ),
    ] = ()
    inputs: Annotated[
        str | os.PathLike[str] | None,
        Help(
            "Measure on these inputs: an .npz file with an array for each input, or a folder of "
            "input_N.pb files as in ONNX's test data. By default they are drawn.",
        ),
    ] = None
    runtimes: Annotated[
        Sequence[str],
        Help(
            "A runtime to measure in: `onnxruntime`, `openvino`, `tract` or another one that is "
            "registered; repeatable. By default all that are installed.",
            flag="runtime",
            metavar="RUNTIME",
        ),
    ] = ()
    threads: Annotated[
        str,
        Help("The threads of the runtime: 1, `all`, or both, as `1,all`.", metavar="1|all|1,all"),
    ] = "1"
    budget: Annotated[
        float, Help("Seconds that the measurement may take.", least=0, metavar="S")
    ] = 60.0
    require_gain: Annotated[
        float | None,
        Help("Exit 3 unless the last model is so many times as fast as the first.", least=0),
    ] = None
    seed: Annotated[int, Help("Seed of the drawn inputs.", metavar="N")] = 0
    html: Annotated[
        str | os.PathLike[str] | None,
        Help("Write a page with a plot of the times.", metavar="FILE", shown=CLI),
    ] = None

    def check(self) -> None:
        """See that sizes and threads can be read."""
        super().check()
        self.sizes()
        self.counts()

    def sizes(self) -> dict[str, list[int]]:
        """The sizes by name of the dim."""
        found: dict[str, list[int]] = {}
        for text in self.dims:
            name, _, sizes = text.rpartition("=")
            if not name or not all(size.strip().isdecimal() for size in sizes.split(",")):
                raise WrongValue("dims", f"is {text!r}, not of the form NAME=SIZE,SIZE,...")
            if not all(map(int, sizes.split(","))):
                raise WrongValue("dims", f"is {text!r}, a size must be 1 or more")
            found.setdefault(name, []).extend(map(int, sizes.split(",")))
        return found

    def counts(self) -> list[int]:
        """The numbers of threads, 0 for all."""
        words = {"1": 1, "all": 0}
        if not all(word in words for word in self.threads.split(",")):
            raise WrongValue("threads", f"is {self.threads!r}, not one of 1, all, 1,all")
        return [words[word] for word in dict.fromkeys(self.threads.split(","))]


def _measure(before: Path, after: list[Path] | None, **given: Any) -> None:
    """Measure the time and memory of models in the runtimes that are installed, side by side.

    All models get the same inputs and are called in turn, each in a process of its own. Times are
    medians of calls, with half the distance between their quartiles; the last line compares the
    first model with the last one at the largest sizes.
    """
    from passes.check import load_checked
    from passes.measuring.measuring import Settings, measure_models
    from passes.verify.inputs.given import load

    options = options_from(Measure, given)
    paths = [before, *(after or [])]
    with failing(before):
        check_reports((options.json, options.html), paths)
        models = [load_checked(path)[0] for path in paths]
        inputs = None if options.inputs is None else load(Path(options.inputs), models[0].proto)
        settings = Settings(
            options.sizes(),
            inputs,
            options.seed,
            options.runtimes,
            options.counts(),
            options.budget,
        )
        with progress("measuring"):
            found = measure_models(models, settings)
    beside(options.json, options.html)(found.to_text())
    if options.json is not None:
        write(options.json, found.to_json())
    if options.html is not None:
        from passes.reports.pages.measured import as_html

        write(options.html, as_html(found))
    if found.headline is None:
        fail(f"{before}: {found.line}", NOT_PRODUCED)
    if options.require_gain is not None and (found.gain or 0.0) < options.require_gain:
        asked = f"--require-gain asks for {options.require_gain:g}x"
        fail(f"{paths[-1]}: the gain is {found.gain:.2f}x, {asked}", NOT_PRODUCED)


_AFTER: Any = Annotated[
    list[Path] | None,
    typer.Argument(help="Models to compare with it.", metavar="[AFTER]...", readable=False),
]
_ARGUMENTS = model_arguments(before="The model: binary, or .onnxtxt, .json, ...")
_ARGUMENTS.append(_ARGUMENTS[0].replace(name="after", default=None, annotation=_AFTER))
give_parameters(_measure, [*_ARGUMENTS, *parameters_of(Measure)])
app.command("measure", short_help="Measure models in the runtimes, side by side.")(_measure)
