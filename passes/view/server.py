"""The server of the page, on 127.0.0.1: for those who know its address, and from its own page."""

from __future__ import annotations

import asyncio
import json
import secrets
import shutil
import signal
import socket
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route

from passes.builds.pool import Ended, Limits
from passes.errors import PassesError
from passes.view.asking import Failed, Findings
from passes.view.desk import Desk, Gone, Opened, Run
from passes.view.forms import check_entered, command_line, forms, options_entered

_HOST = "127.0.0.1"
#: What protobuf reads, and so the largest model in one file.
MOST_BYTES = 1 << 31
_MOST_JSON = 1 << 20
_LONGEST_NAME = 120
#: Questions about a model, and what is given with them; with `drawing`, what may be.
_ALSO = {"at", "near"}
_QUESTIONS = {
    "overview": set[str](),
    "next": {"file"},
    "answers": {"node"},
    "drawing": {"graph"},
    "nodes": {"text"},
    "value": {"graph", "name"},
}
_ASSETS = ("passes.view", "page"), ("passes.reports.pages", "assets")
_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
_PAGE = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src data:; "
    "connect-src 'self'; frame-src 'self'; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'none'"
)
#: A report is one file, with its scripts in it; it asks for nothing.
_REPORT = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; "
    "frame-ancestors 'self'; base-uri 'none'; form-action 'none'"
)
_ALL = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class CannotListen(PassesError):
    """The port cannot be had."""


@dataclass(frozen=True)
class Server:
    """The routes of a page with a `token` in its address, for requests to one of `hosts`."""

    desk: Desk
    token: str
    hosts: frozenset[str]
    most_bytes: int = MOST_BYTES
    given: list[Opened] = field(default_factory=list)

    @cached_property
    def forms(self) -> dict[str, Any]:
        """The forms of the commands."""
        return forms()

    def app(self) -> Any:
        """The application, which refuses what does not come from the page."""
        routes = [
            Route("/", self._asset),
            Route("/page/{name}", self._asset),
            Route("/start", self._start),
            Route("/models", self._upload, methods=["POST"]),
            Route("/models/{model}/{question}", self._question),
            Route("/models/{model}/{what}", self._entered, methods=["POST"]),
            Route("/runs/{run}", self._state),
            Route("/runs/{run}", self._end, methods=["DELETE"]),
            Route("/runs/{run}/model", self._reopen, methods=["POST"]),
            Route("/runs/{run}/{file}", self._file),
        ]
        failures: Any = {PassesError: _failed, HTTPException: _refused}
        inner = Starlette(
            routes=[Mount(f"/{self.token}", routes=routes)], exception_handlers=failures
        )
        return self._guarded(inner)

    def _guarded(self, inner: Any) -> Any:
        async def guard(scope: Any, receive: Any, send: Any) -> None:
            async def with_headers(message: Any) -> None:
                if message["type"] == "http.response.start":
                    headers = MutableHeaders(scope=message)
                    for name, value in {**_ALL, "Content-Security-Policy": _PAGE}.items():
                        headers.setdefault(name, value)
                await send(message)

            if scope["type"] != "http":
                return
            wrong = self._wrong(Headers(scope=scope), scope["path"])
            answer: Any = inner if wrong is None else PlainTextResponse(wrong[1], wrong[0])
            await answer(scope, receive, with_headers)

        return guard

    def _wrong(self, headers: Headers, path: str) -> tuple[int, str] | None:
        """Why a request is refused: another host means that a name was made to lead here, another
        origin that a page of somebody else asks."""
        host = headers.get("host", "")
        if host not in self.hosts:
            return 421, "this server answers at 127.0.0.1 only"
        if headers.get("origin", f"http://{host}") != f"http://{host}":
            return 403, "requests of other pages are refused"
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return 403, "requests of other pages are refused"
        own = path.split("/")[1] if path.startswith("/") else ""
        if not secrets.compare_digest(own.encode(), self.token.encode()):
            return 404, "there is no such page; the address that `passes view` printed has a token"
        return None

    async def _asset(self, request: Request) -> Response:
        name = request.path_params.get("name", "index.html")
        for package, folder in _ASSETS:
            for file in (resources.files(package) / folder).iterdir():
                if file.name == name and Path(name).suffix in _TYPES:
                    return Response(file.read_bytes(), media_type=_TYPES[Path(name).suffix])
        raise HTTPException(404)

    async def _start(self, request: Request) -> Response:
        opened = [{"model": one.key, "name": one.name} for one in self.given]
        return JSONResponse({**self.forms, "given": opened, "most": self.most_bytes})

    async def _upload(self, request: Request) -> Response:
        given = request.query_params.get("name", "").replace("\\", "/").rpartition("/")[2]
        name = "".join(one for one in given if one.isprintable())[-_LONGEST_NAME:].lstrip(".")
        path = self.desk.place(name or "model.onnx")
        try:
            with open(path, "wb") as file:
                async for chunk in _bounded(request, self.most_bytes):
                    file.write(chunk)
            opened = self.desk.open(path, path.name, alone=True)
        except BaseException:
            shutil.rmtree(path.parent, ignore_errors=True)
            raise
        return JSONResponse({"model": opened.key, "name": opened.name})

    async def _question(self, request: Request) -> Response:
        model, question = self._model(request), request.path_params["question"]
        if question not in _QUESTIONS:
            raise HTTPException(404)
        given = dict(request.query_params)
        also = _ALSO if question == "drawing" else set[str]()
        if not _QUESTIONS[question] <= set(given) <= _QUESTIONS[question] | also:
            raise HTTPException(400)
        return await self._answer(model, model.question(question, given))

    async def _entered(self, request: Request) -> Response:
        """What was entered in a form: the command line, what is in the way, or a run of it."""
        model, what = self._model(request), request.path_params["what"]
        try:
            text = b"".join([one async for one in _bounded(request, _MOST_JSON)])
            entered = json.loads(text)
            command, own = f"{entered['command']}", dict(entered["options"])
            target, strict = f"{entered.get('target', '')}", bool(entered["strict"])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise HTTPException(400) from error
        path = f"{model.path}"
        check = check_entered(path, target, own) if command == "check" else None
        options = check or options_entered(command, own)
        line = command_line(options, model.name, strict=strict)
        if what == "line":
            return JSONResponse({"line": line})
        if what == "check" and check is not None:
            return await self._answer(model, Findings(check))
        if what != "runs":
            raise HTTPException(404)
        # in a thread: modules are imported and a process is started
        run = await run_in_threadpool(self.desk.start, model, options, line, strict=strict)
        return JSONResponse({"run": run.key})

    async def _answer(self, model: Opened, asked: Any) -> Response:
        found = await asyncio.wrap_future(self.desk.ask(model, asked))
        if isinstance(found, Failed | Ended):
            ended = f"the process {found.sentence}" if isinstance(found, Ended) else found.sentence
            sentence = ended.replace(f"{model.path}", model.name)
            return JSONResponse({"error": sentence}, 422)
        return JSONResponse(found)

    async def _state(self, request: Request) -> Response:
        return JSONResponse(self._run(request).state())

    async def _end(self, request: Request) -> Response:
        self._run(request).end()
        return JSONResponse({})

    async def _reopen(self, request: Request) -> Response:
        """The outcome of a run as a model."""
        run = self._run(request)
        output = run.file("output")
        place = self.desk.place(output.name).parent
        await run_in_threadpool(shutil.copytree, output.parent, place, dirs_exist_ok=True)
        opened = self.desk.open(place / output.name, output.name)
        return JSONResponse({"model": opened.key, "name": opened.name})

    async def _file(self, request: Request) -> Response:
        """The report of a run, its outcome, or the folder of its reproducer."""
        run, name = self._run(request), request.path_params["file"]
        path = run.file(name)
        if name == "report":
            return FileResponse(
                path, media_type="text/html", headers={"Content-Security-Policy": _REPORT}
            )
        folder = path if path.is_dir() else path.parent
        if path.is_dir() or len([*folder.iterdir()]) > 1:  # with weights in other files
            path = await run_in_threadpool(_zipped, folder, run.folder / f"{path.stem}.zip")
        return FileResponse(path, filename=path.name, media_type="application/octet-stream")

    def _model(self, request: Request) -> Opened:
        return self.desk.model(request.path_params["model"])

    def _run(self, request: Request) -> Run:
        return self.desk.run_of(request.path_params["run"])


