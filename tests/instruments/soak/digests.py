"""The bytes that commands write, in short: to compare those of two processes."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterable

from tests.instruments.generate.choices import Choices
from tests.instruments.generate.feeds import draw
from tests.instruments.generate.model import generate
from tests.instruments.soak.commands import commands, dealt


def digest(seeds: Iterable[int], *, small: bool = False, dealing: int = 0) -> str:
    """A hash over the models of these seeds and all that the commands dealt make of them."""
    total = hashlib.sha256()
    for seed in seeds:
        generated = generate(Choices.of_seed(seed, small=small))
        model = generated.model
        total.update(model.SerializeToString(deterministic=True))
        for command in dealt(commands(model, draw(generated, 0)), seed, dealing):
            try:
                made = command.run(model).model.SerializeToString(deterministic=True)
            except Exception as error:  # the sentence must be the same, too
                made = str(error).encode()
            total.update(made)
    return total.hexdigest()


def digest_elsewhere(
    first: int, count: int, hash_seed: int, *, small: bool = False, dealing: int = 0
) -> str:
    """The same in a process of its own, whose sets iterate in another order."""
    command = [sys.executable, "-m", "tests.instruments.soak", "--digest", "--seed", str(first)]
    command += ["--count", str(count), "--dealing", str(dealing), *["--small"] * small]
    outcome = subprocess.run(
        command,
        env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
        capture_output=True,
        text=True,
        check=True,
    )
    return outcome.stdout.strip()
