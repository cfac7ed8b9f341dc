"""Control flow, sequences, optionals and maps."""

from __future__ import annotations

from passes.operators.traits import rows

ROWS = rows("""
# operator         shape work fails folds values rounds besides
ConcatFromSequence .     .    .     .     exact  never  wraps=sequence
If                 .     .    .     .     exact  never
Loop               .     .    .     .     exact  never
Optional           .     .    never .     exact  never  no-tensor wraps=optional
OptionalGetElement .     .    .     .     exact  never  no-tensor wraps=optional
OptionalHasElement .     .    never .     exact  never  wraps=optional
Scan               .     .    .     .     exact  never
SequenceAt         .     .    .     .     exact  never  wraps=sequence
SequenceConstruct  .     .    never .     exact  never  no-tensor wraps=sequence makes
SequenceEmpty      .     fill never .     exact  never  no-tensor wraps=sequence makes
SequenceErase      .     .    .     .     exact  never  no-tensor wraps=sequence
SequenceInsert     .     .    .     .     exact  never  no-tensor wraps=sequence
SequenceLength     .     .    never .     exact  never  wraps=sequence
SequenceMap        .     .    .     .     exact  never  no-tensor wraps=sequence
SplitToSequence    .     .    .     .     exact  never  no-tensor wraps=sequence makes
ai.onnx.ml::ZipMap .     .    .     .     .      .      no-tensor
""")
