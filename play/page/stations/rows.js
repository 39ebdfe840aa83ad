// SPDX-License-Identifier: Apache-2.0
// Station 2: a token selects a row. Small tables are shown as numbers, large ones as cells of colour.
'use strict';

const SMALL = 16, ALL = 400; // rows of a table that is shown as numbers; rows that are drawn, all of them

function smallTable(t, source, ids, update) {
  const { about } = source, all = app.play.embed(source.handle, about.words.map((_, id) => id), 0, 3).rows;
  const put = (list) => { set('ids', list.join(',')); update(); };
  const label = (id) => (about.words[id] === null || about.words[id] === String(id) ? String(id) : source.name(id) + ' ' + id);
  const focus = (id) => { const again = document.querySelector(`[data-row="${id}"]`); if (again) again.focus(); };
  const line = (id, row, act) => make('tr', { class: act && ids.includes(id) ? 'lit' : null },
    make('th', { scope: 'row' }, act ? chip(label(id), null, { act: () => { put([...ids, id]); focus(id); }, title: t.add }) : label(id)), ...row.map((x) => make('td', {}, fixed(x))));
  const table = make('table', { class: 'numbers', 'aria-label': t.table }, ...all.map((row, id) => line(id, row, true)));
  table.querySelectorAll('button').forEach((item, id) => { item.dataset.row = id; });
  return [make('p', { class: 'soft' }, t.add), make('div', { class: 'wide' }, make('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': t.table }, table), make('div', {},
    make('h2', { class: 'small' }, t.sequence), chips(ids.map((id) => chip(label(id), null, { lit: true })), t.sequence),
    ids.length > 0 ? button(t.clear, () => put([])) : null,
    make('h2', { class: 'small' }, t.result(ids.length, about.dim)), make('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': t.result(ids.length, about.dim) }, make('table', { class: 'numbers' }, ...ids.map((id) => line(id, all[id], false)))))),
  ...(ids.length > 0 ? hotPart(t, source, ids[ids.length - 1]) : [make('p', { class: 'soft' }, t.choose)])];
}

// The rows that are drawn: all, or in a large table those of the text with their neighbours.
function drawnRows(count, ids) {
  if (count <= ALL) return Array.from({ length: count }, (_, id) => id);
  const near = new Set();
  for (const id of ids) for (let i = Math.max(0, id - 3); i <= Math.min(count - 1, id + 3); i++) near.add(i);
  return [...near].sort((a, b) => a - b);
}

function largeTable(t, source, tokens, update) {
  const { about } = source, ids = tokens.map((token) => token.id), drawn = drawnRows(about.rows, ids);
  const rows = app.play.embed(source.handle, drawn, 0, 3).rows, most = range(rows);
  const chosen = ids.includes(state.token) ? state.token : ids[0];
  const lit = new Set(drawn.map((id, i) => (ids.includes(id) ? i : -1)).filter((i) => i >= 0));
  const height = Math.min(620, Math.max(120, drawn.length * (drawn.length > 100 ? 2 : 14)));
  const label = drawn.length === about.rows ? t.picture(number(about.rows)) : t.pictureSome(drawn.length, number(about.rows));
  const canvas = tablePicture(drawn.length, about.dim, height, label, () => ({ value: (r, k) => rows[r][k] || 0, most, lit, name: (r) => source.name(drawn[r]) }));
  const one = rows[drawn.indexOf(chosen)];
  const word = source.name(chosen);
  return [chips(tokens.map((token) => chip(visible(token.text), String(token.id), { pressed: token.id === chosen, act: () => {
    set('token', token.id);
    update();
    const again = document.querySelector('.chips [aria-pressed="true"]');
    if (again) again.focus();
  } })), t.sequence),
  make('h2', { class: 'small' }, t.chosen(word, chosen)), strip(one, most, t.chosen(word, chosen)),
  make('pre', { tabindex: '0', 'aria-label': t.chosen(word, chosen) }, one.map((x) => fixed(x, 3).padStart(6)).join(' ')),
  make('figure', {}, canvas, make('figcaption', {}, label)),
  ...hotPart(t, source, chosen)];
}

