// SPDX-License-Identifier: Apache-2.0
// Station 4: norm, dot product and cosine, on two vectors to drag and on two words; all rows on a plane.
'use strict';

const REACH = 8; // the arms' numbers are between -REACH and REACH

function armsPart(t) {
  const facts = make('div', {}), vectors = {}, parts = {};
  for (const name of ['u', 'v']) {
    const given = state[name].split(',').map(Number);
    vectors[name] = given.length === 2 && given.every((x) => isFinite(x)) ? given.map((x) => Math.min(REACH, Math.max(-REACH, x))) : standard[name].split(',').map(Number);
  }
  const svg = make('svg', { class: 'arms', viewBox: '-9 -9 18 18', role: 'group', 'aria-label': t.arms });
  const line = (x1, y1, x2, y2, color, width) => { const l = make('line', { x1: String(x1), y1: String(y1), x2: String(x2), y2: String(y2), stroke: color, 'stroke-width': String(width) }); return l; };
  for (let i = -8; i <= 8; i += 2) svg.append(line(i, -9, i, 9, 'var(--line)', 0.03), line(-9, i, 9, i, 'var(--line)', 0.03));
  svg.append(line(-9, 0, 9, 0, 'var(--soft)', 0.05), line(0, -9, 0, 9, 'var(--soft)', 0.05));
  const update = () => {
    for (const name of ['u', 'v']) {
      const [x, y] = vectors[name], part = parts[name];
      part.arm.setAttribute('x2', String(x));
      part.arm.setAttribute('y2', String(-y));
      part.end.setAttribute('transform', `translate(${x} ${-y})`);
      part.label.setAttribute('x', x > 7 ? '-1.1' : '0.6'); // inside the picture
      part.label.setAttribute('y', y > 7 ? '1.2' : '-0.5');
      part.end.setAttribute('aria-valuetext', t.arm(name, fixed(x, 1), fixed(y, 1)));
      part.end.setAttribute('aria-valuenow', String(x));
    }
    const found = app.play.compareVectors(vectors.u, vectors.v), cosine = found.cosine, none = cosine === null || Math.min(...found.norms) === 0;
    const line = (name, value) => [make('dt', {}, name), make('dd', {}, value)];
    facts.replaceChildren(make('dl', { class: 'facts' }, ...line('u', vectors.u.map((x) => fixed(x, 1)).join(', ')), ...line('v', vectors.v.map((x) => fixed(x, 1)).join(', ')),
      ...line(t.norm('u'), fixed(found.norms[0])), ...line(t.norm('v'), fixed(found.norms[1])), ...line(t.dot, vectors.u.map((x, i) => `${fixed(x, 1)} x ${fixed(vectors.v[i], 1)}`).join(' + ') + ' = ' + fixed(found.dot)), ...line(t.cosine, none ? '\u2013' : fixed(cosine)),
      ...line(t.angle, none ? '\u2013' : t.degrees(fixed(Math.acos(Math.min(1, Math.max(-1, cosine))) * 180 / Math.PI, 1)))),
    make('p', { class: 'soft' }, t.sign[none ? 'none' : Math.abs(found.dot) < 1e-6 ? 'zero' : found.dot > 0 ? 'positive' : 'negative']));
  };
  const put = (name, x, y) => {
    vectors[name] = [x, y].map((value) => Math.round(Math.min(REACH, Math.max(-REACH, value)) * 2) / 2);
    set(name, vectors[name].join(','));
    update();
  };
  for (const [name, color] of [['u', 'var(--high)'], ['v', 'var(--low)']]) {
    const arm = line(0, 0, 0, 0, color, 0.16);
    const end = make('g', { role: 'slider', tabindex: '0', 'aria-label': t.arm(name, '', '').split(':')[0], 'aria-valuemin': String(-REACH), 'aria-valuemax': String(REACH) },
      make('circle', { r: '1.1', fill: 'transparent' }), make('circle', { r: '0.42', fill: color, 'stroke-width': '0.16', stroke: 'var(--paper)' }));
    const label = make('text', { x: '0.6', y: '-0.5', 'font-size': '1' }, name);
    label.style.fontSize = '1px';
    end.append(label);
    end.addEventListener('keydown', (event) => {
      const move = { ArrowLeft: [-0.5, 0], ArrowRight: [0.5, 0], ArrowUp: [0, 0.5], ArrowDown: [0, -0.5] }[event.key];
      if (!move) return;
      event.preventDefault();
      put(name, vectors[name][0] + move[0], vectors[name][1] + move[1]);
    });
    end.addEventListener('pointerdown', (event) => { event.preventDefault(); end.setPointerCapture(event.pointerId); end.focus(); });
    end.addEventListener('pointermove', (event) => {
      if (!end.hasPointerCapture(event.pointerId)) return;
      const place = svg.getBoundingClientRect();
      put(name, (event.clientX - place.left) / place.width * 18 - 9, 9 - (event.clientY - place.top) / place.height * 18);
    });
    parts[name] = { arm, end, label };
    svg.append(arm, end);
  }
  svg.append(parts.u.end, parts.v.end); // above both lines
  update();
  return make('section', { class: 'box', 'aria-label': t.arms }, make('h2', {}, t.arms), make('p', { class: 'soft' }, t.armsHow), make('div', { class: 'two' }, svg, facts));
}

