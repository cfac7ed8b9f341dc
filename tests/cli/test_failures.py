"""Files, inputs and places that commands fail on: one sentence, and no file is lost."""

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
from onnx import numpy_helper, parser

from tests.called import called
from tests.cli.calling import (
    DONE,
    FAILED,
    FAST,
    MISMATCH,
    NOT_PRODUCED,
    ROOT,
    SUM,
    UNVERIFIED,
    USAGE,
    fails,
    opset,
    run,
)
from tests.written import changed


class TestFailed:
    def test_no_such_file(self, folder: Path) -> None:
        said = fails(FAILED, "upgrade", "nowhere.onnx")
        assert said == "nowhere.onnx: cannot be read (No such file or directory)\n"

    def test_whether_a_file_can_be_read_is_told_by_what_reads_it(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(os, "access", lambda *_: False)  # typer asks it, as wrong usage
        for command in (("inspect",), ("prove", "m.onnx")):
            assert run(*command, "m.onnx").exit_code == DONE

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
        for end in range(1, len(whole), 23):
            Path("cut.onnx").write_bytes(whole[:end])
            assert fails(FAILED, "upgrade", "cut.onnx", *UNVERIFIED).count("\n") == 1

    @pytest.mark.slow
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
        assert fails(USAGE, "explain", "scan8").startswith(
            "'scan8' is neither a rule nor a code; the nearest are scan-8, "
        )

    def test_a_word_that_an_option_cannot_be(self, folder: Path) -> None:
        done = called("upgrade", "m.onnx", "--batch", "unrol")
        assert done.returncode == USAGE
        assert b"--batch is 'unrol', not one of auto, " in done.stderr

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

    def test_stdin_for_a_command_that_writes_no_model(self, folder: Path) -> None:
        assert "only commands that rewrite read stdin" in fails(USAGE, "prove", "-", "m.onnx")
        assert "only commands that rewrite read stdin" in fails(USAGE, "stream", "-", "--axis", "T")

    @pytest.mark.parametrize(
        "arguments",
        [
            ("inspect", "m.onnx"),
            ("verify", "m.onnx", "m.onnx"),
            ("prove", "m.onnx", "m.onnx"),
            ("certificate", "check", "m.onnx", "m.onnx"),
            ("stream", "m.onnx", "--axis", "T"),
            ("upgrade", "m.onnx"),
        ],
    )
    def test_a_report_in_a_folder_that_does_not_exist(
        self, folder: Path, arguments: tuple[str, ...]
    ) -> None:
        done = called(*arguments, "--json", "no/report.json")
        assert done.returncode == FAILED
        assert done.stderr == b"no/report.json: cannot be written (there is no folder no)\n"

    def test_a_report_in_place_of_weights(self, folder: Path) -> None:
        proto = onnx.load("m.onnx")
        proto.graph.initializer.append(numpy_helper.from_array(np.ones(2, np.float32), "w"))
        onnx.save(
            proto,
            "outside.onnx",
            save_as_external_data=True,
            location="weights.bin",
            size_threshold=0,
        )
        for command in (
            ("prove", "outside.onnx", "m.onnx", "--certify"),
            ("prove", "m.onnx", "outside.onnx", "--json"),
            ("verify", "m.onnx", "outside.onnx", "--json"),
            ("bisect", "m.onnx", "outside.onnx", "--json"),
            ("inspect", "outside.onnx", "--json"),
            ("stream", "outside.onnx", "--axis", "T", "--force", "-o"),
        ):
            said = fails(USAGE, *command, "weights.bin")
            assert said == "weights.bin: holds weights of outside.onnx, which would be lost\n"

    def test_one_report_of_a_failure_on_stdout(self, folder: Path) -> None:
        onnx.save(parser.parse_model(changed(SUM, {"Add": "Sub"})), "other.onnx")
        done = called("prove", "m.onnx", "other.onnx", "--executor", "reference", "--json", "-")
        assert done.returncode == MISMATCH
        assert json.loads(done.stdout)["verdict"] == "disproven"

    def test_nothing_at_all(self, folder: Path) -> None:
        done = called()
        assert done.returncode == USAGE
        assert b"upgrade" in done.stdout + done.stderr


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
        monkeypatch.setattr("passes.commands.places.is_same", denied)
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
