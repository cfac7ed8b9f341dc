"""`python docs/builder`: builds the documentation; a link that leads nowhere is an error."""

from __future__ import annotations

import subprocess
import sys

import site_pages


def main() -> int:
    """Write the pages, build the site of them, print where it is; the exit code of the build."""
    folder = site_pages.ROOT / "build" / "docs"
    settings = site_pages.write(folder)
    build = [sys.executable, "-m", "zensical", "build", "--strict", "--config-file", str(settings)]
    code = subprocess.run(build, check=False).returncode
    if code == 0:
        print(f"wrote {folder.relative_to(site_pages.ROOT) / 'site' / 'index.html'}")
    return code


if __name__ == "__main__":
    sys.exit(main())
