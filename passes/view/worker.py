"""A process of the page, `python -m passes.view.worker`: answers what is asked."""

from __future__ import annotations

import os

#: What `python -m` runs in a process.
MODULE = "passes.view.worker"

if __name__ == "__main__":
    # Before numpy: what verification multiplies is small, so threads would wait for each other.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

    from passes.builds.pool import serve
    from passes.verify.installed import kept_running
    from passes.view.asking import answered

    with kept_running():
        serve(answered)
