#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes script_tables.c: the script of every code point, as the pre-tokenizer UnicodeScripts of
Hugging Face's tokenizers library has it. The scripts are measured: two characters have the same one
if the library does not cut between them.

    make_scripts.py > script_tables.c

It needs the Python package tokenizers. Script 0 is that of characters which are never cut off:
spaces and code points that are not assigned.
"""
import tokenizers

LAST, BLOCK = 0x110000, 1000
CODES = [code for code in range(LAST) if not 0xD800 <= code <= 0xDFFF]
STAGE = tokenizers.pre_tokenizers.UnicodeScripts()


def starts(text):
    """Where the pieces of a text begin, in characters."""
    return {begin for _, (begin, _) in STAGE.pre_tokenize_str(text)}


def neutral_beside(letter):
    """The code points that are not cut off from this letter."""
    found = set()
    for at in range(0, len(CODES), BLOCK):
        block = CODES[at:at + BLOCK]
        cuts = starts(letter + "".join(chr(code) + letter for code in block))
        found |= {code for i, code in enumerate(block) if not cuts & {1 + 2 * i, 2 + 2 * i}}
    return found


def boundaries():
    """The code points that are cut off from the one before them."""
    found = set()
    for at in range(0, len(CODES), BLOCK):
        block = CODES[at:at + BLOCK]
        found |= {block[begin] for begin in starts("".join(map(chr, block)))}
    return found


def main():
    neutral, cut = neutral_beside("a") & neutral_beside("\u4e2d"), boundaries()
    known, ranges = [], []  # a character of each script; first code point and script of each range

    def script_of(code):
        if code in neutral:
            return 0
        for number, other in enumerate(known):
            if len(starts(chr(other) + chr(code))) == 1:
                return number + 1
        known.append(code)
        return len(known)

    before = None
    for code in CODES:
        if before is None or code in cut or (code in neutral) != (before in neutral):
            script = script_of(code)
            if not ranges or ranges[-1][1] != script:
                ranges.append((code, script))
        before = code
    print("/* SPDX-License" "-Identifier: Apache-2.0 */")
    print("/* Scripts of characters, written by make_scripts.py; do not edit. unicode.h explains them. */")
    print('/* clang-format off */\n#include "unicode/unicode.h"')
    for kind, name, form, items in (("uint32_t", "starts", "0x%x", [r[0] for r in ranges]),
                                    ("uint8_t", "numbers", "%d", [r[1] for r in ranges])):
        print("const %s embla_script_%s[%d] = {" % (kind, name, len(items)))
        for at in range(0, len(items), 12):
            print(" " + " ".join((form + ",") % item for item in items[at:at + 12]))
        print("};")
    print("const size_t embla_script_count = %d;" % len(ranges))


if __name__ == "__main__":
    main()
