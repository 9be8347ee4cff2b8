"""What values that travel share."""

from __future__ import annotations

from dataclasses import fields
from typing import Any


class Rebuilt:
    """A frozen dataclass of which only the fields are pickled and copied.

    What it caches is rebuilt on first use: kernels cannot be pickled, and all of it derives from the fields.
    """

    def __getstate__(self) -> dict[str, Any]:
        names = [field.name for field in fields(self)]  # type: ignore[arg-type]  # subclasses are dataclasses
        return {name: getattr(self, name) for name in names}
