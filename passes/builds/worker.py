"""The process that takes models through pipelines: `python -m passes.builds.worker`."""

from __future__ import annotations

import os

# Before numpy: what verification multiplies is small, so threads would wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from passes.builds.pool import serve
from passes.builds.work import Work

if __name__ == "__main__":
    from passes.verify.installed import kept_running

    with kept_running():
        serve(Work.done)
