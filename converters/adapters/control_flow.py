"""Steps of If, Loop and Scan.

Their bodies are converted node by node; what the ops themselves do has not changed but for
Scan, which lost its batch axis in version 9. Documents: If 1..25, Loop 1..25, Scan 8..25.
"""

from __future__ import annotations

from converters.steps import by_rule, identical

identical("If", 11, because="the branches may now differ in shape")
identical("If", 13, 16, 19, 21, 23, 24, 25)

identical("Loop", 11, because="the same loop, told better; no carried value is needed any more")
identical("Loop", 13, 16, 19, 21, 23, 24, 25)

by_rule("Scan", 9, "scan-8")
identical("Scan", 11, because="negative axes are new")
identical("Scan", 16, 19, 21, 23, 24, 25)
