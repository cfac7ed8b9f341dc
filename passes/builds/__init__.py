"""A step of a build: many models, each taken through a pipeline, on one machine or many.

`task` is a pipeline for one model and what became of it; `sources` finds models, `config` reads the
file that describes a build; `batch` runs tasks, on the processes of `pool` or the workers of
`cluster`, and `cache` remembers outcomes.
"""

from __future__ import annotations
