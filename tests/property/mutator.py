"""Broken inputs from good ones: seeded, so that a number gives the same bytes again."""

from __future__ import annotations

import gzip
import random
import re
from collections.abc import Callable, Sequence
from itertools import pairwise

LONGEST = 65536
"""Bytes of what comes out; a little more where a seed is longer."""
_NUMBER = re.compile(rb"\d+")
_WORD = re.compile(rb"[A-Za-z_]+")
NUMBERS = (
    *(
        b"0",
        b"-1",
        b"1",
        b"00",
        b"7.5",
        b"1e999",
        b"NaN",
        b"0x",
        b"255",
        b"256",
        b"65535",
        b"65536",
    ),
    *(b"4294967296", b"18446744073709551616", b"99999999", b"9" * 50, b"9" * 400, b"9" * 5000),
    "٣".encode(),  # a digit to str.isdigit
    "²".encode(),
)
WORDS = (
    *(b"", b"\0", b"\xff", b"\xfe\xff", b"\xef\xbb\xbf", b"\r", b"\r\n", b"\n\n", b"\t", b" "),
    *(
        b'"',
        b"'",
        b"[",
        b"]",
        b"{",
        b"}",
        b"(",
        b")",
        b"|",
        b"#",
        b",",
        b":",
        b"=",
        b"-",
        b"*",
        b"&",
    ),
    *(b"null", b"true", b"[]", b"{}", b"None", b"!!python/object:os.system", b"<<: *a", b"${HOME}"),
    *(b"n[1-1000]", b"n[1-4,9-2]", b"[" * 3000, b'{"a":' * 2000, b"a" * 5000, b"&a [*a,*a]"),
    "ß\u2028\U0001f980".encode(),
    b"\xed\xa0\x80",  # half of a surrogate pair
)


def mutated(seeds: Sequence[bytes], number: int) -> bytes:
    """The input `number`: of one of `seeds`, changed in one to six places."""
    chance = random.Random(number)
    data = chance.choice(seeds)
    for _ in range(chance.choice((1, 1, 1, 2, 3, 6))):
        data = chance.choice(_CHANGES)(data, chance, seeds)
        if len(data) > LONGEST:
            cut = chance.randrange(len(data) - LONGEST + 1)
            data = data[cut : cut + LONGEST]
    return data


def _span(data: bytes, chance: random.Random, most: int = 64) -> tuple[int, int]:
    at = chance.randrange(len(data) + 1)
    return at, min(len(data), at + chance.randint(1, most))


def _flip(data: bytes, chance: random.Random, seeds: Sequence[bytes]) -> bytes:
    if not data:
        return data
    at = chance.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << chance.randrange(8))]) + data[at + 1 :]


def _drop(data: bytes, chance: random.Random, seeds: Sequence[bytes]) -> bytes:
    at, end = _span(data, chance)
    return data[:at] + data[end:]


def _cut(data: bytes, chance: random.Random, seeds: Sequence[bytes]) -> bytes:
    at = chance.randrange(len(data) + 1)
    return data[:at] if chance.random() < 0.8 else data[at:]


def _repeat(data: bytes, chance: random.Random, seeds: Sequence[bytes]) -> bytes:
    at, end = _span(data, chance)
    return data[:end] + data[at:end] * chance.choice((1, 2, 50, 1000)) + data[end:]


def _insert(data: bytes, chance: random.Random, seeds: Sequence[bytes]) -> bytes:
    at = chance.randrange(len(data) + 1)
    return data[:at] + chance.choice(WORDS) + data[at:]


def _replace(found: re.Pattern[bytes], by: Sequence[bytes]) -> Callable[..., bytes]:
    def change(data: bytes, chance: random.Random, seeds: Sequence[bytes]) -> bytes:
        at = chance.randrange(len(data) + 1)
        match = found.search(data, at) or found.search(data)
        if match is None:
            return data
        return data[: match.start()] + chance.choice(by) + data[match.end() :]

    return change


