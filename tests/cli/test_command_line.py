"""The command line: exit codes, what is written and where, and errors in one sentence."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, parser

from tests.cli.calling import (
    DONE,
    FAILED,
    FAST,
    HALF,
    MISMATCH,
    NOT_PRODUCED,
    SUM,
    UNVERIFIED,
    USAGE,
    fails,
    opset,
    run,
)
from tests.written import changed


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

    @pytest.mark.parametrize(
        "arguments",
        [
            ("inspect", "m.onnx"),
            ("verify", "m.onnx", "m.onnx", "--executor", "reference"),
            ("bisect", "m.onnx", "m.onnx", "--executor", "reference"),
            ("check", "m.onnx", "--target", "onnxruntime"),
            ("check", "m.onnx", "--all-targets"),
            ("prove", "m.onnx", "m.onnx"),
            ("upgrade", "m.onnx", *FAST),
        ],
    )
    def test_stdout_is_the_report_alone(self, folder: Path, arguments: tuple[str, ...]) -> None:
        done = run(*arguments, "--json", "-")
        assert isinstance(json.loads(done.stdout), dict)
        assert done.stderr.count("\n") >= 1

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


class TestUsage:
    @pytest.mark.parametrize(
        ("arguments", "sentence"),
        [
            (("--opset", "6"), "--opset is 6, it must be 7 or more"),
            (("--opset", "nine"), "--opset is 'nine', not a whole number"),
            (
                ("--batch", "foo"),
                "--batch is 'foo', not one of auto, vectorize, mask, nest, unroll",
            ),
            (("--verify-budget", "nan"), "--verify-budget is nan, it must be 0 or more"),
            (("--dim", "x"), "--dim: 'x' is not of the form NAME=SIZE or NAME=NAME"),
            (
                ("--assume", "foo"),
                "--assume is ['foo'], not among valid-inputs, non-empty, int32-inputs",
            ),
        ],
    )
    def test_a_wrong_option_is_one_sentence(
        self, folder: Path, arguments: tuple[str, ...], sentence: str
    ) -> None:
        assert fails(USAGE, "upgrade", "m.onnx", *arguments) == f"{sentence}\n"

    @pytest.mark.parametrize(
        "arguments", [("upgrade",), ("upgrade", "m.onnx", "--foo"), ("frobnicate",)]
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

    def test_two_models_within_an_error(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("passes.verify.within.cases.LENGTHS", (1, 4))
        half = {
            "o = Add(s, e)": "a = Cast <to = 10> (s) b = Cast <to = 10> (e) c = Add (a, b) CAST"
        }
        text = changed(changed(SUM, half), {"CAST": "o = Cast <to = 1> (c)"})
        onnx.save(parser.parse_model(text), "half.onnx")
        arguments = ("verify", "m.onnx", "half.onnx", "--executor", "reference", "--within")
        assert run(*arguments, "0.1", "--json", "found.json").exit_code == DONE
        found = json.loads(Path("found.json").read_text("utf-8"))["within"]
        assert found["bound"] == 0.1
        assert 0 < found["errors"][-1]["error"] < 0.1
        result = run(*arguments, "1e-6", "--html", "found.html")
        assert result.exit_code == MISMATCH
        assert "half.onnx: does not agree with m.onnx: not within 1e-06: the error of 'y' is" in (
            result.stderr
        )
        assert "not within 1e-06" in Path("found.html").read_text("utf-8")
        assert not list(folder.glob("*.reproducer"))

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
