"""A process of the pool that does what it is told: for tests of limits and deaths."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

from passes.builds.pool import serve


class Unknown:
    """What only this process knows."""


def answer(task: str) -> str | Unknown:
    what, _, amount = task.partition(" ")
    match what:
        case "sleep":
            time.sleep(float(amount))
        case "grow":
            held = bytearray(int(amount) << 20)
            time.sleep(30)
            del held
        case "grow-elsewhere":
            code = f"import time; held = bytearray({amount} << 20); time.sleep(30)"
            subprocess.run([sys.executable, "-c", code], check=False)
        case "die":
            print("about to die", file=sys.stderr)
            os.kill(os.getpid(), signal.SIGSEGV)
        case "garble":
            return Unknown()
        case "print":
            print("this is no answer")
    return f"did {task}"


if __name__ == "__main__":
    serve(answer)
