"""The columns of tables of texts: what --text, --labels and --sep name, and what a model was trained on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from labelwood.cli.support.parser import Options, UsageError
from labelwood.cli.support.safe_output import remark
from labelwood.data import Columns, TextDataset
from labelwood.methods.text_classifier import Model, TextClassifier


def columns_of(options: Options) -> Columns:
    """The columns that the flags name."""
    text = None if options.text is None else tuple(options.text)
    return Columns(text, options.labels, options.sep, fields_of(options) is not None)


def fields_of(options: Options) -> dict[str, float] | None:
    """The weights of the fields that --text names; None if it has no weights, so that columns are joined."""
    weights = options.text or {}
    if all(weight is None for weight in weights.values()):
        return None
    return {name: 1.0 if weight is None else weight for name, weight in weights.items()}


def columns_to_keep(options: Options) -> Columns:
    """The columns that a model keeps of its training; the file of labels of plain lines is no column.

    The names of fields are parameters of the encoder.
    """
    named = columns_of(options)
    named = Columns(None, named.labels, named.sep) if named.fields else named
    return replace(named, labels=None) if named.labels is not None and Path(named.labels).is_file() else named


def columns_for(options: Options, model: Model | None) -> Columns:
    """The columns to read for a model: those that the flags name, else those of its training."""
    if not isinstance(model, TextClassifier):
        return columns_of(options)
    fields = model.field_names
    if not fields:
        return columns_of(options).or_else(model.columns_)
    unknown = [name for name in options.text or () if name not in fields]
    if unknown:
        raise UsageError(f"labelwood: --text {unknown[0]}: the model reads the fields {', '.join(fields)}")
    named = replace(columns_of(options), text=tuple(options.text or fields), fields=True)
    return named.or_else(model.columns_)


def remark_on_missing(found: TextDataset, fields: Sequence[str]) -> None:
    """Say which fields are missing in how many rows."""
    for name in fields:
        n_missing = sum(isinstance(text, dict) and name not in text for text in found.texts)
        if n_missing:
            remark(f"the field {name} is missing in {n_missing:,} of {len(found.texts):,} rows; it is read as empty")


def read_columns(text: str) -> dict[str, float | None]:
    """Names of columns, and the weight of each if it has one."""
    found: dict[str, float | None] = {}
    for part in text.split(","):
        match = re.fullmatch(r"\s*(.+?)\s*(?:\^\s*([0-9.]+))?\s*", part)
        if match is None or match[1] in found or (match[2] is not None and not float(match[2]) > 0):
            raise ValueError(text)
        found[match[1]] = None if match[2] is None else float(match[2])
    return found
