"""The engine of many machines: `dask.distributed`. Limits stay with a process of our own that each
worker starts; a worker that dies costs another try."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Iterable, Iterator
from functools import partial
from importlib import metadata
from typing import Any

from passes.builds.pool import Ended, Kept
from passes.builds.worker import MODULE, Engine, Work
from passes.errors import End, PassesError, WrongUsage
from passes.ir.versions import tools
from passes.reports.summary import Row

_DISTRIBUTION = "onnx-passes"
#: Seconds to wait for the scheduler, and for a first worker.
_CONNECTING, _WAITING = 5.0, 30.0
#: Tasks that wait at a worker, so that it is never idle; more would cost memory here.
_AHEAD = 4
#: How often a task is given out anew whose worker died; dask tries some times by itself, too.
_TRIES = 3


class NoCluster(WrongUsage):
    """There is no cluster that can be used."""


class LostCluster(PassesError):
    """The cluster is gone in the middle of a batch."""


def connected(address: str | Any) -> Engine:
    """The engine of the scheduler at an address, or of a `distributed.Client`.

    Raises:
        NoCluster: dask.distributed is not installed, there is no scheduler, or its workers do not
            have this version of the package.
    """
    try:
        from distributed import Client
    except ImportError as error:
        raise NoCluster(
            "dask.distributed is not installed: pip install 'onnx-passes[cluster]'"
        ) from error
    if isinstance(address, Client):
        client = address
    else:
        try:
            client = Client(address, timeout=_CONNECTING, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            raise NoCluster(f"{address}: there is no scheduler of dask ({error})") from error
        atexit.register(client.close)
    _check_workers(client)

    return partial(_run, client)


def _check_workers(client: Any) -> None:
    """See that there are workers, each with this version of the package."""
    try:
        client.wait_for_workers(1, timeout=_WAITING)
    except TimeoutError as error:
        raise NoCluster(f"the scheduler has no worker after {_WAITING:g} seconds") from error
    own = tools()["passes"]
    # a function of the standard library: a worker without the package can run it
    theirs = client.run(metadata.version, _DISTRIBUTION, on_error="return")
    for worker, version in sorted(theirs.items()):
        if isinstance(version, Exception):
            raise NoCluster(f"the worker {worker} cannot import {_DISTRIBUTION} ({version})")
        if version != own:
            raise NoCluster(f"the worker {worker} has {_DISTRIBUTION} {version}, here is {own}")


def _run(client: Any, works: Iterable[Work]) -> Iterator[tuple[Work, Row | Ended]]:
    """Keep a few tasks at each worker; results are released as they come."""
    from distributed import CancelledError, as_completed
    from distributed.scheduler import KilledWorker

    waiting = iter(works)
    tries: dict[str, int] = {}
    given: dict[str, Work] = {}
    threads = sum(client.nthreads().values()) or 1
    running = as_completed(loop=client.loop)

    def give(one: Work, number: int = 0) -> None:
        future = client.submit(_done, one, pure=False)
        given[future.key], tries[future.key] = one, number
        running.add(future)

    for _, one in zip(range(threads * _AHEAD), waiting, strict=False):
        give(one)
    for future in running:
        one, number = given.pop(future.key), tries.pop(future.key)
        try:
            answer = future.result()
        except KilledWorker:
            if number + 1 < _TRIES:
                give(one, number + 1)
                continue
            answer = Ended(End.DIED, "each worker that it was given to died", 0.0)
        except (CancelledError, OSError) as error:
            raise LostCluster(f"the connection to the cluster is lost: {error}") from error
        future.release()
        following = next(waiting, None)
        if following is not None:
            give(following)
        yield one, answer


#: What a worker of dask keeps.
_LOCK = threading.Lock()
_OWN: list[Kept[Work]] = []


def _done(work: Work) -> Row | Ended:
    """Do work in the process of this worker of dask."""
    with _LOCK:
        if not _OWN:
            _OWN.append(Kept(MODULE))
            atexit.register(_OWN[0].close)
    answer: Row | Ended = _OWN[0].ask(work, work.limits).result()
    return answer
