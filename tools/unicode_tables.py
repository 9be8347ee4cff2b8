"""Write src/core/text/unicode_tables.hpp: what the tokenizer asks of every code point, as this Python knows it.

    python tools/unicode_tables.py            write the header
    python tools/unicode_tables.py --check    fail if the header is out of date

The tables are compiled in rather than read from the running Python, so that a saved model splits a text into
the same words under every version of Python.
"""

from __future__ import annotations

import sys
import unicodedata
from pathlib import Path

HEADER = Path(__file__).parent.parent / "src" / "core" / "text" / "unicode_tables.hpp"
WORD, SPACE, CASED, IGNORABLE = 1, 2, 4, 8
N_CODE_POINTS = 0x110000
# The only code point whose lower case has two code points; the kernel handles it.
DOTTED_CAPITAL_I = 0x130

Record = tuple[int, int]  # flags, distance to the lower-case code point


def record(code: int) -> Record:
    """The flags of a code point, and its distance to its lower-case code point."""
    char = chr(code)
    flags = WORD * (char.isalnum() or char == "_") + SPACE * char.isspace()
    # unicodedata does not have the properties Cased and Case_Ignorable, but str.lower uses them to choose the
    # final sigma: a case-ignorable character leaves the choice to the character before it, any other decides
    # it.
    after_letter, after_digit = (f"{before}{char}\u03a3".lower()[-1] == "\u03c2" for before in "a1")
    flags += CASED * (after_letter and after_digit) + IGNORABLE * (after_letter and not after_digit)
    lower = char.lower()
    if code == DOTTED_CAPITAL_I:
        assert lower == "i\u0307"
        return flags, 0
    assert len(lower) == 1, f"U+{code:04X} has a lower case of {len(lower)} code points"
    return flags, ord(lower) - code


def content() -> str:
    """The header as text."""
    records = [record(code) for code in range(N_CODE_POINTS)]
    distinct = sorted(set(records))
    number = {rec: position for position, rec in enumerate(distinct)}
    kinds = ", ".join(f"{{{flags}, {delta}}}" for flags, delta in distinct)
    runs = ", ".join("{" + ", ".join(map(str, run)) + "}" for run in runs_of([number[rec] for rec in records]))
    return f"""\
// Written by tools/unicode_tables.py from Unicode {unicodedata.unidata_version}. Do not edit.
#pragma once

#include <cstdint>

namespace labelwood::text {{

// clang-format off
inline constexpr const char* kUnicodeVersion = "{unicodedata.unidata_version}";

// Kinds of code points: flags (1 word character, 2 white space, 4 cased, 8 looked through for a final sigma)
// and the distance to the lower-case code point.
struct UnicodeKind {{
    uint8_t flags;
    int32_t to_lower;
}};
inline constexpr UnicodeKind kUnicodeKinds[] = {{
{wrapped(kinds)}
}};

// Runs of code points, from U+0000 on: of one kind, or alternating between two kinds, as capital and small letters do.
struct UnicodeRun {{
    uint32_t size;
    uint8_t kind;
    uint8_t other = kind;
}};
inline constexpr UnicodeRun kUnicodeRuns[] = {{
{wrapped(runs)}
}};
// clang-format on

}}  // namespace labelwood::text
"""


def runs_of(kinds: list[int]) -> list[tuple[int, ...]]:
    """Runs of one kind as (size, kind), of two alternating kinds as (size, kind, other)."""
    runs, start = [], 0
    while start < len(kinds):
        ends = []
        for step in (1, 2):
            end = start + step
            while end < len(kinds) and kinds[end] == kinds[end - step]:
                end += 1
            ends.append(end)
        alternates = ends[1] > max(ends[0], start + 3)
        end = ends[alternates]
        runs.append((end - start, *kinds[start : start + 1 + alternates]))
        start = end
    return runs


def wrapped(items: str) -> str:
    """Comma-separated items on lines of at most 120 characters."""
    lines, line = [], ""
    for item in items.split("}, "):
        piece = item if item.endswith("}") else item + "},"
        if len(line) + len(piece) + 1 > 120:
            lines.append(line)
            line = ""
        line += (" " if line else "    ") + piece
    return "\n".join([*lines, line])


def main() -> int:
    """Write or check the header; return the exit code."""
    text = content()
    if "--check" in sys.argv[1:]:
        return 0 if HEADER.read_text() == text else 1
    HEADER.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
