"""Steps of ops that make, retype or reshape tensors."""

from __future__ import annotations

from converters.steps import identical

identical("Cast", 9)  # strings are new; what is said of numbers was so before
identical("Constant", 9)
identical("Flatten", 9)
