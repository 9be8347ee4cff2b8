"""Saving the models within a model: the members of a blend, the trees of an online forest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy.typing as npt

from labelwood.estimator import TreeEstimator


def saved_members(
    members: Sequence[TreeEstimator], kind: str
) -> tuple[list[dict[str, Any]], dict[str, npt.NDArray[Any]]]:
    """The manifests of the members, and their arrays under names that begin with their number."""
    manifests: list[dict[str, Any]] = []
    arrays: dict[str, npt.NDArray[Any]] = {}
    for number, member in enumerate(members):
        manifest, own = member.to_saved()
        manifests.append(manifest)
        arrays |= {f"{kind}{number}.{name}": array for name, array in own.items()}
    return manifests, arrays


def own_arrays(arrays: Mapping[str, npt.NDArray[Any]], kind: str, number: int) -> dict[str, npt.NDArray[Any]]:
    """The arrays of one member, under its own names."""
    prefix = f"{kind}{number}."
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
