"""The command line: exit codes, what is written and where, and errors in one sentence."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, parser
from typer.testing import CliRunner, Result

from passes.__main__ import app
from tests.written import changed

DONE, FAILED, USAGE, NOT_PRODUCED, MISMATCH = range(5)
FAST = ("--opset", "9", "--executor", "reference", "--verify-budget", "5")
#: Work to hoist out of a loop, and out of branches that no executor runs.
HALF = """<ir_version: 8, opset_import: ["" : 17, "my" : 1]>
    g (int64 n, bool c, float[N] x) => (float[N] y, float[N] z) {
    y = If (c) <
        then_branch = a () => (float[N] t) { j = Exp(x)  t = my.Foo(j) },
        else_branch = b () => (float[N] e) { k = Exp(x)  l = Neg(k)  e = my.Foo(l) }>
    z = Loop (n, , x) <body = b (int64 i, bool c, float[N] s) => (bool d, float[N] t) {
        d = Identity(c)  k = Exp(x)  t = Add(s, k) }> }"""
UNVERIFIED = ("--opset", "9", "--no-verify")

ROOT = Path(__file__).parents[2]

SUM = """<ir_version: 6, opset_import: ["" : 8]>
    g (int64[B] lens, float[B,2] h, float[B,T,2] x) => (float[B,2] y) {
    y = Scan <num_scan_inputs = 1,
        body = b (float[2] s, float[2] e) => (float[2] o) { o = Add(s, e) }> (lens, h, x) }"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to stand in, with the model of a ragged sum in m.onnx."""
    monkeypatch.chdir(tmp_path)
    onnx.save(parser.parse_model(SUM), "m.onnx")
    return tmp_path


def run(*arguments: str) -> Result:
    """Run the command line; nothing but an exit may leave it."""
    result = CliRunner().invoke(app, arguments)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def fails(code: int, *arguments: str) -> str:
    """The sentence on stderr of a command that exits with `code` and writes nothing."""
    before = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    result = run(*arguments)
    after = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    assert result.exit_code == code, result.output
    assert before == after
    return result.stderr


def opset(path: str) -> int:
    return int(onnx.load(path, load_external_data=False).opset_import[0].version)


class TestDone:
    def test_the_outcome_lies_beside_the_model(self, folder: Path) -> None:
        result = run("upgrade", "m.onnx", *FAST)
        assert result.exit_code == DONE
        assert "scan-8: main/scan_0 (Scan), nest" in result.stdout
        assert "wrote m.opset9.onnx" in result.stdout
        assert result.stderr == ""
        assert opset("m.opset9.onnx") == 9

    def test_paths_with_spaces(self, folder: Path) -> None:
        (folder / "a b").mkdir()
        os.rename("m.onnx", "a b/my model.onnx")
        assert run("upgrade", "a b/my model.onnx", *UNVERIFIED).exit_code == DONE
        assert opset("a b/my model.opset9.onnx") == 9

    def test_over_the_model_itself(self, folder: Path) -> None:
        arguments = ("upgrade", "m.onnx", "-o", "m.onnx", *UNVERIFIED)
        assert "--force" in fails(FAILED, *arguments)
        assert run(*arguments, "--force").exit_code == DONE
        assert opset("m.onnx") == 9
        assert os.listdir() == ["m.onnx"]

    def test_nothing_to_do(self, folder: Path) -> None:
        run("upgrade", "m.onnx", "-o", "new.onnx", *UNVERIFIED)
        again = run("upgrade", "new.onnx", *UNVERIFIED)
        assert "nothing to do, it is at opset 9" in again.stdout
        assert sorted(os.listdir()) == ["m.onnx", "new.onnx"]
        run("upgrade", "new.onnx", "-o", "copy.onnx", *UNVERIFIED)
        assert Path("copy.onnx").read_bytes() == Path("new.onnx").read_bytes()

    @pytest.mark.parametrize("suffix", ["json", "onnxtxt", "textproto"])
    def test_other_formats(self, folder: Path, suffix: str) -> None:
        assert run("upgrade", "m.onnx", "-o", f"a.{suffix}", *UNVERIFIED).exit_code == DONE
        result = run("upgrade", f"a.{suffix}", "-o", "b.onnx", *UNVERIFIED)
        assert result.exit_code == DONE
        assert result.stderr == ""
        assert opset("b.onnx") == 9

    def test_the_report_as_json(self, folder: Path) -> None:
        run("upgrade", "m.onnx", *FAST, "--json", "report.json")
        report = json.loads(Path("report.json").read_text())
        assert report["command"] == "upgrade"
        assert report["file"] == "m.onnx"
        assert report["opsets"] == [8, 9]
        (record,) = report["records"]
        assert (record["rule"], record["path"], record["outcome"], record["note"]) == (
            "scan-8",
            "main/scan_0",
            "rewritten",
            "nest",
        )
        assert record["checked"]["verdict"] == report["checked"]["verdict"] == "verified"
        assert record["checked"]["compared"]["reference"] > 10

    def test_details_are_for_who_asks(self, folder: Path) -> None:
        short = run("upgrade", "m.onnx", *FAST).stdout
        assert "  scan-8: main/scan_0 (Scan), nest; verified\n" in short
        long = run("upgrade", "m.onnx", *FAST, "--force", "-v").stdout
        assert "  scan-8: main/scan_0 (Scan), nest\n          verified: " in long

    def test_inputs_of_the_user(self, folder: Path) -> None:
        np.savez(
            "in.npz",
            lens=np.array([2, 0]),
            h=np.ones((2, 2), np.float32),
            x=np.ones((2, 3, 2), np.float32),
        )
        assert run("upgrade", "m.onnx", *FAST, "--inputs", "in.npz").exit_code == DONE

    def test_no_terminal_no_progress(self, folder: Path) -> None:
        result = run("upgrade", "m.onnx", *UNVERIFIED)
        assert "\x1b" not in result.output
        assert "\r" not in result.output


