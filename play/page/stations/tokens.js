// SPDX-License-Identifier: Apache-2.0
// Station 1: letters, words and pieces of one text, side by side.
'use strict';

const MOST_CHIPS = 120;
const pieces = { merges: -1, cutter: 0 };

// The tokenizer of pieces with so many merges, learned from the page's text; 256 bytes and one more
// token come first.
function piecesOf(merges) {
  if (pieces.merges !== merges) {
    app.play.cutterClose(pieces.cutter);
    pieces.cutter = 0, pieces.merges = -1;
    pieces.cutter = app.play.cutterTrain(piecesText().path, '/pieces.json', 257 + merges);
    pieces.merges = merges;
  }
  return pieces.cutter;
}
const piecesText = () => app.page.texts.find((text) => text.path === '/village.txt') || app.page.texts[0];

function tokensStation(root) {
  const t = TEXT.tokens, { play, page } = app, lines = {}, out = {};
  // Letters: the tokenizer of the demo's model of letters and spaces.
  const letters = play.cutter(page.ngram.path);
  const ways = {
    letters(text) {
      try {
        return play.cut(letters, text);
      } catch (error) {
        throw new Error(t.lettersOnly(error.message));
      }
    },
    words: (text) => play.tokens(app.main.handle, text),
    pieces: (text) => play.cut(piecesOf(state.merges), text),
  };
  const bytes = new TextEncoder(), chars = new TextDecoder();
  const numbers = numbersText(() => tsv(Object.entries(out).flatMap(([way, cut]) => cut.tokens.map((token) => [t[way], token.id, token.shown]))));
  const command = terminal(() => {
    const file = `pieces-${257 + state.merges}.json`, cut = (model) => commandOf('tokens', [model, state.text.slice(0, KEPT)], ['--format', 'pieces']);
    const known = (way) => out[way] && out[way].tokens.length > 0 && out[way].tokens.every((token) => token.id >= 0);
    return [...(known('letters') ? [cut(page.ngram.operand)] : []), ...(known('words') && named ? [cut(page.model.operand)] : []),
      `embla tokenizer ${inShell(piecesText().operand)} -o ${file} --force --size ${257 + state.merges} --special '<|endoftext|>'`, cut(file)].join('\n');
  });
  // a table without words cuts nothing, and a .bin has no tokenizer in it
  const named = app.main.about.words.some((word) => word !== null) && !/\.bin$/.test(page.model.path);
  const kind = page.model.demo ? 'words' : app.main.about.model ? 'model' : 'table';
  const update = () => {
    const encoded = bytes.encode(state.text);
    for (const way of Object.keys(ways)) {
      out[way] = { vocab: 0, tokens: [] };
      attempt(lines[way], () => {
        if (state.text === '') throw new Error(TEXT.page.empty);
        const cut = out[way] = ways[way](state.text);
        const parts = new Map(), seen = new Map(); // tokens that are bytes of one character
        for (const { begin } of cut.tokens) parts.set(begin, (parts.get(begin) || 0) + 1);
        for (const token of cut.tokens) {
          const of = parts.get(token.begin), n = (seen.get(token.begin) || 0) + 1;
          seen.set(token.begin, n);
          token.shown = visible(token.begin < token.end ? chars.decode(encoded.subarray(token.begin, token.end)) : token.text) + (of > 1 ? ' ' + t.byte(n, of) : '');
        }
        lines[way].replaceChildren(
          make('p', { class: 'soft' }, t.line(TEXT.page.tokens(cut.tokens.length), number(cut.vocab))),
          chips(cut.tokens.slice(0, MOST_CHIPS).map((token) => chip(token.shown, String(token.id), { unknown: token.id < 0 || /^<unk/.test(token.text) })), t[way]),
          ...(cut.tokens.length > MOST_CHIPS ? [make('p', { class: 'soft' }, TEXT.page.many(MOST_CHIPS, number(cut.tokens.length)))] : []));
      });
    }
    numbers.update();
    command.update();
  };
  const box = make('div', { class: 'box' }, textInput(TEXT.page.text, 'text', update));
  for (const way of Object.keys(ways)) {
    lines[way] = make('div', {});
    const title = way === 'words' && kind !== 'words' ? t.model(page.model.operand) : t[way];
    box.append(make('h2', {}, title), make('p', { class: 'soft' }, t.about[way === 'words' ? kind : way]), ...(way === 'pieces' ? [slider('merges', t.merges, update)] : []), lines[way]);
  }
  box.append(numbers);
  root.append(...head(t), box, tryThis(t.try), quiz('tokens', t, () => {
    const cosine = (a, b) => fixed(play.compare(app.letters.handle, app.letters.find(a), app.letters.find(b)).cosine);
    return t.answer(cosine('e', 'd'), cosine('e', 'z'));
  }), command);
  update();
  return () => play.cutterClose(letters);
}
