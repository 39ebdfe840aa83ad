// SPDX-License-Identifier: Apache-2.0
// Station 3: row + position = sum, for each kind of positions; and what a swap of two words changes.
'use strict';

const KIND_NAMES = ['learned', 'sinusoidal', 'rotary', 'none'], MOST_WORDS = 24;

// The places of the words after some swaps, "1,4;2,3": which of the words is now at each.
function placesAfter(count, swaps) {
  const places = Array.from({ length: count }, (_, i) => i), inside = (i) => Number.isInteger(i) && i >= 0 && i < count;
  for (const [a, b] of swaps.split(';').map((pair) => pair.split(',').map(Number))) if (inside(a) && inside(b)) [places[a], places[b]] = [places[b], places[a]];
  return places;
}

function positionsStation(root) {
  const t = TEXT.positions, { play, main } = app, out = make('div', {}), changes = make('div', {});
  let picked = -1, words = [], ids = [], made = null;
  const kinds = t.kinds.map((name, i) => [i, name]).filter(([kind]) => kind !== 0 || main.about.kind === 'learned');
  if (!kinds.some(([kind]) => kind === state.kind)) state.kind = kinds[0][0];
  const order = () => { // the tokens, and their places after the swaps
    const { tokens } = main.cut(state.order);
    if (state.kind === 0 && tokens.length > main.about.positions) throw new Error(t.long(number(tokens.length), number(main.about.positions)));
    const some = tokens.slice(0, MOST_WORDS);
    return { tokens: some, all: tokens.length, places: placesAfter(some.length, state.swap) };
  };
  const vectors = (ids) => play.embed(main.handle, ids, 0, state.kind);
  const numbers = numbersText(() => made === null ? '' : tsv(words.flatMap((word, i) => [
    [word, t.columns[1], ...made.rows[i]], ...(made.sums ? [[word, t.columns[2], ...made.positions[i]], [word, t.columns[3], ...made.sums[i]]] : []), ...(made.degrees ? [[word, t.angles, ...made.degrees[i]]] : [])])));
  const command = terminal(() => made === null ? '' : commandOf('embed', [app.page.model.operand, ...ids.map(main.word)], [...(KIND_NAMES[state.kind] === main.about.kind ? [] : ['--positions', KIND_NAMES[state.kind]]), ...(state.kind === 2 ? [] : ['--format', 'text'])]));

  const pick = (i) => {
    if (picked < 0) { picked = i; update(); return; }
    if (picked !== i) {
      const swaps = [state.swap, picked + ',' + i].filter(Boolean).join(';');
      set('swap', placesAfter(MOST_WORDS, swaps).every((place, at) => place === at) ? '' : swaps);
    }
    picked = -1;
    update();
  };
  const lines = (tokens) => {
    const most = range([...made.rows, ...(made.positions || [])]), parts = made.sums ? [made.rows, made.positions, made.sums] : [made.rows];
    const grid = make('div', { class: 'strip' + (parts.length === 1 ? ' one' : '') }, ...t.columns.slice(0, parts.length + 1).map((name) => make('span', { class: 'head' }, name)));
    tokens.forEach((token, i) => grid.append(make('span', {}, visible(token.text) + ' '), ...parts.map((part, k) => strip(part[i], most, `${token.text}, ${t.columns[k + 1]}: ${part[i].slice(0, 4).map((x) => fixed(x)).join(', ')} \u2026`))));
    return grid;
  };
  const angles = () => make('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': t.angles }, make('h3', {}, t.angles), make('table', { class: 'numbers' }, ...made.degrees.map((row, i) => make('tr', {}, make('th', { scope: 'row' }, words[i] + ' ' + i), ...row.map((x) => make('td', {}, x === 0 ? '0' : x < 0.01 ? x.toExponential(1) : x.toFixed(x < 10 ? 2 : 1)))))));
  const compare = (tokens, places) => {
    if (places.every((place, i) => place === i)) { changes.replaceChildren(make('p', { class: 'soft' }, t.nothing)); return; }
    if (places.every((place, i) => tokens[place].id === tokens[i].id)) { changes.replaceChildren(make('p', { class: 'soft' }, t.sameWord)); return; }
    const before = vectors(tokens.map((token) => token.id)), after = made, whole = (v) => v.sums || v.rows;
    const lines = tokens.map((token, i) => ({ token, i, to: places.indexOf(i) })).map(({ token, i, to }) => make('tr', {},
      make('th', { scope: 'row' }, visible(token.text)), make('td', {}, t.move(i, to)), make('td', {}, t.same),
      make('td', { class: 'n' }, fixed(play.compareVectors(whole(before)[i], whole(after)[to]).cosine, 4))));
    changes.replaceChildren(make('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': t.changed }, make('table', { class: 'plain' }, make('tr', {}, ...t.changedHead.map((name, i) => make('th', { scope: 'col', class: i === 3 ? 'n' : null }, name))), ...lines)),
      ...(state.kind === 3 ? [make('p', {}, t.none)] : state.kind === 2 ? [make('p', {}, t.rotary)] : []));
  };
  const update = () => {
    made = null, words = [], ids = [];
    changes.replaceChildren();
    refresh(out, fill, numbers, command);
  };
  const fill = () => {
    const { tokens: before, places, all } = order();
    if (before.length === 0) throw new Error(TEXT.page.empty);
    const tokens = places.map((place) => before[place]), focused = document.activeElement && document.activeElement.dataset.place;
    words = tokens.map((token) => token.text);
    ids = tokens.map((token) => token.id);
    made = vectors(ids);
    const list = tokens.map((token, i) => {
      const item = chip(visible(token.text), String(i), { act: () => pick(i), pressed: i === picked, lit: places[i] !== i });
      item.dataset.place = i;
      return item;
    });
    out.replaceChildren(make('h2', { class: 'small' }, t.swap), make('p', { class: 'soft' }, t.swapHow), make('div', { class: 'row' }, chips(list, t.swap), ...(state.swap === '' ? [] : [button(t.undo, () => { set('swap', ''); picked = -1; update(); })])),
      ...(all > tokens.length ? [make('p', { class: 'soft' }, TEXT.page.many(tokens.length, number(all)))] : []), make('p', { class: 'soft' }, t.about[state.kind]), lines(tokens), ...(made.degrees ? [angles()] : []));
    if (focused !== undefined && focused !== null) { const again = out.querySelector(`[data-place="${focused}"]`); if (again) again.focus(); }
    compare(before, places);
  };
  const letters = () => { // the two m of emma
    const ids = [...'emma'].map((letter) => app.letters.find(letter)), sums = play.embed(app.letters.handle, ids).sums;
    return t.answer(fixed(play.compareVectors(sums[1], sums[2]).cosine));
  };
  root.append(...head(t), make('div', { class: 'box' }, make('div', { class: 'row' }, choice(t.kind, 'kind', kinds, update)), textInput(TEXT.page.text, 'order', () => { set('swap', ''); picked = -1; update(); }), out, make('h2', {}, t.changed), changes, numbers),
    tryThis(t.try), quiz('positions', t, letters), command);
  update();
}
