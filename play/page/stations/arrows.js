// SPDX-License-Identifier: Apache-2.0
// Station 5: king - man + woman, and questions of one's own.
'use strict';

const EXAMPLES = [['king', 'man', 'woman'], ['queen', 'woman', 'man'], ['dogs', 'dog', 'cat'], ['princess', 'woman', 'man'], ['king', 'cat', 'dog']];

// The question of the demo's words, where it holds; of other tables, whether a question answers itself.
function arrowsQuiz(t) {
  const { play, words } = app, first = (plus, minus, keep) => play.analogy(words.handle, plus, minus, 1, keep)[0];
  const [king, cat, dog, queen] = ['king', 'cat', 'dog', 'queen'].map(words.find);
  const found = Math.min(king, cat, dog) < 0 ? null : first([king, dog], [cat], false);
  if (found && found.id === queen) return quiz('arrows', t, () => t.answer(words.name(found.id), fixed(found.score)));
  const asked = ['plus', 'minus', 'then'].map((name) => standard[name]), [plus, minus, then] = asked.map(words.find);
  const kept = first([plus, then], [minus], true), own = [plus, minus, then].includes(kept.id);
  return quiz('arrows', { question: t.otherQuestion(`${asked[0]} - ${asked[1]} + ${asked[2]}`), options: t.otherOptions, right: own ? 0 : 1 }, () => t.otherAnswer(words.name(kept.id), fixed(kept.score)));
}

function arrowsStation(root) {
  const t = TEXT.arrows, { play, words } = app, out = make('div', {}), caption = make('figcaption', {}), note = make('p', { class: 'soft' });
  let found = [], ids = [], plane = null;
  const canvas = planePicture((width) => Math.min(480, Math.max(280, width * 0.7)), '', () => {
    if (!plane) return { xy: [], name: words.name };
    const [a, b, c] = ids, d = found[0].id;
    return { xy: plane.xy, name: words.name, chosen: -1, only: new Set([a, b, c, d]), lines: [[b, c, 1, true], [a, d, 1, true]] };
  });
  const question = () => `${state.plus} - ${state.minus} + ${state.then}`;
  const numbers = numbersText(() => tsv(found.map(({ id, score }) => [words.name(id), id, score])));
  const command = terminal(() => found.length === 0 ? '' : commandOf('analogy', [words.facts.operand, question()], ['--top', '5', ...(state.keep ? ['--keep-words'] : [])]), { facts: words.facts });
  const update = () => {
    found = [], plane = null;
    out.replaceChildren();
    caption.textContent = '';
    refresh(out, fill, numbers, command);
  };
  const fill = () => {
    ids = [state.plus, state.minus, state.then].map(words.find);
    if (ids.some((id) => id < 0)) return;
    found = play.analogy(words.handle, [ids[0], ids[2]], [ids[1]], 5, state.keep === 1);
    plane = found.length > 0 ? play.plane(words.handle, [...new Set([...ids, found[0].id])]) : null;
    out.replaceChildren(make('h2', { class: 'small' }, `${t.results}: ${question()}`), nearList(found, words.name, t.results, null));
    note.textContent = state.keep ? t.kept : t.excluded;
    const text = found.length > 0 ? t.picture(...ids.map(words.name), words.name(found[0].id)) : '';
    caption.textContent = text + ' ' + t.caution;
    canvas.label(text);
  };
  const pickers = [wordPicker(t.plus, 'plus', words, update), wordPicker(t.minus, 'minus', words, update), wordPicker(t.then, 'then', words, update)];
  const examples = EXAMPLES.filter((example) => example.every((word) => words.find(word) >= 0)).map((example) => chip(`${example[0]} - ${example[1]} + ${example[2]}`, null, { act: () => {
    example.forEach((word, i) => pickers[i].show(word));
    update();
  } }));
  root.append(...head(t), make('div', { class: 'box' }, make('div', { class: 'row' }, ...pickers), checkbox(t.keep, 'keep', update),
    ...(examples.length > 0 ? [make('h2', { class: 'small' }, t.examples), chips(examples, t.examples)] : []),
    make('div', { class: 'wide' }, make('figure', {}, canvas, caption), make('div', {}, out, note)), numbers), tryThis(t.try), arrowsQuiz(t), command);
  update();
}
