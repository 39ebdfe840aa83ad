// SPDX-License-Identifier: Apache-2.0
// The first view: the whole way from a text to the next word. It is there before the module has started,
// with an example; then the numbers are those of this page's model.
'use strict';

// A word and its number, as wide as the others.
const pair = (word, text) => word.slice(0, 8).padEnd(8) + ' ' + text.padStart(5);
const firstNumbers = (row) => row.slice(0, 2).map((x) => fixed(x).padStart(5)).join(' ') + ' ..';

function startValues() {
  const { play, main, words } = app;
  const tokens = main.cut(standard.text).tokens.slice(0, 3), ids = tokens.map((token) => token.id);
  const { rows, positions = rows } = play.embed(main.handle, ids);
  const near = play.near(words.handle, words.find(standard.word), 2);
  const values = {
    tokens: tokens.map((token) => pair(token.text, String(token.id))), rows: rows.map(firstNumbers), positions: positions.map(firstNumbers),
    alike: [standard.word, ...near.map(({ id, score }) => pair(words.name(id), fixed(score)))],
  };
  if (main.about.model) values.next = play.predict(main.handle, promptOf(main.find('mat') >= 0 ? 'the cat sat on a' : standard.before), 1, Math.min(3, main.about.rows)).next.map(({ id, probability }) => pair(nextName(id), percent(probability)));
  return values;
}

function startStation(root) {
  const t = TEXT.start, values = app.main ? startValues() : null;
  root.append(...head(t), make('p', { class: 'soft' }, t.more), make('ul', { class: 'flow' }, ...t.flow.filter(({ to }) => !values || values[to]).map(({ to, title, about, example }) => {
    const item = link(to, '');
    item.append(make('b', {}, title), about, make('div', { class: 'value' }, (values ? values[to] : example).join('\n')));
    return make('li', {}, item);
  })), make('p', { class: 'begin' }, link('tokens', t.begin)), make('section', { class: 'box try' }, make('p', {}, t.learn), make('p', {}, link('learn', t.learnLink)), make('p', {}, link('cost', t.costLink))));
}
