// SPDX-License-Identifier: Apache-2.0
// Prints what Hugging Face's library answers to the questions of this folder: a file of
// tokenizers/expect, byte for byte. tests/data/fetch calls it, with the npm package `tokenizers`.
//   usage: node answers.js FILE.xz TOKENIZERS
// FILE is NAME.jsonl, NAME.exhaustive.txt, stages.jsonl or synthetic.jsonl. TOKENIZERS is the folder
// of tokenizers. Ids have no special tokens, truncation or padding.
'use strict';
const fs = require('fs');
const path = require('path');
const { execFileSync } = require('child_process');
const { Tokenizer } = require('tokenizers');

const [, , file, folder] = process.argv;

// A file, or the contents of file.xz.
function read(name) {
    if (fs.existsSync(name)) return fs.readFileSync(name, 'utf8');
    return execFileSync('xz', ['-dc', name + '.xz'], { maxBuffer: 1 << 30 }).toString('utf8');
}

function questions(name) {
    const lines = read(path.join(__dirname, name)).trimEnd().split('\n');
    return lines.map(line => JSON.parse(line));
}

// Line separators other than \n are escaped: every reader finds the same lines.
function print(objects) {
    const escape = c => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0');
    const lines = objects.map(o => JSON.stringify(o).replace(/[\u007f-\u009f\u2028\u2029\ufeff]/g, escape));
    process.stdout.write(lines.join('\n') + '\n');
}

function tokenizerOf(name) {
    const manifest = JSON.parse(read(path.join(__dirname, 'manifest.json')));
    const json = JSON.parse(read(path.join(folder, manifest.tokenizers.find(t => t.name === name).file)));
    return Tokenizer.fromString(JSON.stringify({ ...json, truncation: null, padding: null }));
}

async function ids(tokenizer, text) {
    return (await tokenizer.encode(text, null, { addSpecialTokens: false })).getIds();
}

// FNV-1a with 32 bits over the count and the ids, each as four bytes, little-endian.
function digest(hash, numbers) {
    for (const number of [numbers.length, ...numbers])
        for (let shift = 0; shift < 32; shift += 8)
            hash = Math.imul(hash ^ ((number >>> shift) & 255), 16777619) >>> 0;
    return hash;
}
const START = 2166136261;
const hex = hash => hash.toString(16).padStart(8, '0');

async function texts(name) {
    const tokenizer = tokenizerOf(name);
    const decoder = new TextDecoder('utf-8', { ignoreBOM: true }); // U+FFFD for what is ill-formed
    const answers = [];
    for (const q of questions('texts.jsonl')) {
        if (q.unit !== undefined) {
            const found = await ids(tokenizer, q.unit.repeat(q.times));
            answers.push({ ...q, count: found.length, first: found.slice(0, 4), last: found.slice(-4),
                fnv1a: hex(digest(START, found)) });
        } else {
            if (q.hex !== undefined) q.text = decoder.decode(Buffer.from(q.hex, 'hex'));
            answers.push({ ...q, ids: await ids(tokenizer, q.text) });
        }
    }
    print(answers);
}

// Every code point alone, between letters, and before an accent: a digest for each 256 of them.
async function exhaustive(name) {
    const tokenizer = tokenizerOf(name);
    const places = [c => c, c => 'a' + c + 'b', c => c + '\u0301'];
    for (let block = 0; block < 0x1100; block++) {
        if (block >= 0xd8 && block <= 0xdf) continue; // surrogates
        const digests = [];
        for (const place of places) {
            const strings = [];
            for (let c = block * 256; c < block * 256 + 256; c++) strings.push(place(String.fromCodePoint(c)));
            const encodings = await tokenizer.encodeBatch(strings, { addSpecialTokens: false });
            digests.push(hex(encodings.reduce((hash, e) => digest(hash, e.getIds()), START)));
        }
        process.stdout.write(block.toString(16).padStart(4, '0') + ' ' + digests.join(' ') + '\n');
    }
}

async function synthetic() {
    const answers = [];
    for (const { name, tokenizer, cases } of questions('synthetic.jsonl')) {
        let made;
        try {
            made = Tokenizer.fromString(JSON.stringify(tokenizer));
        } catch (error) {
            const why = String(error.message).split(' at line')[0].slice(0, 90);
            answers.push({ name, tokenizer, load_error: true, why });
            continue;
        }
        const answered = [];
        for (const text of cases) {
            try {
                const e = await made.encode(text, null, { addSpecialTokens: false });
                answered.push({ text, ids: e.getIds(), tokens: e.getTokens() });
            } catch (error) {
                answered.push({ text, error: String(error.message).slice(0, 80) });
            }
        }
        answers.push({ name, tokenizer, cases: answered });
    }
    print(answers);
}

// One normalizer or pre-tokenizer at a time. "Precompiled of X" is in the file of X.
function stages() {
    const bare = { version: '1.0', truncation: null, padding: null, added_tokens: [], normalizer: null,
        pre_tokenizer: null, post_processor: null, decoder: null,
        model: { type: 'WordLevel', vocab: { a: 0 }, unk_token: 'a' } };
    print(questions('stages.jsonl').map(q => {
        let part = q.def;
        if (q.name.startsWith('Precompiled of ')) {
            const normalizer = JSON.parse(read(path.join(folder, q.name.split(' ')[2], 'tokenizer.json'))).normalizer;
            part = [normalizer, ...(normalizer.normalizers || [])].find(n => n.type === 'Precompiled');
        }
        const tokenizer = Tokenizer.fromString(JSON.stringify({ ...bare, [q.stage]: part }));
        const answer = text => {
            if (q.stage === 'pre_tokenizer')
                return [text, tokenizer.getPreTokenizer().preTokenizeString(text).map(piece => piece[0])];
            const normal = tokenizer.getNormalizer().normalizeString(text);
            return normal === text ? [text] : [text, normal];
        };
        return { ...q, cases: q.cases.map(answer) };
    }));
}

const name = file.replace(/(\.exhaustive\.txt|\.jsonl)(\.xz)?$/, '');
if (name === 'stages') stages();
else if (name === 'synthetic') synthetic();
else if (file.includes('.exhaustive.')) exhaustive(name);
else texts(name);
