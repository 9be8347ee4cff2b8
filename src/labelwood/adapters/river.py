"""Labelwood in river: :class:`OnlineTreeClassifier`, a multi-label classifier that learns one example at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = ["OnlineTreeClassifier"]

if TYPE_CHECKING:
    from labelwood.adapters._river import OnlineTreeClassifier
else:

    def __getattr__(name):
        if name not in __all__:
            raise AttributeError(f"module 'labelwood.adapters.river' has no attribute {name!r}")
        from labelwood.adapters import _river  # noqa: PLC0415 - its class is one of river's

        return getattr(_river, name)