function hotPart(t, source, id) {
  const hot = app.play.oneHot(source.handle, id), cell = (x) => make('td', { class: 'n' }, x);
  const vector = Array.from({ length: source.about.rows }, (_, row) => (row === id ? 1 : 0)), from = Math.max(0, Math.min(id - 4, vector.length - 24));
  const some = vector.slice(from, from + 24).join(' '), written = `[${from > 0 ? '.. ' : ''}${some}${from + 24 < vector.length ? ' ..' : ''}]`;
  return [make('h2', {}, t.hot), make('p', { class: 'soft' }, t.hotAbout),
    make('pre', { tabindex: '0', 'aria-label': t.hotVector(id, number(vector.length)) }, `${written}  x  ${source.facts.operand}, ${number(source.about.rows)} x ${source.about.dim}  =  [${hot.row.slice(0, 6).map((x) => fixed(x)).join(' ')}${hot.row.length > 6 ? ' ..' : ''}]`),
    make('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': t.hot }, make('table', { class: 'plain' },
      make('tr', {}, make('th', { scope: 'col' }, t.kind), make('th', { class: 'n', scope: 'col' }, t.multiplications), make('th', { class: 'n', scope: 'col' }, t.copied)),
      make('tr', {}, make('th', { scope: 'row' }, t.lookup), cell('0'), cell(number(hot.row.length))),
      make('tr', {}, make('th', { scope: 'row' }, t.product), cell(number(hot.multiplications)), cell('0')))),
    make('p', { class: 'soft' }, t.zero(number(hot.by_zero)) + '. ' + (hot.same ? t.same : t.differs))];
}

function rowsStation(root) {
  const t = TEXT.rows, tables = new Map(app.page.tables.map((facts) => [facts.path.slice(1).replace(/\.vec$/, ''), facts]));
  tables.set('main', app.page.model);
  if (!tables.has(state.table)) state.table = standard.table;
  const opened = new Map([['main', app.main]]), out = make('div', {}), box = make('div', { class: 'box' });
  const source = () => {
    if (!opened.has(state.table)) opened.set(state.table, openSource(tables.get(state.table)));
    return opened.get(state.table);
  };
  let ids = [];
  const numbers = numbersText(() => tsv(app.play.embed(source().handle, ids, 0, 3).rows.map((row, i) => [ids[i], source().name(ids[i]), ...row])));
  const command = terminal(() => {
    if (ids.length === 0) return '';
    const { facts, about } = source(), words = app.page.model.demo && about.rows > SMALL;
    return words ? commandOf('lookup', [facts.operand, ...ids.map(source().word)], ['--format', 'text']) : commandOf('lookup', [facts.operand], ['--ids', ids.join(','), '--format', 'text']);
  }, { note: () => terminalNote(source().facts) });
  const text = textInput(TEXT.page.text, 'text', () => update());
  const update = () => {
    ids = [];
    refresh(out, fill, numbers, command);
  };
  const fill = () => {
    const { about } = source(), small = about.rows <= SMALL;
    text.hidden = small;
    if (small) {
      ids = state.ids.split(',').map(Number).filter((id) => state.ids !== '' && Number.isInteger(id) && id >= 0 && id < about.rows).slice(0, 24);
      out.replaceChildren(...smallTable(t, source(), ids, update));
    } else {
      const { tokens, unknown } = source().cut(state.text);
      if (tokens.length === 0) throw new Error(unknown.length > 0 ? TEXT.page.unknown(unknown[0]) : TEXT.page.empty);
      const some = tokens.slice(0, 48);
      ids = some.map((token) => token.id);
      out.replaceChildren(...(unknown.length > 0 ? [make('p', { class: 'wrong-input' }, TEXT.page.unknownSome(unknown.slice(0, 8).join(', ')))] : []),
        ...(some.length < tokens.length ? [make('p', { class: 'soft' }, TEXT.page.many(some.length, number(tokens.length)))] : []), ...largeTable(t, source(), some, update));
    }
  };
  box.append(make('div', { class: 'row' }, choice(t.table, 'table', [...tables].map(([name, facts]) => [name, facts.operand]), () => {
    set('ids', state.table === 'fox' ? '2,5,7,11,0' : '2,3,0');
    update();
  })), text, out, numbers);
  root.append(...head(t), box, tryThis(t.try), quiz('rows', t, t.answer), command);
  update();
  return () => { for (const [name, it] of opened) if (name !== 'main') app.play.close(it.handle); };
}
