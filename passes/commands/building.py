"""The commands `run`, which does what a file describes, and `init`, which writes such a file."""

from __future__ import annotations

import glob
import json
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from passes.commands.declaring import Place, argument, option
from passes.commands.delivery import API, CLI, Working
from passes.commands.registry import command
from passes.commands.standalone import Output, Say, Standalone, silent
from passes.errors import WrongUsage, count, writing

if TYPE_CHECKING:
    from passes.builds.batch import Batch, Listener
    from passes.builds.config import Config
    from passes.reports.summary import Summary
else:
    Listener = Any


@command("run", short_help="Build many models, as passes.toml describes it.")
@dataclass(frozen=True)
class Run(Working, Standalone):
    """Take models through a pipeline, as `passes.toml` describes it.

    PIPELINE is one of the file, and may be left out; MODEL are files, folders or patterns, by
    default those of the file. A model that is known from an earlier run is not worked on again.
    Exit 0 if no model fails the build, else the code of the worst.
    """

    config: Place | None = option(
        None,
        "The file that describes the build, instead of the passes.toml or pyproject.toml of "
        "this folder or the nearest one above.",
        metavar="FILE",
    )
    pipeline: str | None = option(None, "A pipeline of the file.", shown=API)
    models: Sequence[Place] = option((), "Files, folders or patterns of models.", shown=API)
    _: KW_ONLY
    names: Sequence[str] = argument(
        "A pipeline of the file, then files, folders or patterns of models.",
        metavar="PIPELINE|MODEL",
        shown=CLI,
        default=(),
    )
    client: Any = option(None, "A `distributed.Client`, whose workers do it.", shown=API)
    cache: bool = option(True, "Remember outcomes from run to run.")
    listener: Listener = option(
        lambda row, number, total: None,
        "Is called with each row, the number of rows so far, and that of all.",
        shown=API,
    )
    verbose: bool = option(False, "Print a line for each model.", shown=CLI)

    def run(self, say: Say = silent) -> Summary:
        """Return the summary of the rows.

        Raises:
            BadConfig: the file is invalid, or has no such pipeline.
            NoModels: a path or pattern names nothing.
            SameOutput: two models have one output.
            InTheWay: an output is one of the models.
            CannotWrite: a file cannot be written.
            BadCache: the folder of the cache cannot be written.
            NoCluster: the workers cannot do it.
        """
        return self._batch(self._file(), self.pipeline, self.models).run(self.listener)

    def outputs(self, say: Say = silent) -> Iterator[Output]:
        from passes.builds.sources import listed

        file = self._file()
        pipeline, named = self._split(file)
        if self.from_file is not None:
            named += listed(Path(self.from_file))
        yield from self.shown(self._batch(file, pipeline, named), say, verbose=self.verbose)

    def files(self) -> Sequence[Path]:
        return ()

    def _file(self) -> Config:
        from passes.builds.config import find, load

        path = find(Path.cwd()) if self.config is None else Path(self.config)
        if path is None:
            raise WrongUsage("there is no passes.toml here or above; `passes init` writes one")
        return load(path)

    def _split(self, file: Config) -> tuple[str | None, list[str]]:
        """The pipeline, if the first name is one, and the models.

        Raises:
            BadConfig: the first name is neither a pipeline nor a path.
        """
        names = [*self.names]
        first = names[0] if names else ""
        if first in file.pipelines:
            return first, names[1:]
        if first and not Path(first).exists() and not any(mark in first for mark in "*?[/."):
            file.pipeline(first, {})
        return None, names

    def _batch(self, file: Config, pipeline: str | None, named: Sequence[Place]) -> Batch:
        """The batch of a file: of the models that are `named`, or all, those of a shard."""
        from passes.builds.batch import Batch
        from passes.builds.cache import default_folder
        from passes.builds.cluster import connected
        from passes.builds.sources import NoModels, common_folder, found, shard

        every = found(file.build.models, file.folder)
        models: Sequence[str] = found(named) if named else every
        if not models:
            raise NoModels(f"{file.path}: `models` is empty, and no model is named")
        folder = common_folder(every or models)
        models = models if self.shard is None else shard(models, self.shard)
        tasks = [file.task(model, folder, pipeline) for model in models]
        own, results, html = file.build.cache_dir, file.build.results, file.build.html
        place = default_folder() if own is None else file.folder / own
        jobs = self.jobs or file.build.jobs
        batch = Batch(
            [(task[0], replace(task[1], **self.limits())) for task in tasks if task is not None],
            self.workers(jobs) if self.client is None else connected(self.client),
            place if self.cache and file.build.cache else None,
            None if results is None else file.folder / results,
            file.failing,
            None if html is None else file.folder / html,
        )
        return self.placed(batch)


@command("init", short_help="Write a passes.toml.")
@dataclass(frozen=True)
class Init(Standalone):
    """Write a passes.toml that takes the models below this folder through `optimize`."""

    _: KW_ONLY
    force: bool = option(False, "Overwrite it if it exists.", shown=CLI)

    def run(self, say: Say = silent) -> str:
        from passes.builds.sources import IN_FOLDERS

        path = Path("passes.toml")
        if path.exists() and not self.force:
            raise WrongUsage(f"{path}: exists already (use --force to overwrite it)")
        models = sorted(one for one in Path().rglob("*") if one.suffix in IN_FOLDERS)
        with writing(path):
            path.write_text(example(models), encoding="utf-8")
        number = count(len(models), "model")
        return f"wrote {path} ({number} below this folder); `passes run` builds them"


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
    text = (resources.files("passes.builds") / "example.toml").read_text(encoding="utf-8")
    return text.replace("models = []", f"models = [{', '.join(quoted)}]", 1)
