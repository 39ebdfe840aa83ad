// SPDX-License-Identifier: Apache-2.0
// Station 3: row + position = sum, for each kind of positions; and what a swap of two words changes.
'use strict';

const KIND_NAMES = ['learned', 'sinusoidal', 'rotary', 'none'];

function positionsStation(root) {
  const t = TEXT.positions, { play, main } = app, out = make('div', {}), changes = make('div', {});
  let picked = -1, words = [], made = null;
  const kinds = t.kinds.map((name, i) => [i, name]).filter(([kind]) => kind !== 0 || main.about.kind === 'learned');
  if (!kinds.some(([kind]) => kind === state.kind)) state.kind = kinds[0][0];
  const order = () => { // the tokens after the swap
    const tokens = main.cut(state.order).tokens.slice(0, 24), pair = state.swap.split(',').map(Number);
    const places = tokens.map((_, i) => i);
    if (state.swap !== '' && pair.length === 2 && pair.every((i) => Number.isInteger(i) && i >= 0 && i < tokens.length)) [places[pair[0]], places[pair[1]]] = [pair[1], pair[0]];
    return { tokens, places };
  };
  const vectors = (ids) => play.embed(main.handle, ids, 0, state.kind);
  const numbers = numbersText(() => tsv(words.flatMap((word, i) => [
    [word, t.columns[1], ...made.rows[i]], ...(made.sums ? [[word, t.columns[2], ...made.positions[i]], [word, t.columns[3], ...made.sums[i]]] : []), ...(made.degrees ? [[word, t.angles, ...made.degrees[i]]] : [])])));
  const command = terminal(() => `embla embed ${app.page.model.operand} ${words.map(inShell).join(' ')}${KIND_NAMES[state.kind] === main.about.kind ? '' : ' --positions ' + KIND_NAMES[state.kind]}`);

  const pick = (i) => {
    if (picked < 0) { picked = i; update(); return; }
    set('swap', picked === i ? '' : picked + ',' + i);
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
    const before = vectors(tokens.map((token) => token.id)), after = made, whole = (v) => v.sums || v.rows;
    const lines = tokens.map((token, i) => ({ token, i, to: places.indexOf(i) })).map(({ token, i, to }) => make('tr', {},
      make('th', { scope: 'row' }, visible(token.text)), make('td', {}, t.move(i, to)), make('td', {}, t.same),
      make('td', { class: 'n' }, fixed(play.compareVectors(whole(before)[i], whole(after)[to]).cosine, 4))));
    changes.replaceChildren(make('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': t.changed }, make('table', { class: 'plain' }, make('tr', {}, ...t.changedHead.map((name, i) => make('th', { scope: 'col', class: i === 3 ? 'n' : null }, name))), ...lines)),
      ...(state.kind === 3 ? [make('p', {}, t.none)] : state.kind === 2 ? [make('p', {}, t.rotary)] : []));
  };
  const update = () => attempt(out, () => {
    const { tokens: before, places } = order();
    if (before.length === 0) throw new Error(TEXT.page.empty);
    const tokens = places.map((place) => before[place]), focused = document.activeElement && document.activeElement.dataset.place;
    words = tokens.map((token) => token.text);
    made = vectors(tokens.map((token) => token.id));
    const list = tokens.map((token, i) => {
      const item = chip(visible(token.text), String(i), { act: () => pick(i), pressed: i === picked, lit: places[i] !== i });
      item.dataset.place = i;
      return item;
    });
    out.replaceChildren(make('h2', { class: 'small' }, t.swap), make('p', { class: 'soft' }, t.swapHow), make('div', { class: 'row' }, chips(list, t.swap), ...(state.swap === '' ? [] : [button(t.undo, () => { set('swap', ''); picked = -1; update(); })])),
      make('p', { class: 'soft' }, t.about[state.kind]), lines(tokens), ...(made.degrees ? [angles()] : []));
    if (focused !== undefined && focused !== null) { const again = out.querySelector(`[data-place="${focused}"]`); if (again) again.focus(); }
    compare(before, places);
    numbers.update();
    command.update();
    drawAll();
  });
  const letters = () => { // the two m of emma
    const ids = [...'emma'].map((letter) => app.letters.find(letter)), sums = play.embed(app.letters.handle, ids).sums;
    return t.answer(fixed(play.compareVectors(sums[1], sums[2]).cosine));
  };
  root.append(...head(t), make('div', { class: 'box' }, make('div', { class: 'row' }, choice(t.kind, 'kind', kinds, update)), textInput(TEXT.page.text, 'order', () => { set('swap', ''); picked = -1; update(); }), out, make('h2', {}, t.changed), changes, numbers),
    tryThis(t.try), quiz('positions', t, letters), command);
  update();
}