async def _bounded(request: Request, most: int) -> AsyncIterator[bytes]:
    """The body of a request. Raises HTTPException if it is larger."""
    total = 0
    async for chunk in request.stream():
        total += len(chunk)
        if total > most:
            raise HTTPException(413, f"a file of more than {most:,} bytes is not taken")
        yield chunk


def _zipped(folder: Path, file: Path) -> Path:
    return Path(shutil.make_archive(f"{file.with_suffix('')}", "zip", folder))


async def _failed(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": f"{error}"}, 404 if isinstance(error, Gone) else 422)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": error.detail}, error.status_code)


def serving(model: Path | None, port: int, limits: Limits) -> Iterator[str]:
    """The address of the page, which is then served until that is interrupted.

    Raises:
        CannotListen: the port is in use.
    """
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((_HOST, port))
        listening.listen()  # a browser may be quicker than the server
    except OSError as error:
        raise CannotListen(f"port {port} cannot be had ({error.strerror})") from error
    port = listening.getsockname()[1]
    token = secrets.token_urlsafe(24)
    hosts = frozenset(f"{host}:{port}" for host in (_HOST, "localhost"))
    with listening, tempfile.TemporaryDirectory(prefix="passes-view-") as folder:
        desk = Desk(Path(folder), limits)
        server = Server(desk, token, hosts)
        if model is not None:
            server.given.append(desk.open(model))
        config = uvicorn.Config(
            server.app(),
            log_level="critical",
            access_log=False,  # it would tell the token
            lifespan="off",
            ws="none",
            server_header=False,
            timeout_graceful_shutdown=1,
        )
        if threading.current_thread() is threading.main_thread():
            # so that uploads are removed at the end
            signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            yield f"http://{_HOST}:{port}/{token}/"
            uvicorn.Server(config).run(sockets=[listening])
        except KeyboardInterrupt:
            pass
        finally:
            desk.close()
