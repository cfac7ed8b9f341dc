"""A build from its file, in the library: `passes.run`."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from passes.builds.batch import Batch, local
from passes.builds.cache import default_folder
from passes.builds.config import Config, load
from passes.builds.sources import NoModels, common_folder, found, shard

if TYPE_CHECKING:
    from passes.builds.batch import Engine
    from passes.builds.pool import Limits
    from passes.builds.rows import Row, Summary


def run(
    config: str | os.PathLike[str],
    pipeline: str | None = None,
    models: Sequence[str | os.PathLike[str]] = (),
    *,
    jobs: int | None = None,
    client: Any = None,
    cache: bool = True,
    listener: Callable[[Row, int, int], None] = lambda row, number, total: None,
) -> Summary:
    """Take models through a pipeline described by a `passes.toml`: the named ones, or all of the
    file, on `jobs` processes or the workers of a `distributed.Client`.

    `listener` is called with each row, the number of rows so far, and that of all. Outcomes of
    earlier runs are taken from the `cache`.

    Raises:
        BadConfig: the file is invalid, or has no such pipeline.
        NoModels: a path or pattern names nothing.
        SameOutput: two models have one output.
        InTheWay: an output is one of the models.
        CannotWrite: a file cannot be written.
        BadCache: the folder of the cache cannot be written.
        NoCluster: the workers cannot do it.
    """
    file = load(Path(config))
    batch = batch_of(file, pipeline, models, engine=_engine(file, jobs, client), cache=cache)
    return batch.run(listener)


def batch_of(
    file: Config,
    pipeline: str | None,
    named: Sequence[str | os.PathLike[str]],
    *,
    engine: Engine,
    cache: bool = True,
    part: str | None = None,
    limited: Callable[[Limits], Limits] = lambda limits: limits,
) -> Batch:
    """The batch of a file: of the models that are `named`, or all, those of a `part` `I/N`.

    Raises what `run` raises.
    """
    every = found(file.build.models, file.folder)
    models: Sequence[str] = found(named) if named else every
    if not models:
        raise NoModels(f"{file.path}: `models` is empty, and no model is named")
    folder = common_folder(every or models)
    if part is not None:
        models = shard(models, part)
    tasks = [file.task(model, folder, pipeline) for model in models]
    own, results, html = file.build.cache_dir, file.build.results, file.build.html
    place = default_folder() if own is None else file.folder / own
    return Batch(
        [(task[0], limited(task[1])) for task in tasks if task is not None],
        engine,
        place if cache and file.build.cache else None,
        None if results is None else file.folder / results,
        file.failing,
        None if html is None else file.folder / html,
    )


def _engine(file: Config, jobs: int | None, client: Any) -> Engine:
    if client is None:
        return local(jobs or file.build.jobs)
    from passes.builds.cluster import connected

    return connected(client)
