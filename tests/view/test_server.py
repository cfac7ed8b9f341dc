"""The server of `view`: who is answered, what is taken, what becomes of models and runs."""

from __future__ import annotations

import socket
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from passes.commands.declaring import WrongValue
from passes.commands.viewing import View
from passes.errors import WrongUsage
from passes.testing import as_model
from tests.reports.pages.looking import PROJECTION, UNKNOWN_TRIPS
from tests.view.served import LSTM, MOST, ORIGIN, Served, path_with, served, wrong_rules
from tests.written import changed

__all__ = ["served"]


class TestWhoIsAnswered:
    def test_the_page_itself(self, served: Served) -> None:
        page = served.get("")
        assert page.status_code == 200
        assert 'src="page/view.js"' in page.text
        assert "default-src 'none'" in page.headers["content-security-policy"]
        assert page.headers["referrer-policy"] == "no-referrer"
        for name in (
            "view.js",
            "run.js",
            "graph.js",
            "api.js",
            "view.css",
            "report.css",
            "lanes.js",
        ):
            assert served.get(f"page/{name}").status_code == 200, name

    @pytest.mark.parametrize("path", ["/", "/wrong/", "/wrong/start", "/start", "/page/view.js"])
    def test_without_the_token_nothing_is_there(self, path: str, served: Served) -> None:
        answer = served.client.get(path)
        assert answer.status_code == 404
        assert "token" in answer.text

    @pytest.mark.parametrize("path", ["page/..%2f..%2fserver.py", "page/server.py", "page/README"])
    def test_only_files_of_the_page(self, path: str, served: Served) -> None:
        assert served.get(path).status_code == 404

    @pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1:7001"])
    def test_other_origins_are_refused(self, origin: str, served: Served) -> None:
        answer = served.client.get("/secret/start", headers={"origin": origin})
        assert answer.status_code == 403
        posted = served.client.post("/secret/models", headers={"origin": origin}, content=b"x")
        assert posted.status_code == 403
        assert not served.desk.models

    def test_a_request_of_another_site_is_refused_without_an_origin(self, served: Served) -> None:
        answer = served.client.get("/secret/start", headers={"sec-fetch-site": "cross-site"})
        assert answer.status_code == 403

    def test_the_own_origin_is_answered(self, served: Served) -> None:
        assert served.client.get("/secret/start", headers={"origin": ORIGIN}).status_code == 200

    @pytest.mark.parametrize(
        "host", ["evil.example", "evil.example:7001", "127.0.0.1", "[::1]:7001"]
    )
    def test_a_name_that_was_made_to_lead_here_is_refused(self, host: str, served: Served) -> None:
        answer = served.client.get("/secret/", headers={"host": host})
        assert answer.status_code == 421


class TestUploads:
    def test_too_large(self, served: Served) -> None:
        answer = served.client.post("/secret/models?name=m.onnx", content=b"x" * (MOST + 1))
        assert answer.status_code == 413
        assert answer.json()["error"] == f"a file of more than {MOST:,} bytes is not taken"
        assert not [*served.desk.folder.iterdir()]  # no part of it is kept

    @pytest.mark.parametrize("name", ["../../up.onnx", "/etc/up.onnx", "..\\up.onnx", ".up.onnx"])
    def test_a_name_leads_to_no_other_folder(self, name: str, served: Served) -> None:
        model = served.desk.models[served.upload(as_model(PROJECTION).SerializeToString(), name)]
        assert served.desk.folder == model.path.parent.parent
        assert model.name == "up.onnx"

    def test_a_broken_model(self, served: Served) -> None:
        model = served.upload(b"none", "broken.onnx")
        answer = served.get(f"models/{model}/overview")
        assert answer.status_code == 422
        sentence = answer.json()["error"]
        assert sentence.startswith("broken.onnx: ")
        assert str(served.desk.folder) not in sentence

    @pytest.mark.parametrize("location", ["weights.bin", "/etc/passwd", "m.onnx"])
    def test_weights_in_other_files_are_refused(self, location: str, served: Served) -> None:
        model = as_model(PROJECTION)
        (weights, *_) = model.graph.initializer
        weights.CopyFrom(numpy_helper.from_array(np.zeros((2, 3), np.float32), weights.name))
        weights.ClearField("raw_data")
        weights.data_location = onnx.TensorProto.EXTERNAL
        weights.external_data.add(key="location", value=location)
        key = served.upload(model.SerializeToString(), "m.onnx")
        answer = served.get(f"models/{key}/overview")
        assert answer.status_code == 422
        assert "has weights in other files, which an upload lacks" in answer.json()["error"]
        assert "`passes view m.onnx`" in answer.json()["error"]

    def test_the_oldest_is_closed_where_there_are_many(self, served: Served) -> None:
        first, *others = [served.upload("none") for _ in range(13)]
        assert len(served.desk.models) == 12
        answer = served.get(f"models/{first}/overview")
        assert answer.status_code == 404
        assert answer.json()["error"] == "this model was closed; open it again"
        assert [*served.desk.models] == others


