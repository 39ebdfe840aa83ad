// SPDX-License-Identifier: Apache-2.0
// Prints what Hugging Face's library does with every code point: unicode_ref.json or
// unicode_more.json of tokenizers/unicode, byte for byte. src/text/unicode/make_unicode.py makes tables of
// them. tests/data/fetch calls it, with the npm package `tokenizers`.
//   usage: node unicode.js unicode_ref.json.xz | unicode_more.json
'use strict';
const T = require('tokenizers');

const source = 'measured by calling npm tokenizers 0.23.2 (linux-x64-gnu) on every scalar value';
const text = c => String.fromCodePoint(c);
const points = s => [...s].map(x => x.codePointAt(0));

function each(call) {
    for (let c = 0; c < 0x110000; c++) if (c < 0xd800 || c > 0xdfff) call(c, text(c));
}

function extend(ranges, c) {
    const last = ranges[ranges.length - 1];
    if (last && last[1] === c - 1) last[1] = c;
    else ranges.push([c, c]);
}

// The code points for which test is true, as inclusive ranges.
function pick(test) {
    const ranges = [];
    each((c, s) => { if (test(s, c)) extend(ranges, c); });
    return ranges;
}

// A tokenizer with one part, which is all that is used of it.
function wrap(part) {
    return T.Tokenizer.fromString(JSON.stringify({ version: '1.0', truncation: null, padding: null,
        added_tokens: [], normalizer: null, pre_tokenizer: null, post_processor: null, decoder: null,
        model: { type: 'WordLevel', vocab: { a: 0 }, unk_token: 'a' }, ...part }));
}

const normal = { lower: T.lowercase(), nfc: T.nfcNormalizer(), nfd: T.nfdNormalizer(),
    nfkc: T.nfkcNormalizer(), nfkd: T.nfkdNormalizer() };

// What a normalizer makes of single code points, where that is not the same.
function map(kind) {
    const changed = {};
    each((c, s) => {
        const result = normal[kind].normalizeString(s);
        if (result !== s) changed[c] = points(result);
    });
    return changed;
}

function sets() {
    const bert = options => T.bertNormalizer({ cleanText: false, handleChineseChars: false,
        stripAccents: false, lowercase: false, ...options });
    const pieces = (p, count) => s => p.preTokenizeString('a' + s + 'b').length === count;
    const gives = (n, wanted) => s => n.normalizeString('a' + s + 'b') === wanted;
    const found = {};
    found.rust_is_whitespace = pick(pieces(T.whitespaceSplitPreTokenizer(), 2));
    found.hf_punct = pick(pieces(T.punctuationPreTokenizer('isolated'), 3));
    found.bert_removed = pick(gives(bert({ cleanText: true }), 'ab'));
    found.bert_space = pick(gives(bert({ cleanText: true }), 'a b'));
    const chinese = bert({ handleChineseChars: true });
    found.bert_cjk = pick(s => chinese.normalizeString('a' + s + 'b') !== 'a' + s + 'b');
    found.bert_mn_removed = pick(gives(bert({ stripAccents: true }), 'ab'));
    found.stripaccents_removed = pick(gives(T.stripAccentsNormalizer(), 'ab'));
    found.rust_is_numeric = pick(pieces(T.digitsPreTokenizer(true), 3));
    const classes = ['L', 'N', 's', 'Lu', 'Ll', 'Lt', 'Lm', 'Lo', 'M', 'P', 'S', 'icase_s', 'w'];
    for (const name of classes) {
        const pattern = name === 'icase_s' ? '(?i:s)' : /^[sw]$/.test(name) ? '\\' + name : `\\p{${name}}`;
        const split = { type: 'Split', pattern: { Regex: pattern }, behavior: 'Removed', invert: false };
        const p = wrap({ pre_tokenizer: split }).getPreTokenizer();
        found['onig_' + name] = pick(s => p.preTokenizeString(s).length === 0);
    }
    found.rustregex_w = pick(pieces(T.whitespacePreTokenizer(), 1));
    return found;
}

