"""Twin of rows/cbor.hpp: the items of a CBOR document one after the other, by the rules of RFC 8949."""

from __future__ import annotations

import struct

NUMBER, TEXT, ARRAY, MAP = range(4)


def tokens(content: bytes) -> tuple[list[int], list[float], int]:
    """Kinds and values of all items, and the offset of the first bad one or -1."""
    kinds: list[int] = []
    values: list[float] = []
    at = 0
    while at < len(content):
        head, major, more = at, content[at] >> 5, content[at] & 31
        at += 1
        width = {24: 1, 25: 2, 26: 4, 27: 8}.get(more, 0)
        if more > 27 or at + width > len(content):
            return kinds, values, head
        field = content[at : at + width]
        argument = int.from_bytes(field, "big") if width else more
        at += width
        if major in (0, 1):
            kind, value = NUMBER, float(argument) if major == 0 else -1.0 - float(argument)
        elif major == 3 and argument < 256 and at + argument <= len(content):
            kind, value = TEXT, 256.0 * at + argument
            at += argument
        elif major in (4, 5) and argument <= len(content):
            kind, value = (ARRAY if major == 4 else MAP), float(argument)
        elif major == 7 and width in (2, 4, 8):
            kind, value = NUMBER, struct.unpack({2: ">e", 4: ">f", 8: ">d"}[width], field)[0]
        else:
            return kinds, values, head
        kinds.append(kind)
        values.append(value)
    return kinds, values, -1
