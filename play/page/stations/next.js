// SPDX-License-Identifier: Apache-2.0
// Station 6: logits, probabilities, temperature; and the head, tied or a table of its own.
'use strict';

const TOP = 10;

// The tokens of a text as the model reads it: behind the token that begins a text.
function promptOf(text) {
  const ids = app.main.cut(text).tokens.map((token) => token.id), { bos, leads } = app.main.about;
  return bos >= 0 && (leads || text === '') ? [bos, ...ids] : ids;
}
const nextName = (id) => (id === app.main.about.bos ? TEXT.next.ends : app.main.name(id));

function headPart(t) {
  const { play, main } = app, lists = make('div', { class: 'two' });
  const update = () => {
    const id = main.find(state.headword);
    lists.replaceChildren();
    if (id < 0) return;
    const part = (title, head) => make('div', {}, make('h3', {}, title), nearList(play.near(main.handle, id, 6, head), main.name, title, (other) => { picker.show(main.word(other)); update(); }));
    attempt(lists, () => lists.replaceChildren(part(t.byTable(main.name(id)), 0), ...(main.about.head ? [part(t.byHead(main.name(id)), 1)] : [])));
  };
  const picker = wordPicker(t.headWord, 'headword', main, update);
  update();
  return make('section', { class: 'box', 'aria-label': t.head }, make('h2', {}, t.head), make('p', {}, main.about.head ? t.untied(number(main.about.rows), number(main.about.dim)) : t.tied), make('div', { class: 'row' }, picker), lists);
}

function nextStation(root) {
  const t = TEXT.next, { play, main } = app, out = make('div', {});
  if (!main.about.model) {
    root.append(...head(t), make('div', { class: 'box' }, make('p', {}, TEXT.page.noModel)));
    return;
  }
  let found = null, ids = [];
  const numbers = numbersText(() => found === null ? '' : tsv(found.next.map(({ id, probability, logit }) => [nextName(id), id, probability, Math.fround(logit)])));
  const command = terminal(() => found === null ? '' : commandOf('predict', [app.page.model.operand, ...(state.before === '' ? [] : [state.before.slice(0, KEPT)])], ['--top', String(TOP), ...(state.heat === 1 ? [] : ['--temperature', String(state.heat)]), '--format', 'table']));
  const update = () => {
    found = null;
    refresh(out, fill, numbers, command);
  };
  const fill = () => {
    ids = promptOf(state.before);
    const begins = ids[0] === main.about.bos ? 1 : 0, top = Math.min(TOP, main.about.rows);
    if (ids.length === 0) throw new Error(TEXT.page.empty);
    if (ids.length > main.about.positions) throw new Error(t.long(number(ids.length), number(main.about.positions)));
    const plain = play.predict(main.handle, ids, 1, top); // how probable the words were does not depend on the slider
    found = state.heat === 1 ? plain : play.predict(main.handle, ids, state.heat, top);
    const title = ids.length > begins ? t.after(main.name(ids[ids.length - 1])) : t.begin;
    const first = found.next[0];
    const each = plain.each.slice(1).map((token) => chip(main.name(token.id), percent(token.probability)));
    out.replaceChildren(make('h2', { class: 'small' }, title), make('div', { class: 'bars', 'aria-hidden': 'true' }, make('div', { class: 'line' }, ...[t.columns[0], '', t.columns[1], t.columns[2]].map((name, i) => make('span', { class: i === 0 ? 'title' : 'n title' }, name)))),
      bars(found.next.map(({ id, probability, logit }) => [nextName(id), probability, percent(probability), fixed(logit)]), title),
      make('div', { class: 'row' }, ...(first.id === main.about.bos ? [make('p', {}, t.ended)] : [button(t.append, () => {
        set('before', play.textOf(main.handle, [...ids.slice(begins), first.id]));
        input.querySelector('input').value = state.before;
        update();
        (out.querySelector('button.act') || input.querySelector('input')).focus();
      })])),
      ...(each.length > 0 ? [make('h2', { class: 'small' }, t.each), chips(each, t.each), make('p', { class: 'soft' }, t.eachNote(fixed(plain.loss, 3), fixed(plain.loss / Math.LN2)))] : []));
  };
  const input = textInput(TEXT.page.text, 'before', update);
  root.append(...head(t), make('div', { class: 'box' }, input, slider('heat', (x) => t.temperature(x), update, { least: 0.1, most: 2, step: 0.1 }), out, numbers), headPart(t), tryThis(t.try), quiz('next', t, () => {
    if (found === null) return TEXT.page.empty;
    const now = play.predict(main.handle, ids, 1, 1).next[0].probability, cold = play.predict(main.handle, ids, 0.1, 1).next[0].probability;
    return t.answer(percent(now), percent(cold));
  }), command);
  update();
}
