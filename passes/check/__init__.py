"""Is this a valid model? Answered before anything is rewritten, in one sentence where it is not."""

from __future__ import annotations

import os

from onnx import ModelProto

from passes.check import backstop, functions, header, names, operators, tensors
from passes.check.as_meant import as_meant
from passes.check.control_flow import nodes as loops
from passes.check.control_flow.site import CheckedSite
from passes.check.graph_declarations import read_headings
from passes.check.lookup import Lookup
from passes.check.operators import NodeInScope
from passes.check.survey import Survey, survey
from passes.errors import BadModel
from passes.ir.kinds import Foreign
from passes.ir.model import Model

__all__ = ["Survey", "check", "check_outcome", "load_checked"]


def load_checked(
    source: Model | ModelProto | bytes | str | os.PathLike[str] | Foreign,
) -> tuple[Model, Survey]:
    """A valid model from all that is taken for one, and what was found in it.

    One that onnxruntime runs, though it is invalid by the specification, is mended in a copy, with
    a note in the survey.

    Raises:
        BadModel: it cannot be read, or is invalid.
    """
    model = source if isinstance(source, Model) else Model.load(source)
    try:
        return model, check(model)
    except BadModel as error:
        meant = as_meant(model.proto)
        if meant is None:
            raise
        model = Model(meant[0], model.path)
        try:
            found = check(model)
        except BadModel:
            raise error from None
    found.notes.extend(meant[1])
    return model, found


def check_outcome(model: Model) -> None:
    """Check that a model that was valid before it was rewritten still is.

    Only onnx's checker runs, for speed; `check` finds the place and the reason if it complains.

    Raises:
        BadModel: the model is invalid.
    """
    if backstop.complaint(backstop.light(model.proto)) is not None:
        check(model)


def check(model: Model) -> Survey:
    """Check that a model is valid ONNX, as far as that is possible without running it.

    What is cheap and what onnx's own checker does not see comes first, then that checker; only if
    it complains, names and order are examined, to find the place and the reason. The types of loops
    come last: inference may be trusted with a model whose form is valid, and with no other. Returns
    what was found on the way.

    Raises:
        BadModel: the model is invalid; the sentence names the place and both sides.
    """
    try:
        header.check_header(model.proto)
        found = survey(model)
        sites, look = _check_form(model, found)
        loops.check_types(sites, look)
        found.notes.extend(loops.tolerated_deviations(sites))
        return found
    except BadModel as error:
        raise error.at(file=model.file) from error.__cause__


def _check_form(model: Model, found: Survey) -> tuple[list[CheckedSite], Lookup]:
    """All that needs no types; returns the loops and branches, and the graphs' declarations."""
    places = found.places
    operators.check_operators(model, places)
    functions.check_functions(model.proto, places)
    headings = read_headings(found)
    sites = loops.loop_sites(places, headings)
    loops.check_form(sites)
    _run_checker(model, places)
    tensors.check_tensors(model.proto, places)
    return sites, Lookup(model, headings)


def _run_checker(model: Model, places: list[NodeInScope]) -> None:
    """onnx's checker, and our own diagnosis where it complains or cannot run."""
    complaint = backstop.complaint(backstop.light(model.proto))
    if complaint is None:
        return
    header.check_signature(model.proto)
    names.check_names(model.proto)
    operators.check_arity(model)
    functions.check_function_opsets(model)
    if not complaint:
        return
    mended: ModelProto = backstop.mended(model.proto)
    complaint = backstop.complaint(mended)
    if complaint:
        tensors.check_tensors(model.proto, places)
        raise backstop.as_error(complaint, mended)
