"""Mutations of bytes, JSON values and arrays; all random choices come from the generator passed in."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_EDGES = (
    0, 1, -1, 2, 3, 7, 127, 128, 255, 256, 32767, 65535, 65536, 2**31 - 2, 2**31 - 1, 2**31, 2**32, 2**53, 2**63 - 1,
    2**63, 2**64, -(2**31), -(2**31) - 1, -(2**63), 10**30,
)  # fmt: skip
_FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 1e-45, 1e-38, 3e38, -3e38, 1e300, float("nan"), float("inf"), -float("inf"))
_WORDS = ("", " ", "\x00", "../x", "/etc/passwd", ".", "nan", "\ud800", "é", "a" * 300, "\u2028", "-1", "None", "true")
_TOKENS = (
    b"\n", b"\r\n", b"\r", b" ", b"\t", b":", b",", b"#", b"-", b"+", b".", b"e", b"nan", b"inf", b"1e400", b"1e-400",
    b"0:0", b":1", b"1:", b"2147483647", b"2147483648", b"4294967296", b"18446744073709551616", b"9" * 23, b'"', b"{",
    b"}", b"[", b"]", b"\\u", b"\\", b"__label__", b"<", b">", b";", b"|", b"\x00", b"\xff", b"\xc3", b"\xef\xbb\xbf",
    b"0.1", b"-0", b"1e5", b"0x1p3", b"1_0", b"null", b"true", b"1" * 400,
)  # fmt: skip
_DTYPES = ("<f2", "<f4", "<f8", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "|b1", ">i4", ">f4")


def spoil_bytes(random: Random, data: bytes) -> bytes:
    """Make one to four small changes at random positions."""
    changed = bytearray(data)
    for _ in range(random.choice((1, 1, 1, 2, 3, 4))):
        at = random.randrange(len(changed) + 1)
        kind = random.randrange(9)
        if kind == 0 and changed:
            changed[at % len(changed)] ^= 1 << random.randrange(8)
        elif kind == 1 and changed:
            changed[at % len(changed)] = random.randrange(256)
        elif kind == 2:
            del changed[at:]
        elif kind == 3:
            del changed[at : at + random.randrange(1, 9)]
        elif kind == 4:
            changed[at:at] = random.randbytes(random.randrange(1, 9))
        elif kind == 5:
            begin = random.randrange(len(changed) + 1)
            changed[at:at] = changed[begin : begin + random.randrange(1, 40)]
        elif kind == 6:
            changed[at : at + random.randrange(5)] = random.choice(_TOKENS)
        else:
            changed[at:at] = random.choice(_TOKENS)
    return bytes(changed)


def wild_value(random: Random) -> Any:
    """Draw a JSON value of any type, often an edge case."""
    return random.choice(
        (
            lambda: random.choice(_EDGES),
            lambda: random.choice(_FLOATS),
            lambda: random.choice(_WORDS),
            lambda: random.choice((None, True, False, [], {}, [[]], {"a": 1}, [1, 2], ["x", None], [{}])),
        )
    )()


def spoil_json(random: Random, value: Any) -> Any:
    """Copy the value with one place changed, removed, inserted or renamed."""
    copied = json.loads(json.dumps(value))
    places = list(_places(copied))
    if not places:
        return wild_value(random)
    holder, key = random.choice(places)
    kind = random.randrange(8)
    if kind == 0:
        del holder[key]
    elif kind == 1 and isinstance(holder, list):
        holder.insert(key, wild_value(random))
    elif kind == 2 and isinstance(holder, dict):
        holder[random.choice((*_WORDS, key.upper(), key + "x"))] = holder.pop(key)
    elif kind == 3 and type(holder[key]) is int:
        holder[key] += random.choice((-1, 1))
    elif kind == 4:
        other, place = random.choice(places)
        if place in other if isinstance(other, dict) else place < len(other):
            holder[key] = json.loads(json.dumps(other[place]))
    else:
        holder[key] = wild_value(random)
    return copied


def _places(value: Any) -> Any:
    if isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from _places(value[key])


def spoil_array(random: Random, array: Array, others: list[Array]) -> Array:
    """Change entries, order, size, type or shape of an array, or return another array of the same model."""
    how: list[Callable[[Random, Array], Array]] = [_entries, _entries, _entries, _moved, _resized, _retyped, _reshaped]
    if others and random.randrange(8) == 0:
        return random.choice(others)
    with np.errstate(all="ignore"):
        return random.choice(how)(random, array)


def _entries(random: Random, array: Array) -> Array:
    if array.size == 0:
        return _resized(random, array)
    flat = array.copy().reshape(-1)
    for _ in range(random.choice((1, 1, 2, 5))):
        at = random.randrange(flat.size)
        if flat.dtype.kind == "f":
            flat[at] = random.choice(_FLOATS) if random.randrange(2) else random.uniform(-5, 5)
        elif flat.dtype.kind == "b":
            flat[at] = not flat[at]
        else:
            value = random.choice(
                (*_EDGES, int(flat[at]) + 1, int(flat[at]) - 1, int(flat[random.randrange(flat.size)]))
            )
            low, high = np.iinfo(flat.dtype).min, np.iinfo(flat.dtype).max
            flat[at] = min(max(value, low), high)
    return flat.reshape(array.shape)


def _moved(random: Random, array: Array) -> Array:
    flat = array.copy().reshape(-1)
    kind = random.randrange(4)
    if kind == 0:
        flat = flat[::-1].copy()
    elif kind == 1:
        flat = np.roll(flat, random.choice((-1, 1)))
    elif kind == 2:
        flat.sort()
    else:
        flat[...] = random.choice((0, 1))
    return flat.reshape(array.shape)


def _resized(random: Random, array: Array) -> Array:
    flat = array.reshape(-1)
    size = random.choice((0, 1, max(flat.size - 1, 0), flat.size + 1, 2 * flat.size, flat.size // 2))
    return np.resize(flat, size) if flat.size else np.zeros(size, array.dtype)


def _retyped(random: Random, array: Array) -> Array:
    return array.astype(random.choice(_DTYPES))


def _reshaped(random: Random, array: Array) -> Array:
    shapes = [(array.size, 1), (1, array.size), (1, 1, array.size)]
    return array.reshape(random.choice([*shapes, ()] if array.size == 1 else shapes))
