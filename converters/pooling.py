"""Steps of pooling ops."""

from __future__ import annotations

from converters.steps import identical

identical(
    "MaxPool",
    8,
    because="storage_order only bears on the output Indices, which is new and optional",
)