class TestFailed:
    def test_no_such_file(self, folder: Path) -> None:
        said = fails(FAILED, "upgrade", "nowhere.onnx")
        assert said == "nowhere.onnx: cannot be read (No such file or directory)\n"

    def test_an_empty_file(self, folder: Path) -> None:
        Path("empty.onnx").touch()
        for command in ("upgrade", "inspect"):
            assert fails(FAILED, command, "empty.onnx") == "empty.onnx: the file is empty\n"

    def test_a_folder(self, folder: Path) -> None:
        (folder / "models").mkdir()
        assert "models: is a folder; with --out-dir" in fails(USAGE, "upgrade", "models")

    @pytest.mark.parametrize("path", [".", "/", ""])
    def test_a_folder_without_a_name(self, folder: Path, path: str) -> None:
        assert "is a folder; with --out-dir" in fails(USAGE, "upgrade", path)

    def test_truncated_anywhere(self, folder: Path) -> None:
        whole = Path("m.onnx").read_bytes()
        for end in range(1, len(whole), 7):
            Path("cut.onnx").write_bytes(whole[:end])
            assert fails(FAILED, "upgrade", "cut.onnx", *UNVERIFIED).count("\n") == 1

    def test_bits_flipped(self, folder: Path) -> None:
        """Whatever the bytes say: an exit code, and a file only where that is 0."""
        whole = Path("m.onnx").read_bytes()
        draw = np.random.default_rng(0)
        for _ in range(60):
            changed = bytearray(whole)
            changed[draw.integers(len(whole))] ^= 1 << int(draw.integers(8))
            Path("flip.onnx").write_bytes(changed)
            result = run("upgrade", "flip.onnx", "-o", "out.onnx", *UNVERIFIED)
            assert result.exit_code in (DONE, FAILED, NOT_PRODUCED)
            assert Path("out.onnx").exists() == (result.exit_code == DONE)
            Path("out.onnx").unlink(missing_ok=True)

    def test_a_dim_whose_name_is_no_utf_8(self, folder: Path) -> None:
        Path("m.onnx").write_bytes(
            Path("m.onnx").read_bytes().replace(b"\x12\x01T", b"\x12\x01\xd4")
        )
        assert run("upgrade", "m.onnx", *FAST).exit_code in (DONE, FAILED, NOT_PRODUCED)

    @pytest.mark.parametrize("name", ["bad.onnx", "bad.json", "bad.textproto", "bad.onnxtxt"])
    def test_no_model_in_any_format(self, folder: Path, name: str) -> None:
        Path(name).write_text('{ "irVersion": 3,')
        said = fails(FAILED, "upgrade", name)
        assert said.startswith(f"{name}: is no ONNX model")
        assert said.count("\n") == 1

    def test_the_folder_of_the_outcome_is_missing(self, folder: Path) -> None:
        said = fails(FAILED, "upgrade", "m.onnx", "-o", "no/out.onnx")
        assert said == "no/out.onnx: there is no folder no\n"

    def test_the_outcome_exists(self, folder: Path) -> None:
        Path("out.onnx").write_text("precious")
        assert "--force" in fails(FAILED, "upgrade", "m.onnx", "-o", "out.onnx", *UNVERIFIED)

    def test_a_disk_that_refuses(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def full(descriptor: int) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        said = fails(FAILED, "upgrade", "m.onnx", "-o", "out.onnx", *UNVERIFIED)
        assert said == "out.onnx: cannot be written (No space left on device)\n"

    def test_what_is_no_plain_file_is_not_replaced(self, folder: Path) -> None:
        os.mkfifo("pipe")
        run("upgrade", "m.onnx", "-o", "pipe", "--force", *UNVERIFIED)
        assert stat.S_ISFIFO(os.stat("pipe").st_mode)

    def test_an_opset_that_onnx_does_not_know(self, folder: Path) -> None:
        assert "99" in fails(USAGE, "upgrade", "m.onnx", "--opset", "99", "--no-verify")

    def test_a_report_that_cannot_be_written(self, folder: Path) -> None:
        said = fails(FAILED, "upgrade", "m.onnx", *UNVERIFIED, "--json", "no/report.json")
        assert "no/report.json: cannot be written" in said

    @pytest.mark.parametrize("report", ["m.onnx", "out.onnx"])
    def test_a_report_over_a_model(self, folder: Path, report: str) -> None:
        run("upgrade", "m.onnx", "-o", "out.onnx", *UNVERIFIED, "--json", report)
        assert opset("m.onnx") == 8
        if Path("out.onnx").exists():
            assert opset("out.onnx") == 9

    def test_a_second_model_that_is_missing(self, folder: Path) -> None:
        said = fails(USAGE, "upgrade", "m.onnx", "other.onnx")
        assert said == "other.onnx: there is no such file\n"

    def test_two_sides_of_which_one_is_missing(self, folder: Path) -> None:
        assert "nowhere.onnx" in fails(FAILED, "verify", "m.onnx", "nowhere.onnx")

    def test_an_unknown_subject(self, folder: Path) -> None:
        assert fails(FAILED, "explain", "scan8").startswith(
            "'scan8' is neither a rule nor a code; the nearest are scan-8, "
        )

    def test_a_word_that_an_option_cannot_be(self, folder: Path) -> None:
        words = [sys.executable, "-m", "passes", "upgrade", "m.onnx", "--batch", "unrol"]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == USAGE
        assert "Invalid value for '--batch': 'unrol' is not one of 'auto', " in done.stderr

    def test_a_model_without_what_is_named(self, folder: Path) -> None:
        said = fails(USAGE, "upgrade", "m.onnx", "--dim", "M=3")
        assert said.startswith("m.onnx: no input has a dim 'M'; there are: ")
        said = fails(USAGE, "check", "m.onnx", "--target", "static", "--set", "M=3")
        assert said.startswith("m.onnx: the model has no input 'M'; the nearest are ")

    def test_text_that_cannot_be_parsed(self, folder: Path) -> None:
        Path("m.onnxtxt").write_text("<ir_version: 8> g (float[2 x) => (float[2] y) {}")
        said = fails(FAILED, "inspect", "m.onnxtxt")
        assert "position (line: 1 column: 28)" in said
        assert "\\n" not in said

    def test_nothing_at_all(self, folder: Path) -> None:
        done = subprocess.run(
            [sys.executable, "-m", "passes"], capture_output=True, text=True, check=False
        )
        assert done.returncode == USAGE
        assert "Traceback" not in done.stderr
        assert "upgrade" in done.stdout + done.stderr


class TestInputs:
    GOOD: ClassVar = {
        "lens": np.array([2, 1]),
        "h": np.ones((2, 2), np.float32),
        "x": np.ones((2, 3, 2), np.float32),
    }

    def said(self, **changed: np.ndarray) -> str:
        np.savez("in.npz", **{**self.GOOD, **changed})
        return fails(FAILED, "upgrade", "m.onnx", *FAST, "--inputs", "in.npz")

    def test_an_unknown_name(self, folder: Path) -> None:
        np.savez("in.npz", **self.GOOD, foo=np.ones(3))
        said = fails(FAILED, "upgrade", "m.onnx", *FAST, "--inputs", "in.npz")
        assert said == "in.npz: foo is no input; the model has lens, h, x\n"

    def test_a_missing_name(self, folder: Path) -> None:
        np.savez("in.npz", h=self.GOOD["h"])
        said = fails(FAILED, "upgrade", "m.onnx", *FAST, "--inputs", "in.npz")
        assert said == "in.npz: no value for input lens, x; it has h\n"

    def test_another_dtype(self, folder: Path) -> None:
        assert self.said(x=np.ones((2, 3, 2))) == "in.npz: input x is float32, float64 is given\n"

    def test_another_shape(self, folder: Path) -> None:
        said = self.said(x=np.ones((2, 3, 5), np.float32))
        assert said == "in.npz: input x is float[B,T,2], shape [2, 3, 5] is given\n"

    @pytest.mark.parametrize("name", ["nowhere.npz", "m.onnx", "folder"])
    def test_no_inputs_at_all(self, folder: Path, name: str) -> None:
        (folder / "folder").mkdir()
        assert fails(FAILED, "upgrade", "m.onnx", *FAST, "--inputs", name).startswith(f"{name}: ")

    def test_an_empty_file(self, folder: Path) -> None:
        Path("in.npz").touch()
        said = fails(FAILED, "upgrade", "m.onnx", *FAST, "--inputs", "in.npz")
        assert said.startswith("in.npz: ")

    def test_inputs_on_which_the_original_fails_are_mentioned(self, folder: Path) -> None:
        np.savez("in.npz", **{**self.GOOD, "lens": np.array([9, 9])})
        result = run("upgrade", "m.onnx", *FAST, "--inputs", "in.npz")
        assert "given inputs" in result.output


class TestUsage:
    @pytest.mark.parametrize(
        "arguments",
        [
            ("upgrade",),
            ("upgrade", "m.onnx", "--opset", "6"),
            ("upgrade", "m.onnx", "--opset", "nine"),
            ("upgrade", "m.onnx", "--batch", "foo"),
            ("upgrade", "m.onnx", "--executor", "foo"),
            ("upgrade", "m.onnx", "--verify-budget", "-1"),
            ("upgrade", "m.onnx", "--verify-budget", "nan"),
            ("upgrade", "m.onnx", "--foo"),
            ("frobnicate",),
        ],
    )
    def test_wrong_usage(self, folder: Path, arguments: tuple[str, ...]) -> None:
        assert "Usage:" in fails(USAGE, *arguments)

    def test_help_waits_for_no_library(self) -> None:
        code = "import sys, passes.__main__; print(*{'onnx', 'numpy', 'rich'} & sys.modules.keys())"
        shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert (shown.stdout.strip(), shown.stderr) == ("", "")

    @pytest.mark.parametrize("command", ["upgrade", "verify", "inspect", "list", "explain"])
    def test_help(self, command: str) -> None:
        result = run(command, "--help")
        assert result.exit_code == DONE
        assert "Usage:" in result.stdout


class TestNotProduced:
    def test_a_rule_refused(self, folder: Path) -> None:
        said = fails(NOT_PRODUCED, "upgrade", "m.onnx", "--batch", "unroll")
        assert said.startswith("m.onnx: main/scan_0: `unroll` needs a static batch size")
        assert said.endswith("[batch-not-static]\n")

    def test_no_time_to_compare(self, folder: Path) -> None:
        said = fails(NOT_PRODUCED, "upgrade", "m.onnx", "--verify-budget", "0")
        assert "[not-verified]" in said
        assert "--allow-unverified" in said

    def test_lack_of_time_is_said(self, folder: Path) -> None:
        onnx.save(parser.parse_model(HALF), "half.onnx")
        said = fails(NOT_PRODUCED, "hoist", "half.onnx", "--verify-budget", "0")
        assert "; --verify-budget gives more time" in said

    def test_what_cannot_be_compared_is_left_out(self, folder: Path) -> None:
        onnx.save(parser.parse_model(HALF), "half.onnx")
        fast = ("half.onnx", "--executor", "reference")
        said = fails(NOT_PRODUCED, "hoist", *fast, "--strict")
        assert said.startswith("main/if_0: no case could be compared, ")
        assert said.endswith(" [not-verified], and --strict was given\n")
        result = run("hoist", *fast)
        assert result.exit_code == DONE
        assert "refused main/if_0 (If): no case could be compared, " in result.stdout
        assert "--inputs gives what the model takes (int64 n, bool c, " in result.stdout
        branching, *_, loop = onnx.load("half.hoisted.onnx").graph.node
        assert len(branching.attribute[0].g.node) == 2
        assert len(loop.attribute[0].g.node) == 2

    def test_an_upgrade_of_which_nothing_is_compared(self, folder: Path) -> None:
        text = """<ir_version: 8, opset_import: ["" : 17, "my" : 1]>
            g (float[N] x) => (float[N] y) { a = Exp(x)  y = my.Foo(a) }"""
        onnx.save(parser.parse_model(text), "foo.onnx")
        said = fails(NOT_PRODUCED, "upgrade", "foo.onnx", "--executor", "reference")
        assert said.startswith("main: no case could be compared, ")
        assert run("upgrade", "foo.onnx", "--allow-unverified").exit_code == DONE

    def test_unverified_on_demand(self, folder: Path) -> None:
        result = run("upgrade", "m.onnx", "--verify-budget", "0", "--allow-unverified")
        assert result.exit_code == DONE
        assert "not-compared" in result.stdout


class TestMismatch:
    def test_two_models_that_differ(self, folder: Path) -> None:
        onnx.save(parser.parse_model(changed(SUM, {"Add": "Sub"})), "other.onnx")
        result = run("verify", "m.onnx", "other.onnx", "--executor", "reference")
        assert result.exit_code == MISMATCH
        assert "other.onnx: does not agree with m.onnx" in result.stderr
        reproducer = folder / "other.onnx.reproducer"
        assert sorted(os.listdir(reproducer)) == [
            "README.txt",
            "after.onnx",
            "before.onnx",
            "test_data_set_0",
        ]
        again = ("--inputs", str(reproducer / "test_data_set_0"))
        assert run("verify", "m.onnx", "other.onnx", *again).exit_code == MISMATCH

    def test_two_models_that_agree(self, folder: Path) -> None:
        run("upgrade", "m.onnx", "-o", "new.onnx", *UNVERIFIED)
        arguments = ("verify", "m.onnx", "new.onnx", "--executor", "reference")
        assert run(*arguments, "--verify-budget", "3").exit_code == DONE

    def test_another_signature(self, folder: Path) -> None:
        onnx.save(parser.parse_model(changed(SUM, {"lens": "lengths"})), "other.onnx")
        result = run("verify", "m.onnx", "other.onnx", "--executor", "reference")
        assert result.exit_code == MISMATCH
        assert "the inputs are" in result.stderr
        assert not list(folder.glob("*.reproducer"))


class TestExternalData:
    TEXT = """<ir_version: 6, opset_import: ["" : 8]>
    g (int64[B] lens, float[B,2] h, float[B,T,2] x) => (float[B,2] y) <float[2] w = {1, 2}> {
    k = Mul(x, w)
    y = Scan <num_scan_inputs = 1,
        body = b (float[2] s, float[2] e) => (float[2] o) { o = Add(s, e) }> (lens, h, k) }"""

    def save(self, path: str, location: str, length: int = 8) -> None:
        """A model whose weight `w` is `length` bytes of another file."""
        model: ModelProto = parser.parse_model(self.TEXT)
        tensor = model.graph.initializer[0]
        for field in ("float_data", "raw_data"):
            tensor.ClearField(field)
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in (("location", location), ("length", str(length))):
            tensor.external_data.add(key=key, value=value)
        Path(path).write_bytes(model.SerializeToString())

    def weight(self, path: str) -> list[float]:
        tensor = onnx.load(path).graph.initializer[0]
        return list(onnx.numpy_helper.to_array(tensor))

    @pytest.fixture
    def weights(self, folder: Path) -> None:
        Path("w.bin").write_bytes(np.array([1, 2], np.float32).tobytes())

    def test_beside_the_outcome_it_is_shared(self, weights: None) -> None:
        self.save("e.onnx", "w.bin")
        assert run("upgrade", "e.onnx", *FAST).exit_code == DONE
        assert self.weight("e.opset9.onnx") == [1, 2]
        assert sorted(os.listdir()) == ["e.onnx", "e.opset9.onnx", "m.onnx", "w.bin"]

    def test_elsewhere_it_is_copied(self, weights: None) -> None:
        self.save("e.onnx", "w.bin")
        os.mkdir("out")
        assert run("upgrade", "e.onnx", "-o", "out/e.onnx", *UNVERIFIED).exit_code == DONE
        assert sorted(os.listdir("out")) == ["e.onnx", "e.w.bin"]
        assert self.weight("out/e.onnx") == [1, 2]

    def test_written_twice_it_is_there_once(self, weights: None) -> None:
        self.save("e.onnx", "w.bin")
        os.mkdir("out")
        for _ in range(2):
            run("upgrade", "e.onnx", "-o", "out/e.onnx", "--force", *UNVERIFIED)
        assert len(os.listdir("out")) == 2

    @pytest.mark.parametrize(
        ("location", "length", "sentence"),
        [
            ("nowhere.bin", 8, "is missing"),
            ("short.bin", 8, "wants 8 bytes at 0 of 'short.bin', which has 4"),
            ("../w.bin", 8, "points outside the folder"),
            ("/etc/hostname", 8, "points outside the folder"),
            ("link.bin", 8, "is a symbolic link"),
            ("", 8, "has no usable location"),
        ],
    )
    def test_refused(self, weights: None, location: str, length: int, sentence: str) -> None:
        os.symlink("w.bin", "link.bin")
        Path("short.bin").write_bytes(b"1234")
        self.save("e.onnx", location, length)
        said = fails(FAILED, "upgrade", "e.onnx", *UNVERIFIED)
        assert said.startswith("e.onnx: external data of 'w'")
        assert sentence in said

    @pytest.mark.parametrize("written", [("-o", "w.bin", "--force"), ("--json", "w.bin")])
    def test_a_file_of_weights_is_not_written_over(
        self, weights: None, written: tuple[str, ...]
    ) -> None:
        self.save("e.onnx", "w.bin", 8)
        before = Path("w.bin").read_bytes()
        said = fails(USAGE, "upgrade", "e.onnx", *written, *UNVERIFIED)
        assert said.startswith("w.bin: holds weights of e.onnx")
        assert Path("w.bin").read_bytes() == before

    def test_a_length_that_is_not_that_of_the_tensor(self, weights: None) -> None:
        self.save("e.onnx", "w.bin", 80)
        assert "80" in fails(FAILED, "upgrade", "e.onnx", *UNVERIFIED)


class TestShowing:
    def test_inspect(self, folder: Path) -> None:
        result = run("inspect", "m.onnx", "--opset", "9", "--json", "loops.json")
        assert "main/scan_0" in result.stdout
        assert "scan-8: nest" in run("inspect", "m.onnx", "--opset", "9", "-v").stdout
        assert "main/scan_0" in Path("loops.json").read_text()

    def test_list_and_explain(self) -> None:
        assert "scan-8" in run("list").stdout
        assert "batch-not-static" in run("explain", "scan-8").stdout
        assert "(scan-8)" in run("explain", "batch-not-static").stdout


def denied(*_: object, **__: object) -> None:
    raise PermissionError(13, "Permission denied")


class TestWhereNothingCanBeWritten:
    """Whatever cannot be written, the exit code says what was found out; and no file is lost."""

    @pytest.fixture(autouse=True)
    def other(self, folder: Path) -> None:
        text = changed(SUM, {"Add": "Sub"})
        onnx.save(parser.parse_model(text), "other.onnx")

    @pytest.mark.parametrize("arguments", [(), ("--json", "/dev/full")])
    def test_a_mismatch_is_one_without_a_reproducer(
        self, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
    ) -> None:
        monkeypatch.setattr("passes.verify.reproducer.save", denied)
        sentence = fails(MISMATCH, "verify", "m.onnx", "other.onnx", *FAST[2:], *arguments)
        assert "no reproducer: other.onnx.reproducer cannot be written (Permission d" in sentence
        assert "other.onnx: does not agree with m.onnx" in sentence

    @pytest.mark.parametrize(
        ("command", "files"),
        [
            (("verify", "m.onnx", "other.onnx"), ("m.onnx", "./other.onnx", "hard.onnx")),
            (("inspect", "m.onnx"), ("m.onnx",)),
            (("upgrade", "m.onnx", "-o", "new.onnx", *UNVERIFIED), ("m.onnx", "new.onnx")),
        ],
    )
    def test_a_report_does_not_go_over_a_model(
        self, command: tuple[str, ...], files: tuple[str, ...]
    ) -> None:
        os.link("m.onnx", "hard.onnx")
        for file in files:
            assert "not a place for its report" in fails(USAGE, *command, "--json", file)

    @pytest.mark.parametrize("place", ["folder", "none/r.json", "m.onnx/r.json", "loop", "n" * 300])
    @pytest.mark.parametrize("command", ["verify", "inspect", "upgrade"])
    def test_a_report_that_cannot_be_written_is_an_error_at_once(
        self, command: str, place: str
    ) -> None:
        Path("folder").mkdir()
        os.symlink("loop", "loop")
        models = ("m.onnx", "other.onnx") if command == "verify" else ("m.onnx",)
        assert f"{place}: cannot be written (" in fails(FAILED, command, *models, "--json", place)

    @pytest.mark.parametrize("command", ["verify", "upgrade"])
    def test_a_folder_that_may_not_be_looked_into(
        self, monkeypatch: pytest.MonkeyPatch, command: str
    ) -> None:
        """Root may look into every folder, so the system is made to refuse."""
        models = ("m.onnx", "other.onnx") if command == "verify" else ("m.onnx",)
        monkeypatch.setattr("passes.cli.running.is_same", denied)
        assert "Permission denied" in fails(FAILED, command, *models, "--json", "r.json")
        if command == "upgrade":
            monkeypatch.setattr("passes.ir.save._obstacle", denied)
            assert "new.onnx: cannot be written (Permission" in fails(
                FAILED, command, *models, "-o", "new.onnx"
            )

    def test_a_name_that_is_too_long(self) -> None:
        name = "n" * 300
        assert "cannot be written (" in fails(FAILED, "upgrade", "m.onnx", "-o", name)
        assert "cannot be read (" in fails(FAILED, "verify", "m.onnx", "m.onnx", "--inputs", name)

    @pytest.mark.parametrize(
        ("redirected", "code"),
        [
            (">/dev/full", MISMATCH),
            ("2>/dev/full", MISMATCH),
            ("<&- >&- 2>&-", MISMATCH),
            ("| true; exit ${PIPESTATUS[0]}", MISMATCH),
        ],
    )
    def test_streams_that_are_full_closed_or_gone(self, redirected: str, code: int) -> None:
        command = f"{sys.executable} -m passes verify m.onnx other.onnx --executor reference"
        ran = subprocess.run(
            ["bash", "-c", f"{command} --verify-budget 5 {redirected}"],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
        )
        assert ran.returncode == code
        assert "Traceback" not in ran.stderr

    @pytest.mark.parametrize("command", [("list",), ("explain", "scan-8"), ("inspect", "m.onnx")])
    def test_a_full_disk_behind_stdout(
        self, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
    ) -> None:
        def full(text: str, err: bool = False) -> None:
            if not err:
                raise OSError(28, "No space left on device")
            sys.stderr.write(text)

        monkeypatch.setattr("passes.cli.running._silence", lambda stream: None)
        monkeypatch.setattr("passes.cli.running.typer.echo", full)
        sentence = fails(FAILED, *command)
        assert "the output cannot be written (No space left on device)" in sentence
