"""A loop that fails where it runs more often than a user promised."""

from __future__ import annotations

from dataclasses import replace

from onnx import GraphProto, NodeProto, TensorProto

from passes import spelling
from passes.author import Author
from passes.loop_form import LoopForm
from passes.rule import Site


def promised(site: Site, form: LoopForm, most: int) -> NodeProto:
    """The site's Loop, made to fail in the iteration behind the last that is allowed.

    Only verification runs it: it tells a broken promise from a wrong rewrite.
    """
    assert form.condition is not None
    author = Author(site.target, site.names, f"{site.node.name or 'loop'}/promised")
    number = author.op("Reshape", form.iteration, author.ints())
    kept = author.op("Less", number, author.int(most))
    given = form.condition.body_output
    guarded = spelling.guarded(author, given, kept, TensorProto.BOOL)
    body = GraphProto()
    body.CopyFrom(form.body)
    body.node.extend(author.nodes)
    body.initializer.extend(author.constants)
    body.output[0].name = guarded
    condition = replace(form.condition, body_output=guarded)
    # what was no input before IR 4 is one now: the constants are of the body alone
    return replace(form, body=body, condition=condition).to_node()
