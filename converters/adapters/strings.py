"""Steps of ops on strings: below the version that brought one nothing takes strings apart, joins
or compares them, and nothing makes other strings of them."""

from __future__ import annotations

from passes.converters.steps import refusal_down

for _op, _version, _does in (
    ("StringNormalizer", 10, "changes the case of strings"),
    ("StringConcat", 20, "joins strings"),
    ("StringSplit", 20, "takes strings apart"),
    ("RegexFullMatch", 20, "matches strings"),
    ("TfIdfVectorizer", 9, "counts n-grams"),
):
    refusal_down(_op, _version, "no-equivalent", f"before opset {_version} no op {_does}")
