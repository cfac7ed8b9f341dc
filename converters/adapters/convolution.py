"""Steps of convolutions."""

from __future__ import annotations

from passes.converters.steps import identical, refusal_down

identical("Conv", 11, 22)

# The formula in the document of ConvTranspose-1 pads more at the beginning for SAME_UPPER;
# its own text on auto_pad, onnxruntime, and version 11 say at the end.
identical("ConvTranspose", 11, 22)

identical("DeformConv", 22)
refusal_down(
    "DeformConv", 19, "no-equivalent", "no older op convolves with a kernel that is deformed"
)
