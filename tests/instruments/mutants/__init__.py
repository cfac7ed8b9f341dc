"""Does the verification catch anything? Faults seeded into the rules, and what becomes of them.

`python -m tests.instruments.mutants` changes one place of a rule's code at a time (`faults.py`),
runs the rule on its golden models as a user would, and tells what stopped each wrong model.
"""

from __future__ import annotations
