"""The models within a model: the members of a blend or a ranker, the trees of an online forest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy.typing as npt
from sklearn.base import clone

from labelwood.errors import FormatError, LabelwoodError
from labelwood.estimator import TreeEstimator
from labelwood.vocabulary.vocabulary import PREFIX as VOCABULARY


def unfitted_members(models: Sequence[Any], *, owner: str, **common: Any) -> list[TreeEstimator]:
    """Members from method names, objects of a method and its parameters, or estimators; ``common`` is set on all."""
    if not models:
        raise LabelwoodError(f"{owner}: models must name at least one model; got none")
    return [_estimator(model, owner).set_params(**common) for model in models]


def spec_of(model: Any) -> Any:
    """The method of an estimator and the parameters that differ from the defaults; other things stay as they are."""
    if not isinstance(model, TreeEstimator):
        return model
    default = type(model)().get_params(deep=False)
    given = {name: value for name, value in model.get_params(deep=False).items() if value != default[name]}
    return {"method": model.method_name, **given}


def saved_members(
    members: Sequence[TreeEstimator], kind: str
) -> tuple[list[dict[str, Any]], dict[str, npt.NDArray[Any]]]:
    """The manifests of the members, and their arrays under names that begin with their number."""
    manifests: list[dict[str, Any]] = []
    arrays: dict[str, npt.NDArray[Any]] = {}
    for number, member in enumerate(members):
        manifest, own = member.to_saved()
        manifests.append(manifest)
        # The model around them keeps the vocabulary.
        arrays |= {f"{kind}{number}.{name}": array for name, array in own.items() if not name.startswith(VOCABULARY)}
    return manifests, arrays


def restored_members(
    whole: TreeEstimator, manifests: Sequence[Any], arrays: Mapping[str, npt.NDArray[Any]]
) -> list[TreeEstimator]:
    """The members of a saved model; they must have its labels and features."""
    owner = type(whole).__name__
    members = [
        _method(manifest["method"], owner).from_saved(
            manifest, own_arrays(arrays, "member", number), where=f"member {number}"
        )
        for number, manifest in enumerate(manifests)
    ]
    for member in members:
        if member.n_labels_ != whole.n_labels_ or member.n_features_in_ != whole.n_features_in_:
            raise FormatError(f"the members of a {whole.method_name} must have its labels and features")
    return members


def own_arrays(arrays: Mapping[str, npt.NDArray[Any]], kind: str, number: int) -> dict[str, npt.NDArray[Any]]:
    """The arrays of one member, under its own names."""
    prefix = f"{kind}{number}."
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _method(name: Any, owner: str) -> type[TreeEstimator]:
    from labelwood.methods import METHODS  # noqa: PLC0415 - the list of methods names the modules that import this one

    if not isinstance(name, str) or name not in METHODS:
        raise LabelwoodError(f"{owner}: models must be among {', '.join(METHODS)}; got {name!r}")
    return METHODS[name]


def _estimator(model: Any, owner: str) -> TreeEstimator:
    """A member, not fitted."""
    if isinstance(model, TreeEstimator):
        fresh: TreeEstimator = clone(model)
        return fresh
    if isinstance(model, str):
        return _method(model, owner)()
    if isinstance(model, Mapping) and "method" in model:
        given = {name: value for name, value in model.items() if name != "method"}
        try:
            return _method(model["method"], owner)(**given)
        except TypeError as error:
            raise LabelwoodError(f"{owner}: {error}") from None
    raise LabelwoodError(
        f"{owner}: models must be methods, objects of a method and its parameters, or estimators; got {model!r}"
    )
