"""Column names of tables of pandas, polars and others, without importing any of them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy.typing as npt

from labelwood.errors import FormatError, LabelwoodError
from labelwood.storage import packed_strings

PREFIX = "feature_names."  # opens the names of the saved arrays
_UTF8, _OFFSETS = PREFIX + "utf8", PREFIX + "offsets"


def n_dimensions(values: Any) -> int:
    """Dimensions of an array, a column or a table of any library; 0 for anything else."""
    shape = getattr(values, "shape", ())
    return len(shape) if isinstance(shape, tuple) else 0


def is_missing(value: Any) -> bool:
    """True for what tables hold in the place of a value that is not there: None, NaN, NA."""
    return value is None or (isinstance(value, float) and math.isnan(value)) or type(value).__name__ == "NAType"


def column_names(table: Any) -> list[str] | None:
    """The names of a table's columns; None if it is no table, or if some names are not strings."""
    columns = getattr(table, "columns", None)
    if columns is None or n_dimensions(table) != 2:
        return None
    names = list(columns)
    return names if names and all(isinstance(name, str) for name in names) else None


def check_columns(
    known: Sequence[str] | None, given: Sequence[str] | None, *, owner: str, may_grow: bool = False
) -> None:
    """Refuse columns with other names than at fit; warn, as scikit-learn does, if only one side has names."""
    if given is None and known is None:
        return
    if known is None:
        warnings.warn(f"X has feature names, but {owner} was fitted without feature names", stacklevel=4)
    elif given is None:
        warnings.warn(f"X does not have valid feature names, but {owner} was fitted with feature names", stacklevel=4)
    else:
        for place, (before, now) in enumerate(zip(known, given, strict=False)):
            if before != now:
                raise LabelwoodError(
                    f"{owner}: the feature names should match those that were passed during fit; "
                    f"got {now!r} in place {place}, where fit had {before!r}"
                )
        if len(given) < len(known) or (len(given) > len(known) and not may_grow):
            raise LabelwoodError(
                f"{owner}: X has {len(given)} features, but {owner} is expecting {len(known)} features as input"
            )


def names_to_arrays(names: Sequence[str] | None) -> dict[str, npt.NDArray[Any]]:
    """The names of columns as arrays to save; empty if there are no names."""
    return {} if names is None else dict(zip((_UTF8, _OFFSETS), packed_strings.pack(list(names)), strict=True))


def names_from_arrays(arrays: Mapping[str, npt.NDArray[Any]], n_columns: int) -> list[str] | None:
    """The inverse of :func:`names_to_arrays`, checked."""
    if _UTF8 not in arrays and _OFFSETS not in arrays:
        return None
    utf8, offsets = arrays[_UTF8], arrays[_OFFSETS]
    if not packed_strings.are_sound(utf8, offsets, n_columns):
        raise FormatError("the feature names are damaged: their number or their offsets do not agree")
    return packed_strings.unpack(utf8, offsets, what="a feature name")