def test_a_model_and_its_drawing(served: Served) -> None:
    model = served.upload(PROJECTION)
    assert served.get(f"models/{model}/overview").json()["loops"] == 1
    drawing = served.get(f"models/{model}/drawing", graph="0", at="0/0").json()
    assert [mark[0] for mark in drawing["marks"]].count("node") == 5
    for question, given in (("value", {"graph": "0", "name": "z"}), ("drawing", {"graph": "7"})):
        answer = served.get(f"models/{model}/{question}", **given)
        assert answer.status_code == 422
        assert answer.json()["error"].startswith("the model has no ")
    assert served.get(f"models/{model}/model").status_code == 404


@pytest.mark.parametrize(
    "given",
    [[], {"command": "optimize"}, {"command": 3, "options": [1], "strict": 0}, "none"],
)
def test_what_no_form_sends_is_refused(given: object, served: Served) -> None:
    model = served.upload("none")
    assert served.post(f"models/{model}/runs", given).status_code == 400
    assert served.get(f"models/{model}/value", graph="0").status_code == 400
    assert served.get(f"models/{model}/overview", at="0").status_code == 400
    assert not served.desk.runs


@pytest.mark.slow
def test_a_target(served: Served) -> None:
    model = served.upload(UNKNOWN_TRIPS)
    given = {"command": "check", "target": "no-control-flow", "options": {}, "strict": False}
    found = served.post(f"models/{model}/check", given).json()
    assert not found["fits"]
    assert not found["fixes"]
    promised = {**given, "options": {"max_trips": "4"}}
    found = served.post(f"models/{model}/check", promised).json()
    assert found["fixes"]
    assert found["left"] == 0
    line = served.post(f"models/{model}/line", promised).json()["line"]
    assert line == "passes check m.onnxtxt --target no-control-flow --max-trips 4 --fix"


class TestForms:
    def test_they_are_made_of_the_commands(self, served: Served) -> None:
        started = served.get("start").json()
        by_name = {one["name"]: one for one in started["commands"]}
        assert {"upgrade", "optimize", "cast", "unroll"} <= set(by_name)
        own = {one["name"]: one for one in by_name["optimize"]["own"]}
        assert next(iter(own)) == "target"
        assert {"onnxruntime", "tensorrt-10"} <= set(own["target"]["words"])
        assert own["measure"]["kind"] == "flag"
        shared = {one["name"] for one in by_name["optimize"]["shared"]}
        assert "values" in shared
        assert "inputs" not in shared  # it is a file
        assert "lowest" not in {one["name"] for one in by_name["convert"]["own"]}

    @pytest.mark.parametrize(
        ("command", "options", "sentence"),
        [
            ("optimize", {"max_nodes": "many"}, "--max-nodes is 'many', not a whole number"),
            ("optimize", {"target": "/etc/x.toml"}, "--target is '/etc/x.toml', not one of "),
            ("optimize", {"values": ["x=@/etc/x.npy"]}, "--set: the page opens no files"),
            ("optimize", {"inputs": "/etc/x.npz"}, "there is no option 'inputs'"),
            ("optimize", {"measure": "yes"}, "--measure is 'yes', not a flag"),
            ("cast", {}, "name a type: to, weights or int32"),
            ("optimise", {}, "there is no command 'optimise'; the nearest"),
        ],
    )
    def test_what_is_wrong_is_a_sentence(
        self, command: str, options: dict[str, object], sentence: str, served: Served
    ) -> None:
        model = served.upload("none")
        given = {"command": command, "options": options, "strict": False}
        for what in ("line", "runs"):
            answer = served.post(f"models/{model}/{what}", given)
            assert answer.status_code == 422
            assert answer.json()["error"].startswith(sentence)

    def test_the_command_line_does_the_same(self, served: Served) -> None:
        model = served.upload("none", "a b.onnx")
        options = {"values": ["flag=true", "k=[1,2]"], "target": "scan-only", "dims": ["T=4"]}
        given = {"command": "optimize", "options": options, "strict": True}
        line = served.post(f"models/{model}/line", given).json()["line"]
        assert line == (
            "passes optimize 'a b.onnx' --dim T=4 --set flag=true --set 'k=[1, 2]' "
            "--target scan-only --strict"
        )


