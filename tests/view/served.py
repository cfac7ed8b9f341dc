"""A page of `view` under test: its server, as a client sees it, and models for it."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from passes.builds.pool import Limits

if TYPE_CHECKING:
    import httpx2
    from starlette.testclient import TestClient

    from passes.view.desk import Desk

ORIGIN = "http://127.0.0.1:7001"
#: The most bytes of an upload under test.
MOST = 200_000

LSTM = """<ir_version: 8, opset_import: ["" : 18]>
    g (float[T,1,2] x) => (float[T,1,1,1] y)
    <float[1,4,2] W = {1, 2, 3, 4, 5, 6, 7, 8}, float[1,4,1] R = {1, 0, 1, -0.5}> {
        y = LSTM <hidden_size = 1> (x, W, R)
    }"""
#: A rule that is wrong: Add becomes Sub.
WRONG_RULE = '''
from __future__ import annotations

from onnx import helper

from passes import Edit, Site, register


@register("wrong-add", considers=lambda node, opset, target: node.op_type == "Add", optional=True)
def wrong_add(site: Site) -> Edit:
    """Subtract what is added."""
    return Edit((helper.make_node("Sub", site.node.input, site.node.output),))
'''


def wrong_rules(folder: Path) -> None:
    """Write a distribution with a wrong rule to a folder."""
    (folder / "wrong_rules.py").write_text(WRONG_RULE)
    facts = folder / "wrong_rules-1.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: wrong-rules\nVersion: 1\n")
    (facts / "entry_points.txt").write_text("[passes.rules]\nwrong = wrong_rules\n")


@dataclass(frozen=True)
class Served:
    """A client of a server with a desk; `prefix` is the path with the token."""

    client: TestClient
    desk: Desk
    prefix: str

    def get(self, path: str, **query: str) -> httpx2.Response:
        return self.client.get(f"{self.prefix}/{path}", params=query)

    def post(self, path: str, given: object) -> httpx2.Response:
        return self.client.post(f"{self.prefix}/{path}", json=given)

    def upload(self, content: bytes | str, name: str = "m.onnxtxt") -> str:
        """The key of an uploaded model."""
        data = content.encode() if isinstance(content, str) else content
        answer = self.client.post(f"{self.prefix}/models", params={"name": name}, content=data)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["model"])

    def started(self, model: str, command: str, *, strict: bool = False, **options: object) -> str:
        """The key of a run of a command."""
        answer = self.post(
            f"models/{model}/runs", {"command": command, "options": options, "strict": strict}
        )
        assert answer.status_code == 200, answer.text
        return str(answer.json()["run"])

    def done(self, run: str) -> dict[str, Any]:
        """What became of a run, when it is done."""
        for _ in range(1200):
            state: dict[str, Any] = self.get(f"runs/{run}").json()
            if "done" in state:
                found: dict[str, Any] = state["done"]
                return found
            time.sleep(0.05)
        pytest.fail(f"the run is still at work: {state}")


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    pytest.importorskip("starlette", reason="the extra `view` is not installed")
    pytest.importorskip("httpx2", reason="httpx2, which starlette's client needs, is not installed")
    from starlette.testclient import TestClient

    from passes.view.desk import Desk
    from passes.view.server import Server

    folder = tmp_path / "desk"
    folder.mkdir()
    desk = Desk(folder, Limits(120))
    hosts = frozenset({ORIGIN.removeprefix("http://")})
    server = Server(desk, "secret", hosts, most_bytes=MOST)
    yield Served(TestClient(server.app(), base_url=ORIGIN), desk, "/secret")
    desk.close()


def path_with(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let processes that are started from here import from a folder, too."""
    monkeypatch.setenv("PYTHONPATH", ":".join([str(folder), *filter(None, sys.path)]))
