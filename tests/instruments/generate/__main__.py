"""Write a random model.

Use: `python -m tests.instruments.generate --seed N [--small] [--odd KIND ...] [-o FILE | --text]`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import onnx

from tests.instruments.generate.choices import Choices
from tests.instruments.generate.model import generate
from tests.instruments.generate.odd import KINDS


def main() -> None:
    """Print the model as ONNX text, or write it."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.instruments.generate", description=__doc__
    )
    parser.add_argument("--seed", type=int, required=True, metavar="N")
    parser.add_argument("--small", action="store_true", help="with few nodes")
    parser.add_argument("--odd", nargs="*", choices=KINDS, help="what it has; drawn by default")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("-o", "--output", type=Path, metavar="FILE")
    where.add_argument("--text", action="store_true", help="print ONNX text (the default)")
    options = parser.parse_args()
    model = generate(Choices.of_seed(options.seed, small=options.small), options.odd).model
    if options.output is None:
        print(onnx.printer.to_text(model))
    else:
        onnx.save(model, options.output)


if __name__ == "__main__":
    main()
