"""The parser under a coverage-guided fuzzer: `python -m tests.trust.fuzz_parser [libFuzzer options]`, such as `-runs=1000000`.

It ends with a code that is not 0 as soon as any reply raises, or is read in a way that no reply may be read.
"""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["flappybird.protocol.reply"]):
    from flappybird.protocol.reply import read_reply

from tests.trust.hostile import TAGS, Said, fault_of


def one_reply(data: bytes) -> None:
    """Read one reply made of `data`: its first byte says what of it is a tag, how long the plan is and whether it was cut."""
    head, rest = (data[0], data[1:]) if data else (0, b"")
    text = "".join(TAGS[byte % len(TAGS)] if byte >= 0xF0 else chr(byte) for byte in rest)
    said, ticks = Said(text, text[::-1] if head & 1 else None, bool(head & 2)), 1 + (head >> 2 & 3)
    fault = fault_of(read_reply(said.content, said.reasoning, cut=said.cut, ticks=ticks), said, ticks)
    if fault:
        raise AssertionError(f"{fault}: {said!a}")


if __name__ == "__main__":
    atheris.Setup(sys.argv, one_reply)
    atheris.Fuzz()
