"""Other element types for the values of a model, in its bodies, too: half precision, int32."""

from __future__ import annotations
