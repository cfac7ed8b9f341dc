"""Steps of ops on optionals."""

from __future__ import annotations

from converters.steps import identical

identical("Optional", 28)
identical("OptionalGetElement", 18)  # tensors and sequences, which hold themselves, are new
identical("OptionalGetElement", 28)
identical("OptionalHasElement", 18, because="the input may now be missing, or be no optional")
identical("OptionalHasElement", 28)
