"""Control flow, sequences, optionals and maps."""

from __future__ import annotations

from passes.operators.traits import rows

ROWS = rows("""
# operator         shape work fails folds values rounds besides
ConcatFromSequence .     .    .     .     exact  never
If                 .     .    .     .     exact  never
Loop               .     .    .     .     exact  never
Optional           .     .    .     .     exact  never  no-tensor
OptionalGetElement .     .    .     .     exact  never  no-tensor
OptionalHasElement .     .    .     .     exact  never
Scan               .     .    .     .     exact  never
SequenceAt         .     .    .     .     exact  never
SequenceConstruct  .     .    .     .     exact  never  no-tensor
SequenceEmpty      .     fill never .     exact  never  no-tensor
SequenceErase      .     .    .     .     exact  never  no-tensor
SequenceInsert     .     .    .     .     exact  never  no-tensor
SequenceLength     .     .    .     .     exact  never
SequenceMap        .     .    .     .     exact  never  no-tensor
SplitToSequence    .     .    .     .     exact  never  no-tensor
ai.onnx.ml::ZipMap .     .    .     .     .      .      no-tensor
""")
