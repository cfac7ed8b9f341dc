"""The page of `view`: a server on this machine, the processes that do its work, and what they
answer about a model."""

from __future__ import annotations
