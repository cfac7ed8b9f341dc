"""What two runs gave, compared; how far apart they may lie; what cases reached."""

from __future__ import annotations
