"""The codes of proofs: why there is none, each with its meaning."""

from __future__ import annotations

#: By code, in the order of the documentation: outputs, sides, nodes, forms, drawn sizes, limits.
CODES = {
    "element": "an element of an output is another term in the new model",
    "size": "an axis of an output has another size in the new model, as far as terms tell",
    "type": "element types differ: those of an output of both models, or of operands of a node",
    "mismatch": "both models were executed, and differ on the inputs that are named",
    "fails": "the new model may fail where the original answers; the node is named",
    "signature": "the models have other inputs, outputs or defaults; nothing is executed",
    "model": "one of the models is invalid: onnx's checks and type inference tell why",
    "promise": "the original answers no inputs that keep what the user promised",
    "operator": "an operator, or an attribute or element type of it, is not modelled",
    "function": "a function gives a body an attribute that its caller chooses",
    "opset": "the opset is older than 7, the oldest that is modelled",
    "random": "an operator draws random numbers",
    "sparse": "a sparse initializer is not modelled",
    "obligation": "a node fails unless a condition holds, and that is not shown of every iteration",
    "overflow": "an int64 that decides something may overflow: it is not shown that it fits",
    "input": "an input is no tensor, or its rank is unknown, or it is too large to draw",
    "shape": "sizes are computed, or have a form that executors answer in other ways",
    "axis": "an axis does not exist, is named twice, or none is named",
    "empty": "a reduction may have nothing to reduce",
    "state": "a state of a loop changes its type or rank, or does not grow evenly",
    "condition": "a loop has no end, or begins under a condition that depends on an iteration",
    "decision": "a choice depends on an iteration, an index or floats",
    "branch": "the branches of an If in a loop differ in sizes, or one of them fails",
    "body": "a body fails if it runs, and it is not shown that it never does",
    "draws": "the original answers at no sizes that were drawn",
    "executed": "executed cases do not agree up to the order of summation",
    "budget": "the proof takes too long (`--budget`, `--prove-budget`), or has too many cases",
}


def table() -> str:
    """The codes as a table in Markdown."""
    rows = [f"| `{code}` | {meaning} |\n" for code, meaning in CODES.items()]
    return "".join(["| code | meaning |\n", "|---|---|\n", *rows])
