#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes unicode_tables.c from measured Unicode behaviour.

    make_unicode.py FOLDER > unicode_tables.c

FOLDER holds unicode_ref.json (or .xz) and unicode_more.json: for every code point, what Hugging
Face's tokenizers library does with it. That library mixes several versions of Unicode, so no single
version gives the same tokens. The tables are facts about it, not a copy of its data.
"""
import json, lzma, os, sys

LAST = 0x110000
BITS = [  # name of the bit in unicode.h, the sets that it joins
    ("WHITE", ["rust_is_whitespace"]),
    ("PUNCT", ["hf_punct"]),
    ("BERT_REMOVED", ["bert_removed"]),
    ("BERT_SPACE", ["bert_space"]),
    ("BERT_HAN", ["bert_cjk"]),
    ("BERT_ACCENT", ["bert_mn_removed"]),
    ("ACCENT", ["stripaccents_removed"]),
    ("NUMERIC", ["rust_is_numeric"]),
    ("LETTER", ["onig_L"]),
    ("NUMBER", ["onig_N"]),
    ("SPACE", ["onig_s"]),
    ("UPPER", ["onig_Lu", "onig_Lt", "onig_Lm", "onig_Lo", "onig_M"]),
    ("LOWER", ["onig_Ll", "onig_Lm", "onig_Lo", "onig_M"]),
    ("MARK", ["onig_M"]),
    ("SYMBOL", ["onig_P", "onig_S"]),
    ("WORD", ["rustregex_w"]),
]
MORE = ["JOINS", "PREPEND", "HAS_LOWER", "HAS_NFD", "HAS_NFKD", "NFC_INERT", "NFKC_INERT", "SECOND"]


def load(folder, name):
    path = os.path.join(folder, name)
    opened = open(path, "rb") if os.path.exists(path) else lzma.open(path + ".xz", "rb")
    with opened as f:
        return json.loads(f.read().decode("utf-8"))


def is_hangul(code):
    return 0xAC00 <= code <= 0xD7A3


class Tables:
    def __init__(self, folder):
        ref, more = load(folder, "unicode_ref.json"), load(folder, "unicode_more.json")
        self.sets = ref["sets_as_inclusive_ranges"]
        self.maps = {k: {int(c): v for c, v in m.items()} for k, m in ref["single_codepoint_maps"].items()}
        self.classes = {c: int(k) for k, r in more["canonical_combining_class_as_inclusive_ranges"].items()
                        for a, b in r for c in range(a, b + 1)}
        self.pairs = sorted(map(tuple, more["canonical_composition_pairs"]))
        self.joins, self.prepend = more["grapheme_joins_previous"], more["grapheme_prepend"]
        self.seconds = {b for _, b, _ in self.pairs} | set(range(0x1161, 0x1176)) | set(range(0x11A8, 0x11C3))

    def inert(self, code, form, parts):
        """Whether no neighbour changes what the composed form makes of this character."""
        first = self.maps[parts].get(code, [code])[0]
        return (code not in self.maps[form] and self.classes.get(code, 0) == 0 and code not in self.seconds
                and self.classes.get(first, 0) == 0 and first not in self.seconds)

    def properties(self):
        out = [self.classes.get(code, 0) << 24 for code in range(LAST)]
        ranges = [[r for s in sets for r in self.sets[s]] for _, sets in BITS] + [self.joins, self.prepend]
        for bit, spans in enumerate(ranges):
            for a, b in spans:
                for code in range(a, b + 1):
                    out[code] |= 1 << bit
        place = {name: len(BITS) + i for i, name in enumerate(MORE)}
        for name, codes in (("HAS_LOWER", self.maps["lower"]), ("HAS_NFD", self.maps["nfd"]),
                            ("HAS_NFKD", self.maps["nfkd"]), ("SECOND", self.seconds)):
            for code in codes:
                out[code] |= 1 << place[name]
        for code in range(LAST):
            out[code] |= self.inert(code, "nfc", "nfd") << place["NFC_INERT"]
            out[code] |= self.inert(code, "nfkc", "nfkd") << place["NFKC_INERT"]
        return out


def lines(numbers, form):
    text, line = [], "   "
    for n in numbers:
        word = " " + form % n + ","
        if len(line) + len(word) > 100:
            text.append(line)
            line = "   "
        line += word
    return "\n".join(text + [line])


def array(kind, name, size, numbers, form="%d"):
    print("\nconst %s %s[%s] = {\n%s\n};" % (kind, name, size, lines(numbers, form)))


def write_properties(properties):
    kinds = sorted(set(properties))
    number = {p: i for i, p in enumerate(kinds)}
    assert len(kinds) <= 256, len(kinds)
    blocks, first = {}, []
    for at in range(0, LAST, 256):
        block = tuple(number[p] for p in properties[at:at + 256])
        first.append(blocks.setdefault(block, len(blocks)))
    array("uint32_t", "embla_unicode_kinds", "", kinds, "0x%08x")
    array("uint16_t" if len(blocks) > 255 else "uint8_t", "embla_unicode_blocks", "", first)
    array("uint8_t", "embla_unicode_cells", "", [cell for block in blocks for cell in block])


def write_map(name, entries):
    """Sorted code points, and where the replacement of each begins in a pool; the next one ends it."""
    codes, starts, pool = sorted(entries), [], []
    for code in codes:
        starts.append(len(pool))
        pool += entries[code]
    starts.append(len(pool))
    assert len(pool) < 65536
    array("uint32_t", "embla_unicode_%s_pool" % name, "", pool, "0x%x")
    array("uint32_t", "embla_unicode_%s_codes" % name, "", codes, "0x%x")
    array("uint16_t", "embla_unicode_%s_starts" % name, "", starts)
    print("const size_t embla_unicode_%s_count = %d;" % (name, len(codes)))


def main():
    tables = Tables(sys.argv[1])
    print("/* SPDX-License" "-Identifier: Apache-2.0 */")
    print("/* Unicode tables, written by make_unicode.py; do not edit. unicode.h explains them. */")
    print('/* clang-format off */\n#include "unicode/unicode.h"')
    write_properties(tables.properties())
    nfd = {c: v for c, v in tables.maps["nfd"].items() if not is_hangul(c)}
    write_map("lower", tables.maps["lower"])
    write_map("nfd", nfd)
    write_map("nfkd", {c: v for c, v in tables.maps["nfkd"].items() if not is_hangul(c) and nfd.get(c) != v})
    array("uint32_t", "embla_unicode_pairs", "", [n for pair in tables.pairs for n in pair], "0x%x")
    print("const size_t embla_unicode_pair_count = %d;" % len(tables.pairs))


if __name__ == "__main__":
    main()
