// SPDX-License-Identifier: Apache-2.0
// Station 8: parameters, bytes and operations; and the rows of an n-gram table.
'use strict';

const PREFIXES = [[1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k']];
function bytesText(x) {
  for (const [size, letter] of PREFIXES) if (x >= size) return (x / size).toFixed(2) + '\u202f' + letter + 'B';
  return x + '\u202fB';
}

function giantPart(t) {
  const out = make('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': t.giant }), { play } = app;
  let source = null, shown = '';
  const update = () => { shown = ''; attempt(out, fill); command.update(); };
  const fill = () => {
    if (!source) source = openSource(app.page.ngram);
    const { tokens } = source.cut(state.letters), some = tokens.slice(0, 12);
    if (some.length === 0) throw new Error(TEXT.page.empty);
    const found = play.ngram(source.facts.path, some.map((token) => token.id));
    out.replaceChildren(make('table', { class: 'plain' }, make('tr', {}, ...t.giantColumns.map((name) => make('th', { scope: 'col' }, name))),
      ...found.tokens.map((token, i) => make('tr', {}, make('th', { scope: 'row' }, visible(some[i].text)), make('td', {}, token.rows.map(number).join('  ')), make('td', {}, token.values[0].slice(0, 3).map((x) => fixed(x, 3)).join('  ') + ' ..')))));
    shown = state.letters;
  };
  const command = terminal(() => shown === '' ? '' : commandOf('rows', [app.page.ngram.operand, ...[...shown].slice(0, 12)]), { of: t.giantText, facts: app.page.ngram });
  const details = make('details', { class: 'box more' }, make('summary', {}, t.giant), make('p', { class: 'soft' }, t.giantAbout), textInput(t.giantText, 'letters', update), out, command);
  details.addEventListener('toggle', () => { if (details.open) update(); });
  details.close = () => { if (source) play.close(source.handle); };
  return details;
}

function costStation(root) {
  const t = TEXT.cost, { play } = app, out = make('div', {}), models = play.costModels();
  let found = null;
  const sizes = () => ({ rows: state.V, dim: state.d, positions: state.T, layers: state.L, untied: state.tie === 0 });
  const known = () => models.find((model) => model.name === state.preset && model.rows === state.V && model.dim === state.d && model.positions === state.T && model.layers === state.L);
  const numbers = numbersText(() => found === null ? '' : tsv(Object.keys(t.parts).map((name) => [t.parts[name], found[name].parameters, found[name].bytes])));
  const command = terminal(() => {
    if (found === null) return '';
    const model = known(), tied = state.tie === 1;
    if (model) return `embla cost ${model.name}${model.untied === !tied ? '' : tied ? ' --tied' : ' --untied'}${state.dtype === model.dtype ? '' : ' --dtype ' + state.dtype}`;
    return `embla cost --rows ${state.V} --dim ${state.d}${state.T > 0 ? ' --positions ' + state.T : ''}${state.L > 0 ? ' --layers ' + state.L : ''}${tied ? '' : ' --untied'}${state.dtype === 'f32' ? '' : ' --dtype ' + state.dtype}`;
  });
  const update = () => {
    found = null;
    refresh(out, fill, numbers, command);
  };
  const fill = () => {
    const model = known();
    found = play.cost(sizes(), state.dtype, model ? model.name : null);
    select.value = model ? model.name : '';
    const whole = found.trunk.parameters > 0; // else a share of all is not known
    inputs.querySelector('.layers').hidden = Boolean(model && model.layers === 0);
    const cell = (x) => make('td', { class: 'n' }, x);
    out.replaceChildren(make('p', { class: 'soft' }, model && model.untied === (state.tie === 0) ? model.about : ''), make('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': t.title }, make('table', { class: 'plain' },
      make('tr', {}, ...t.columns.slice(0, whole ? 4 : 3).map((name, i) => make('th', { scope: 'col', class: i > 0 ? 'n' : null }, name))),
      ...Object.entries(t.parts).filter(([name]) => (found[name].parameters > 0 || name === 'head') && (whole || name !== 'total')).map(([name, text]) => make('tr', {}, make('th', { scope: 'row' }, text),
        cell(number(found[name].parameters)), cell(bytesText(found[name].bytes)), ...(whole ? [cell(percent(found[name].bytes / found.total.bytes))] : []))))),
    ...(whole ? [] : [make('p', { class: 'soft' }, t.noShare)]),
    bars(Object.entries(t.parts).filter(([name]) => name !== 'total' && found[name].bytes > 0).map(([name, text]) => [text, found[name].bytes / found.total.bytes, bytesText(found[name].bytes), whole ? percent(found[name].bytes / found.total.bytes) : '']), t.title),
    make('h2', {}, t.work), make('ul', {}, make('li', {}, t.lookup(bytesText(found.lookup_bytes))), make('li', {}, t.oneHot(number(found.one_hot_madds))), make('li', {}, t.head(number(found.head_madds)))),
    ...(found.notes.length > 0 ? [make('details', { class: 'more' }, make('summary', {}, t.notes), make('ul', {}, ...found.notes.map((note) => make('li', {}, note))))] : []));
  };
  const select = make('select', {}, make('option', { value: '', disabled: true }, t.own), ...models.map((model) => make('option', { value: model.name }, model.name)));
  const inputs = make('div', { class: 'row' });
  const typed = () => { fillSliders(); update(); }, layers = () => { const part = numberInput(t.layers, 'L', update); part.classList.add('layers'); return part; };
  const fillInputs = () => inputs.replaceChildren(numberInput(t.rows, 'V', typed), numberInput(t.dim, 'd', typed), numberInput(t.positions, 'T', update), layers(), checkbox(t.tied, 'tie', update), choice(t.dtype, 'dtype', kinds.dtype.map((name) => [name, name]), update));
  const sliders = make('div', { class: 'row' });
  const log = (name, most) => {
    const input = make('input', { type: 'range', min: '0', max: String(most), step: '0.05', 'aria-label': t[{ V: 'rows', d: 'dim' }[name]] });
    input.value = String(Math.log2(Math.max(1, state[name])));
    input.setAttribute('aria-valuetext', number(state[name]));
    input.addEventListener('input', () => { set(name, Math.round(2 ** Number(input.value))); input.setAttribute('aria-valuetext', number(state[name])); fillInputs(); update(); });
    return field(t.upTo(t[{ V: 'rows', d: 'dim' }[name]], number(2 ** most)), input, true);
  };
  const fillSliders = () => sliders.replaceChildren(log('V', 20), log('d', 15));
  select.addEventListener('change', () => {
    const model = models.find(({ name }) => name === select.value);
    if (!model) return;
    for (const [name, value] of [['preset', model.name], ['V', model.rows], ['d', model.dim], ['T', model.positions], ['L', model.layers], ['tie', model.untied ? 0 : 1], ['dtype', model.dtype]]) set(name, value);
    fillInputs();
    fillSliders();
    update();
  });
  fillInputs();
  fillSliders();
  const giant = giantPart(t);
  root.append(...head(t), make('div', { class: 'box' }, make('div', { class: 'row' }, field(t.preset, select)), inputs, sliders, out, numbers), tryThis(t.try), quiz('cost', t, t.answer), command, giant);
  update();
  return giant.close;
}