def _lines(data: bytes, chance: random.Random, seeds: Sequence[bytes]) -> bytes:
    """A line is dropped, said twice, moved, or taken from another seed."""
    lines = data.split(b"\n")
    at, how = chance.randrange(len(lines)), chance.randrange(4)
    if how == 0:
        del lines[at]
    elif how == 1:
        lines.insert(chance.randrange(len(lines) + 1), lines[at])
    elif how == 2:
        lines.insert(chance.randrange(len(lines)), lines.pop(at))
    else:
        lines.insert(at, chance.choice(chance.choice(seeds).split(b"\n")))
    return b"\n".join(lines)


_BETWEEN = re.compile(rb"[|,;=:\t\[\]()\"']| +")


def _split(line: bytes) -> list[bytes]:
    """Fields with what ends them."""
    ends = [0, *(match.end() for match in _BETWEEN.finditer(line)), len(line)]
    return [line[begin:end] for begin, end in pairwise(ends)]


def _fields(data: bytes, chance: random.Random, seeds: Sequence[bytes]) -> bytes:
    """Fields of a line, which all grammars here have: one is dropped, said twice, emptied,
    exchanged with another of the line, or taken from the same place of another line."""
    lines = data.split(b"\n")
    at, other = chance.randrange(len(lines)), _split(chance.choice(lines))
    fields = _split(lines[at])
    place, how = chance.randrange(len(fields)), chance.randrange(5)
    if how == 0:
        del fields[place]
    elif how == 1:
        fields.insert(place, fields[place])
    elif how == 2:
        end = _BETWEEN.search(fields[place])
        fields[place] = end[0] if end else b""
    elif how == 3:
        swap = chance.randrange(len(fields))
        fields[place], fields[swap] = fields[swap], fields[place]
    else:
        fields[place] = other[min(place, len(other) - 1)]
    lines[at] = b"".join(fields)
    return b"\n".join(lines)


_SPELLINGS: tuple[Callable[[bytes], bytes], ...] = (
    lambda text: text.replace(b"\n", b"\r\n"),
    lambda text: text.replace(b"\n", b"\r"),
    lambda text: text.replace(b"\t", b"    "),
    lambda text: text.replace(b" ", b"\t"),
    lambda text: text.replace(b"\n", b"\n   "),
    lambda text: b"\xef\xbb\xbf" + text,
    lambda text: text.decode(errors="replace").encode("utf-16"),
    lambda text: text.replace(b"n", b"\xf1"),  # latin-1
    lambda text: text.replace(b"n", "ñ".encode()),
    lambda text: gzip.compress(text, mtime=0),
    bytes.upper,
    bytes.lower,
)


def _spelling(data: bytes, chance: random.Random, seeds: Sequence[bytes]) -> bytes:
    """The whole text as another system shows it: line ends, tabs, marks, indents, case."""
    return chance.choice(_SPELLINGS)(data)


def _splice(data: bytes, chance: random.Random, seeds: Sequence[bytes]) -> bytes:
    other = chance.choice(seeds)
    return data[: chance.randrange(len(data) + 1)] + other[chance.randrange(len(other) + 1) :]


def _bytes(data: bytes, chance: random.Random, seeds: Sequence[bytes]) -> bytes:
    """Four bytes that are a number in binary files."""
    if len(data) < 4:
        return data
    at = chance.randrange(len(data) - 3)
    value = chance.choice((0, 1, 255, 65535, 2**31, 2**32 - 1, chance.getrandbits(32)))
    return data[:at] + value.to_bytes(4, "little") + data[at + 4 :]


_NUMBERS = _replace(_NUMBER, NUMBERS)
_CHANGES = (
    *(_flip, _drop, _cut, _repeat, _insert, _lines, _splice, _bytes),
    *(_fields, _fields, _fields, _spelling),
    *(_NUMBERS, _NUMBERS, _NUMBERS, _replace(_WORD, WORDS)),
)
