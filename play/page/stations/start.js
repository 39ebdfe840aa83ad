// SPDX-License-Identifier: Apache-2.0
// The first view: the whole way from a text to the next word, with the numbers of this page's model.
'use strict';

function startStation(root) {
  const t = TEXT.start, { play, main } = app;
  const tokens = main.cut(standard.text).tokens.slice(0, 3), ids = tokens.map((token) => token.id);
  const numbers = (row) => row.slice(0, 2).map((x) => fixed(x).padStart(5)).join(' ') + ' ..';
  const rows = play.embed(main.handle, ids, 0, 3).rows;
  const values = { tokens: tokens.map((token) => token.text.slice(0, 8).padEnd(8) + ' ' + token.id).join('\n'), rows: rows.map(numbers).join('\n') };
  values.positions = main.about.positions > 0 ? play.embed(main.handle, ids).sums : null;
  values.positions = (values.positions || rows).map(numbers).join('\n');
  const near = play.near(app.words.handle, app.words.find(standard.word), 2);
  values.alike = [standard.word, ...near.map(({ id, score }) => app.words.name(id).slice(0, 9).padEnd(9) + ' ' + fixed(score))].join('\n');
  if (main.about.model) {
    const text = promptOf(standard.before);
    values.next = play.predict(main.handle, text, 1, 3).next.map(({ id, probability }) => nextName(id).slice(0, 9).padEnd(9) + ' ' + percent(probability)).join('\n');
  }
  root.append(...head(t), make('p', { class: 'soft' }, t.more), make('ul', { class: 'flow' }, ...t.flow.filter((part) => values[part.to] !== undefined).map((part) => {
    const item = link(part.to, '');
    item.append(make('b', {}, part.title), part.about, make('div', { class: 'value' }, values[part.to]));
    return make('li', {}, item);
  })), make('p', { class: 'begin' }, link('tokens', t.begin)), make('section', { class: 'box try' }, make('p', {}, t.learn), make('p', {}, link('learn', t.learnLink)), make('p', {}, link('cost', t.costLink))));
}
