"""Rules about loops that few models need: `fuse-scans` and `scan-windows`."""

from __future__ import annotations

from loop_rules.fuse_scans import fuse_scans
from loop_rules.scan_windows import scan_windows

__all__ = ["fuse_scans", "scan_windows"]
