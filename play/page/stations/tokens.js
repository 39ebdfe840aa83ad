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
  // Letters: the tokenizer of the demo's model of letters and spaces, where the page has it.
  const letters = play.cutter((page.ngram || page.letters).path);
  const ways = {
    letters: (text) => play.cut(letters, text),
    words: (text) => play.tokens(app.main.handle, text),
    pieces: (text) => play.cut(piecesOf(state.merges), text),
  };
  const bytes = new TextEncoder(), chars = new TextDecoder();
  const numbers = numbersText(() => tsv(Object.entries(out).flatMap(([way, cut]) => cut.tokens.map((token) => [t[way], token.id, visible(token.shown)]))));
  const command = terminal(() => {
    const text = inShell(state.text);
    return `embla tokens ${page.ngram ? page.ngram.operand : page.letters.operand} ${text} --format pieces\nembla tokens ${page.model.operand} ${text} --format pieces\n` +
      `embla tokenizer ${piecesText().operand} -o pieces.json --size ${257 + state.merges} --special '<|endoftext|>'\nembla tokens pieces.json ${text} --format pieces`;
  });
  const update = () => {
    const encoded = bytes.encode(state.text);
    for (const way of Object.keys(ways)) {
      out[way] = { vocab: 0, tokens: [] };
      attempt(lines[way], () => {
        if (state.text === '') throw new Error(TEXT.page.empty);
        const cut = out[way] = ways[way](state.text);
        for (const token of cut.tokens) token.shown = token.begin < token.end && token.text[0] !== '<' ? chars.decode(encoded.subarray(token.begin, token.end)) : token.text;
        lines[way].replaceChildren(
          make('p', { class: 'soft' }, t.line(TEXT.page.tokens(cut.tokens.length), number(cut.vocab))),
          chips(cut.tokens.slice(0, MOST_CHIPS).map((token) => chip(visible(token.shown), String(token.id), { unknown: token.id < 0 })), t[way]),
          ...(cut.tokens.length > MOST_CHIPS ? [make('p', { class: 'soft' }, TEXT.page.many(MOST_CHIPS, number(cut.tokens.length)))] : []));
      });
    }
    numbers.update();
    command.update();
  };
  const box = make('div', { class: 'box' }, textInput(TEXT.page.text, 'text', update));
  for (const way of Object.keys(ways)) {
    lines[way] = make('div', {});
    box.append(make('h2', {}, t[way]), make('p', { class: 'soft' }, t.about[way]), ...(way === 'pieces' ? [slider('merges', t.merges, update, { step: 10 })] : []), lines[way]);
  }
  box.append(numbers);
  root.append(...head(t), box, tryThis(t.try), quiz('tokens', t, () => {
    const cosine = (a, b) => fixed(play.compare(app.letters.handle, app.letters.find(a), app.letters.find(b)).cosine);
    return t.answer(cosine('e', 'd'), cosine('e', 'z'));
  }), command);
  update();
  return () => play.cutterClose(letters);
}