function alikeStation(root) {
  const t = TEXT.alike, { play, words } = app, facts = make('div', {}), near = make('div', {});
  const MOST = 3000, { about } = words; // points of the plane
  const plane = play.plane(words.handle, about.rows > MOST ? Array.from({ length: MOST }, (_, id) => id) : []);
  const xy = plane.xy.slice(0, MOST);
  let list = [], chosen = 0;
  const canvas = planePicture((width) => Math.min(560, Math.max(300, width * 0.7)), '', () => ({
    xy, name: words.name, chosen, lines: list.filter(({ id, score }) => id < xy.length && score > 0).map(({ id, score }) => [chosen, id, score]),
  }), (id) => choose(id));
  const numbers = numbersText(() => chosen < 0 ? '' : tsv([[words.name(chosen), chosen, 1], ...list.map(({ id, score }) => [words.name(id), id, score])]));
  const command = terminal(() => chosen < 0 ? '' : [...(words.find(state.other) < 0 ? [] : [commandOf('compare', [words.facts.operand, state.word, state.other], ['--format', 'table'])]), commandOf('near', [words.facts.operand, state.word], ['--top', '10'])].join('\n'), { facts: words.facts });
  const update = () => {
    const a = words.find(state.word), b = words.find(state.other);
    chosen = a, list = [];
    near.replaceChildren();
    facts.replaceChildren();
    if (a >= 0) attempt(near, () => {
      list = play.near(words.handle, a, 10);
      near.replaceChildren(make('h3', {}, t.near(words.name(a))), nearList(list, words.name, t.near(words.name(a)), (id) => choose(id)));
    });
    if (a >= 0 && b >= 0) {
      const found = play.compare(words.handle, a, b), line = (name, value) => [make('dt', {}, name), make('dd', {}, value)];
      facts.replaceChildren(make('dl', { class: 'facts' }, ...line(t.norm(words.name(a)), fixed(found.norms[0], 3)), ...line(t.norm(words.name(b)), fixed(found.norms[1], 3)),
        ...line(t.dot, fixed(found.dot, 3)), ...line(t.cosine, fixed(found.cosine, 3))));
    }
    canvas.label(t.mapLabel(number(xy.length), a >= 0 ? words.name(a) : '\u2013'));
    canvas.draw();
    numbers.update();
    command.update();
  };
  const first = wordPicker(t.first, 'word', words, update), second = wordPicker(t.second, 'other', words, update);
  const choose = (id) => { first.show(words.word(id)); update(); say(t.near(words.name(id))); };
  root.append(...head(t), armsPart(t), make('section', { class: 'box', 'aria-label': t.words }, make('h2', {}, t.words), make('div', { class: 'row' }, first, second), facts,
    make('div', { class: 'wide' }, make('figure', {}, make('h3', {}, t.map), make('p', { class: 'soft' }, t.mapHow + (about.rows > MOST ? ' ' + t.first3000(number(MOST), number(about.rows)) : '')), canvas, make('figcaption', {}, TEXT.page.share(percent(plane.share[0]), percent(plane.share[1])))), near), numbers),
  tryThis(t.try), quiz('alike', t, t.answer), command);
  update();
}
