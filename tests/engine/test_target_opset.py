"""Which opset a model goes to, for which onnxruntime, and what is said where it cannot."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnxruntime
import pytest
from onnx import ModelProto, parser
from typer.testing import CliRunner

import passes
from passes.__main__ import app
from passes.errors import DONE, NOT_PRODUCED, USAGE
from passes.onnxruntime.releases import RELEASES, UnknownRelease, release_of
from passes.verify.executor import CannotRun
from passes.verify.installed import OnnxRuntimeExecutor

COMMANDS = (
    *(passes.upgrade, passes.lower, passes.raise_, passes.unroll),
    *(passes.hoist, passes.simplify, passes.optimize),
)
NAMES = ("upgrade", "lower", "raise", "unroll", "hoist", "simplify", "optimize", "inspect")


def roi_align(opset: int = 17, ir_version: int = 8) -> str:
    return f"""<ir_version: {ir_version}, opset_import: ["" : {opset}]>
g (float[1, 1, 4, 4] x, float[1, 4] roi, int64[1] batch) => (float[1, 1, 2, 2] y) {{
    y = RoiAlign <output_height = 2, output_width = 2, sampling_ratio = 1> (x, roi, batch)
}}"""


CALL = """<ir_version: 10, opset_import: ["" : 18, "my" : 1]>
g (float[2] x) => (float[2] y) { y = my.f(x) }
<domain: "my", opset_import: ["" : 23]> f (x) => (y) { y = Relu(x) }"""


def relu(opset: int, ir_version: int = 8) -> str:
    imports = f'<ir_version: {ir_version}, opset_import: ["" : {opset}]>'
    return f"{imports} g (float[2] x) => (float[2] y) {{ y = Relu(x) }}"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, arguments)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    return result.exit_code, result.stdout, result.stderr


class TestOlderThanTheModel:
    @pytest.mark.parametrize("command", COMMANDS)
    @pytest.mark.parametrize("verify", [True, False])
    def test_the_library_produces_nothing(
        self, command: Callable[..., passes.Result], verify: bool
    ) -> None:
        sentence = "the model is at opset 20, but opset 17 was asked for"
        with pytest.raises(passes.NotProduced, match=sentence) as caught:
            command(parser.parse_model(relu(20)), opset=17, verify=verify)
        assert caught.value.report.failure.startswith(sentence)
        assert caught.value.report.opsets == (20, 17)

    @pytest.mark.parametrize("command", NAMES)
    def test_the_command_line_writes_nothing(self, folder: Path, command: str) -> None:
        Path("m.onnxtxt").write_text(relu(20))
        output = () if command == "inspect" else ("-o", "out.onnx")
        code, _, said = run(command, "m.onnxtxt", "--opset", "19", *output)
        assert code == NOT_PRODUCED
        assert said == (
            "m.onnxtxt: the model is at opset 20, but opset 19 was asked for; "
            "`passes convert` writes older opsets\n"
        )
        assert [path.name for path in folder.iterdir()] == ["m.onnxtxt"]

    def test_than_a_function_of_the_model(self) -> None:
        with pytest.raises(passes.NotProduced, match="a function of the model is at opset 23, but"):
            passes.upgrade(parser.parse_model(CALL), opset=21, verify=False)

    def test_its_own_opset_is_no_way_down(self) -> None:
        model = parser.parse_model(relu(20))
        assert passes.upgrade(model, opset=20, verify=False).model is model


class TestForARelease:
    def test_the_installed_release_loads_what_the_table_says_and_nothing_newer(self) -> None:
        major, minor = onnxruntime.__version__.split(".")[:2]
        release = release_of(f"onnxruntime=={major}.{minor}")

        def loads(opset: int, ir_version: int) -> bool:
            options = onnxruntime.SessionOptions()
            options.log_severity_level = 4
            model = parser.parse_model(relu(opset, ir_version)).SerializeToString()
            try:
                onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
            except Exception:  # its exceptions have no base but Exception
                return False
            return True

        assert loads(release.opset, release.ir_version)
        assert not loads(release.opset + 1, release.ir_version)
        assert not loads(release.opset, release.ir_version + 1)

    def test_every_release_loads_the_ir_version_that_its_opset_needs(self) -> None:
        from passes.converters.stamp import ir_version_for

        assert [release.minor for release in RELEASES] == list(range(8, 33))
        assert all(ir_version_for(one.opset) <= one.ir_version for one in RELEASES)

    @pytest.mark.parametrize(
        ("text", "limits"),
        [("1.8", (14, 7)), ("1.14.1", (18, 8)), ("1.22", (22, 10)), ("1.24.0", (25, 13))],
    )
    def test_every_command_takes_the_newest_that_it_loads(
        self, text: str, limits: tuple[int, int]
    ) -> None:
        for command in COMMANDS:
            old = parser.parse_model(relu(11, 6))
            model = command(old, for_=f"onnxruntime=={text}", verify=False).model
            assert (model.opset_import[0].version, model.ir_version) == limits

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("onnxruntime==1.33", "the nearest release that is known is onnxruntime==1.32"),
            ("onnxruntime==2.0.1", "the nearest release that is known is onnxruntime==1.32"),
            ("onnxruntime==1.7", "the nearest release that is known is onnxruntime==1.8"),
            ("onnxruntime==0.5", "the nearest release that is known is onnxruntime==1.8"),
            ("onnxruntime>=1.20", "is not of the form onnxruntime==1.22"),
            ("tensorrt==10.1", "is not of the form onnxruntime==1.22"),
        ],
    )
    def test_a_release_that_is_not_known(self, folder: Path, text: str, said: str) -> None:
        with pytest.raises(UnknownRelease, match=said):
            passes.lower("m.onnx", for_=text)
        for command in NAMES:
            code, _, sentence = run(command, "m.onnx", "--for", text)
            assert code == USAGE
            assert said in sentence
            assert sentence.count("\n") == 1

    def test_not_together_with_an_opset(self, folder: Path) -> None:
        with pytest.raises(ValueError, match="does not go together"):
            passes.hoist("m.onnx", opset=17, for_="onnxruntime==1.22")
        for command in NAMES:
            both = ("--opset", "17", "--for", "onnxruntime==1.22")
            assert run(command, "m.onnx", *both)[0] == USAGE

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            (relu(20), "the model is at opset 20, but onnxruntime 1.16 loads opset 19"),
            (
                relu(17, 10),
                "the model is of IR version 10, but onnxruntime 1.16 loads IR version 9",
            ),
        ],
    )
    def test_a_model_that_is_too_new_for_it(self, text: str, said: str) -> None:
        with pytest.raises(passes.NotProduced, match=said):
            passes.upgrade(parser.parse_model(text), for_="onnxruntime==1.16", verify=False)

    def test_the_file_beside_the_model_tells_the_opset(self, folder: Path) -> None:
        Path("m.onnxtxt").write_text(relu(17))
        Path("m.opset21.onnxtxt").write_text("another file")
        code, said, _ = run("upgrade", "m.onnxtxt", "--for", "onnxruntime==1.17", "--no-verify")
        assert (code, said.splitlines()[-1]) == (DONE, "wrote m.opset20.onnxtxt")


class TestWhereTheInstalledRuntimeDoesNotLoadTheOutcome:
    """From opset 22 on, onnxruntime has no kernel for RoiAlign."""

    def test_the_default_opset_loads(self) -> None:
        report = passes.upgrade(parser.parse_model(roi_align())).report
        assert report.warnings == ()

    def test_nothing_is_written(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("passes.choices.DEFAULT_OPSET", 22)
        Path("m.onnxtxt").write_text(roi_align())
        code, _, said = run("upgrade", "m.onnxtxt", "-o", "out.onnx", "--json", "report.json")
        assert code == NOT_PRODUCED
        version = onnxruntime.__version__
        start = f"the installed onnxruntime {version} loads the original, but not the outcome: "
        assert said.startswith(f"m.onnxtxt: {start}")
        assert said.count("\n") == 1
        assert not Path("out.onnx").exists()
        assert start in Path("report.json").read_text()

    def test_an_opset_that_was_asked_for_is_written_with_a_warning(self, folder: Path) -> None:
        Path("m.onnxtxt").write_text(roi_align())
        code, _, said = run("upgrade", "m.onnxtxt", "-o", "out.onnx", "--opset", "22")
        assert code == DONE
        assert said.splitlines()[-1].startswith("warning: the installed onnxruntime ")
        assert Path("out.onnx").exists()

    @pytest.mark.parametrize("command", [passes.upgrade, passes.convert])
    def test_for_a_release_it_goes_to_the_newest_opset_that_has_the_kernel(
        self, command: Callable[..., passes.Result]
    ) -> None:
        result = command(parser.parse_model(roi_align()), for_="onnxruntime==1.22")
        assert result.report.opsets == (17, 21)
        assert not result.report.warnings
        onnxruntime.InferenceSession(result.model.SerializeToString())

    def test_for_a_release_it_is_too_new_with_an_opset_that_lacks_the_kernel(self) -> None:
        said = r"at opset 22, but .* has kernels for all its operators at opset 21 only"
        with pytest.raises(passes.NotProduced, match=said):
            passes.upgrade(parser.parse_model(roi_align(22)), for_="onnxruntime==1.22")
        convert = passes.convert(parser.parse_model(roi_align(22)), for_="onnxruntime==1.22")
        assert convert.report.opsets == (22, 21)

    @pytest.mark.parametrize("installed", [True, False])
    def test_a_release_other_than_the_installed_one_is_only_warned_of(
        self, monkeypatch: pytest.MonkeyPatch, installed: bool
    ) -> None:
        """As if it were not known that the release has no kernel."""
        monkeypatch.setattr("passes.onnxruntime.releases._WITHOUT_KERNEL", frozenset())
        monkeypatch.setattr("passes.onnxruntime.releases.Release.includes", lambda *_: installed)
        model = parser.parse_model(roi_align())
        if installed:
            with pytest.raises(passes.NotProduced, match="loads the original, but not"):
                passes.upgrade(model, for_="onnxruntime==1.22")
            return
        report = passes.upgrade(model, for_="onnxruntime==1.22").report
        assert len(report.warnings) == 1

    def test_what_did_not_load_before_need_not_load(self) -> None:
        model = parser.parse_model(roi_align(22, 10))
        report = passes.upgrade(model, opset=23).report
        assert report.warnings == ()

    @pytest.mark.parametrize("asked", [[], ["--opset", "21"]])
    def test_a_kernel_that_an_old_operator_lacks_is_the_same_answer(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, asked: list[str]
    ) -> None:
        """As onnxruntime has none for many element types; verification meets it first."""
        right = OnnxRuntimeExecutor.load, OnnxRuntimeExecutor.run

        def refuse(model: ModelProto) -> None:
            if model.opset_import[0].version > 17:
                raise CannotRun("cannot load: Could not find an implementation for Relu(14) node")

        def load(self: OnnxRuntimeExecutor, model: ModelProto, **options: Any) -> None:
            refuse(model)
            right[0](self, model, **options)

        def run_(self: OnnxRuntimeExecutor, model: ModelProto, *feeds: Any, **options: Any) -> Any:
            refuse(model)
            return right[1](self, model, *feeds, **options)

        monkeypatch.setattr(OnnxRuntimeExecutor, "load", load)
        monkeypatch.setattr(OnnxRuntimeExecutor, "run", run_)
        Path("m.onnxtxt").write_text(roi_align())
        code, _, said = run("upgrade", "m.onnxtxt", "-o", "out.onnx", *asked)
        assert code == NOT_PRODUCED
        assert "loads the original, but not the outcome: Could not find" in said
        assert not Path("out.onnx").exists()
