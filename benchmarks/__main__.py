"""`python -m benchmarks [NAME...] [--json FILE] [--quick] [--cpu]`."""

from __future__ import annotations

import argparse
import importlib
import json
import platform
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks.harness import Bench, cpu_seconds, table

#: Modules of this package, each with `measure(bench)`.
NAMES = (
    "startup",
    "noop",
    "specialise",
    "linear",
    "memory",
    "scan8",
    "vectorize",
    "raised",
    "expanded",
    "unroll",
    "reroll",
    "optimize",
    "recurrences",
    "exported",
    "verification",
    "build",
    "prove",
    "certify",
    "cast",
)


def main() -> None:
    """Run the benchmarks that are named, all without a name."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers here, too")
    parser.add_argument(
        "--quick", action="store_true", help="small and once, to see that everything runs"
    )
    parser.add_argument(
        "--cpu", action="store_true", help="count CPU time: for a machine that does other work, too"
    )
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in NAMES]
    if unknown:
        parser.error(f"there is no benchmark {unknown[0]!r}; there are {', '.join(NAMES)}")
    versions = _versions()
    print(", ".join(f"{name} {number}" for name, number in versions.items()))
    done = []
    for name in options.names or NAMES:
        clock = cpu_seconds if options.cpu else time.perf_counter
        bench = Bench(name, options.quick, clock)
        importlib.import_module(f"benchmarks.{name}").measure(bench)
        print(f"\n{table(bench)}", flush=True)
        done.append(bench.as_json())
    if options.json is not None:
        content = {
            "versions": versions,
            "quick": options.quick,
            "cpu": options.cpu,
            "benchmarks": done,
        }
        options.json.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in ("onnx", "onnxruntime", "numpy"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


if __name__ == "__main__":
    main()