class TestRuns:
    @pytest.mark.slow
    def test_an_outcome_is_saved_and_looked_at(self, served: Served) -> None:
        model = served.upload(as_model(PROJECTION).SerializeToString(), "p.onnx")
        run = served.started(model, "optimize", executor="reference")
        done = served.done(run)
        assert done["verdict"] == "Written and verified"
        assert done["sentence"].startswith("p.optimized.onnx agrees with the original")
        outcome = served.get(f"runs/{run}/output")
        assert 'filename="p.optimized.onnx"' in outcome.headers["content-disposition"]
        onnx.checker.check_model(onnx.load_from_string(outcome.content))
        report = served.get(f"runs/{run}/report")
        assert "script-src 'unsafe-inline'" in report.headers["content-security-policy"]
        assert str(served.desk.folder) not in report.text
        other = served.post(f"runs/{run}/model", {}).json()
        assert other["name"] == "p.optimized.onnx"
        assert served.get(f"models/{other['model']}/overview").json()["loops"] == 1

    def test_a_refusal(self, served: Served) -> None:
        model = served.upload(UNKNOWN_TRIPS)
        run = served.started(model, "unroll", strict=True, executor="reference")
        done = served.done(run)
        assert (done["look"], done["verdict"], done["output"]) == ("refused", "Incomplete", "")
        assert "main/loop_0 stays [trip-count-not-static]" in done["sentence"]
        assert served.get(f"runs/{run}/output").status_code == 404
        assert served.get(f"runs/{run}/report").status_code == 200

    @pytest.mark.slow
    def test_a_mismatch_has_a_reproducer(
        self, served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        wrong_rules(tmp_path)
        path_with(tmp_path, monkeypatch)
        model = served.upload(PROJECTION)
        run = served.started(model, "simplify", rules=["wrong-add"], executor="reference")
        done = served.done(run)
        assert (done["look"], done["verdict"], done["output"]) == ("bad", "Mismatch", "")
        assert "does not agree with the original" in done["sentence"]
        zipped = served.get(f"runs/{run}/reproducer")
        assert zipped.content.startswith(b"PK")

    def test_a_run_is_ended(self, served: Served) -> None:
        model = served.upload(PROJECTION)
        run = served.started(model, "optimize")
        assert "done" not in served.get(f"runs/{run}").json()
        assert served.client.delete(f"/secret/runs/{run}").status_code == 200
        done = served.done(run)
        assert (done["verdict"], done["sentence"]) == ("Ended", "The run was ended on request.")

    @pytest.mark.slow
    def test_two_windows_do_not_disturb_each_other(self, served: Served) -> None:
        one, other = served.upload(PROJECTION), served.upload(LSTM, "lstm.onnxtxt")
        runs = [
            served.started(one, "lower", executor="reference"),
            served.started(other, "expand", executor="reference"),
        ]
        assert served.get(f"models/{one}/overview").json()["loops"] == 1
        assert served.get(f"models/{other}/overview").json()["loops"] == 0
        ends = [served.done(run) for run in runs]
        assert [end["output"] for end in ends] == ["m.lowered.onnxtxt", "lstm.expanded.onnxtxt"]

    def test_there_is_a_bound_to_runs_at_work(self, served: Served) -> None:
        model = served.upload(PROJECTION)
        runs = [served.started(model, "optimize") for _ in range(4)]
        given = {"command": "optimize", "options": {}, "strict": False}
        answer = served.post(f"models/{model}/runs", given)
        assert answer.status_code == 422
        assert answer.json()["error"] == "4 runs are at work; end one first, or wait"
        for run in runs:
            served.client.delete(f"/secret/runs/{run}")


@pytest.mark.slow
def test_weights_beside_a_model_of_the_command_line(served: Served, tmp_path: Path) -> None:
    model = as_model(changed(PROJECTION, {"rnn (": "weighty ("}))
    for tensor in model.graph.initializer:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor), tensor.name))
    onnx.save(
        model, tmp_path / "w.onnx", save_as_external_data=True, location="w.bin", size_threshold=0
    )
    opened = served.desk.open(tmp_path / "w.onnx")
    assert served.get(f"models/{opened.key}/overview").json()["external_bytes"] == 60
    run = served.started(opened.key, "optimize", executor="reference")
    assert served.done(run)["output"] == "w.optimized.onnx"
    assert served.get(f"runs/{run}/output").content.startswith(b"PK")  # with its weights
    assert sorted(one.name for one in tmp_path.iterdir()) == ["desk", "w.bin", "w.onnx"]


def test_without_the_extra_a_sentence_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("passes.commands.viewing.find_spec", lambda name: None)
    with pytest.raises(WrongUsage, match=r"`view` needs starlette, uvicorn, psutil: .*\[view\]"):
        View().run()


def test_a_port_that_there_cannot_be() -> None:
    with pytest.raises(WrongValue, match="port is 70000, it must be 65535 or less"):
        View(port=70_000)


def test_a_port_that_is_in_use() -> None:
    pytest.importorskip("uvicorn", reason="the extra `view` is not installed")
    from passes.view.server import CannotListen

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(CannotListen, match=f"port {port} cannot be had"):
            View(port=port).run()