// A mark of each combining class.
const MARKS = {
    1: 0x334, 7: 0x93c, 8: 0x3099, 9: 0x94d, 10: 0x5b0, 11: 0x5b1, 12: 0x5b2, 13: 0x5b3, 14: 0x5b4,
    15: 0x5b5, 16: 0x5b6, 17: 0x5b7, 18: 0x5b8, 19: 0x5b9, 20: 0x5bb, 21: 0x5bc, 22: 0x5bd, 23: 0x5bf,
    24: 0x5c1, 25: 0x5c2, 26: 0xfb1e, 27: 0x64b, 28: 0x64c, 29: 0x64d, 30: 0x618, 31: 0x619, 32: 0x61a,
    33: 0x651, 34: 0x652, 35: 0x670, 36: 0x711, 84: 0xc55, 91: 0xc56, 103: 0xe38, 107: 0xe48, 118: 0xeb8,
    122: 0xec8, 129: 0xf71, 130: 0xf72, 132: 0xf74, 202: 0x321, 214: 0x1dce, 216: 0x31b, 218: 0x302a,
    220: 0x316, 222: 0x59a, 224: 0x302e, 226: 0x1d16d, 228: 0x5ae, 230: 0x300, 232: 0x315, 233: 0x35c,
    234: 0x35d, 240: 0x345 };

// A mark has the class of another if NFD keeps both orders of the two.
function combiningClasses(nfd) {
    const D = s => normal.nfd.normalizeString(s), classes = {};
    each((c, s) => {
        if (c < 0x80 || nfd[c]) return;
        const moves = D('q\u0345' + s) === 'q' + s + '\u0345' || D('q' + s + '\u0334') === 'q\u0334' + s;
        if (c !== 0x345 && !moves) return;
        const keeps = pair => D('q' + pair) === 'q' + pair;
        const same = Object.keys(MARKS).filter(k => keeps(s + text(MARKS[k])) && keeps(text(MARKS[k]) + s));
        if (same.length !== 1) throw new Error(`the class of ${c.toString(16)} is one of: ${same}`);
        extend(classes[same[0]] ??= [], c);
    });
    return classes;
}

// [first, second, result], without Hangul.
function compositionPairs(nfd, nfc) {
    const C = s => normal.nfc.normalizeString(s), pairs = [];
    for (const key in nfd) {
        const c = +key, parts = nfd[key];
        if ((c >= 0xac00 && c <= 0xd7a3) || nfc[key] || parts.length < 2) continue;
        const first = points(C(parts.slice(0, -1).map(text).join(''))), last = parts[parts.length - 1];
        if (first.length === 1 && C(text(first[0]) + text(last)) === text(c)) pairs.push([first[0], last, c]);
    }
    return pairs;
}

// A charsmap with the single rule a -> X is applied to whole grapheme clusters. A character that joins
// the cluster vanishes with it; a Prepend makes the rule fail.
function clusters() {
    const map = Buffer.alloc(4 + 2048 + 2);
    map.writeUInt32LE(2048, 0);
    map.writeUInt32LE(256 << 10, 4);
    map.writeUInt32LE((1 << 10) | (1 << 8) | 97, 4 + 4 * 353);
    map[4 + 2048] = 'X'.charCodeAt(0);
    const n = wrap({ normalizer: { type: 'Precompiled', precompiled_charsmap: map.toString('base64') } }).getNormalizer();
    return {
        grapheme_joins_previous: pick((s, c) => c !== 97 && n.normalizeString('a' + s) === 'X'),
        grapheme_prepend: pick((s, c) => c !== 97 && n.normalizeString(s + 'a\u0300') === s + 'X\u0300') };
}

if (process.argv[2].startsWith('unicode_ref')) {
    const sets_as_inclusive_ranges = sets(), single_codepoint_maps = {};
    for (const kind in normal) single_codepoint_maps[kind] = map(kind);
    process.stdout.write(JSON.stringify({ source, sets_as_inclusive_ranges, single_codepoint_maps }));
} else {
    const nfd = map('nfd'), nfc = map('nfc');
    process.stdout.write(JSON.stringify({ source,
        canonical_combining_class_as_inclusive_ranges: combiningClasses(nfd),
        canonical_composition_pairs: compositionPairs(nfd, nfc), ...clusters() }));
}
