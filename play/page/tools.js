// SPDX-License-Identifier: Apache-2.0
// What all stations use: elements, controls, the state in the address of the page, and the parts that
// each station has: a question, its numbers as text, and the command that does the same.
'use strict';

// make('button', { class: 'act', onclick: f, 'aria-label': '..' }, 'text', element ..)
function make(tag, properties = {}, ...children) {
  const element = tag === 'svg' || make.svg.has(tag) ? document.createElementNS('http://www.w3.org/2000/svg', tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name in element && typeof value !== 'string') element[name] = value;
    else element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}
make.svg = new Set(['svg', 'g', 'line', 'circle', 'text']);

const fixed = (x, digits = 2) => (x === null || x === undefined ? '\u2013' : (Object.is(Math.round(x * 10 ** digits), -0) ? 0 : x).toFixed(digits));
const percent = (x) => (100 * x).toFixed(x > 0 && x < 0.001 ? 3 : 1) + '\u202f%';
// A word as a label: what cannot be seen is made visible.
const visible = (text) => text.replace(/[ \u0120]/g, '\u2423').replace(/\n/g, '\u21b5').replace(/\t/g, '\u21e5');
// As a shell reads it.
const inShell = (text) => (/^[\w./,:#-]+$/.test(text) && text[0] !== '#' ? text : "'" + text.replace(/'/g, "'\\''") + "'");
// A command of the program; words that begin with - come behind --.
function commandOf(verb, operands, options = []) {
  const words = operands.map(inShell), dashed = operands.some((text) => text[0] === '-');
  return ['embla', verb, ...(dashed ? [...options, '--', ...words] : [...words, ...options])].join(' ');
}
const later = (f, wait = 120) => { let timer = 0; return () => { clearTimeout(timer); timer = setTimeout(f, wait); }; };
const say = (text) => { $('said').textContent = text; };

/* ---- the state: what a learner has chosen, kept in the fragment of the address ---- */

const KEPT = 600; // longer texts are not kept
const standard = {
  s: 'start', theme: 'auto', text: 'the cat sat on a mat', merges: 60, table: 'five', ids: '2,3,0', token: -1,
  order: 'the dog bit the man', kind: 0, swap: '', u: '3,4', v: '3,1', word: 'cat', other: 'dog',
  plus: 'king', minus: 'man', then: 'woman', keep: 0, before: 'the king', heat: 1, headword: 'flew',
  corpus: '', unit: '', dim: 16, pos: 0, tied: 0, rate: 0, steps: 1000, seed: 1, speed: 1, watch: '',
  preset: 'gpt2', V: 50257, d: 768, T: 1024, L: 0, tie: 1, dtype: 'f32', letters: 'the king',
};
const state = { ...standard };
const fractions = new Set(['heat', 'rate']); // all other numbers are whole
const kinds = { theme: ['auto', 'light', 'dark'], unit: ['', 'letters', 'words', 'pieces'], dtype: ['f32', 'bf16', 'f8_e4m3', 'q4_0'] };
// What the limits of the controls are: an address can be edited.
const limits = {
  merges: [0, 300], kind: [0, 3], heat: [0.1, 2], dim: [2, 64], pos: [0, 3], rate: [0, 1], steps: [1, 100000], seed: [1, 2147483647],
  speed: [0, 2], V: [1, 1e9], d: [1, 65536], T: [0, 1e7], L: [0, 1000], keep: [0, 1], tied: [0, 1], tie: [0, 1], token: [-1, 1e9],
};

function readState() {
  const given = new URLSearchParams(location.hash.slice(1));
  for (const [name, value] of Object.entries(standard)) {
    let text = given.get(name);
    if (text === null) { state[name] = value; continue; }
    if (typeof value !== 'number') { state[name] = kinds[name] && !kinds[name].includes(text) ? value : text.slice(0, KEPT); continue; }
    const [least, most] = limits[name] || [-Infinity, Infinity], x = fractions.has(name) ? Number(text) : Math.round(Number(text));
    state[name] = text.trim() !== '' && isFinite(x) ? Math.min(most, Math.max(least, x)) : value;
  }
}

let refused = 0; // how often the browser did not take an address
const writeState = later(() => {
  const kept = new URLSearchParams();
  for (const [name, value] of Object.entries(standard))
    if (state[name] !== value && String(state[name]).length <= KEPT) kept.set(name, state[name]);
  try {
    history.replaceState(null, '', '#' + kept);
    refused = 0;
  } catch (error) { // a browser limits how often, and a frame of a notebook does not allow it at all
    if (++refused < 5) writeState();
  }
}, 250);

function set(name, value) {
  state[name] = value;
  writeState();
}

/* ---- controls ---- */

function field(label, control, grow = false) {
  return make('label', { class: 'field' + (grow ? ' grow' : '') }, label, control);
}

function textInput(label, name, changed) {
  const input = make('input', { type: 'text', spellcheck: 'false', autocomplete: 'off', autocapitalize: 'off' });
  const note = make('p', { class: 'soft', hidden: true }, TEXT.page.long);
  input.value = state[name];
  const act = later(() => { if (input.isConnected) changed(); }, 60); // not when its station has been left
  input.addEventListener('input', () => {
    set(name, input.value);
    note.hidden = input.value.length <= KEPT;
    act();
  });
  return make('div', { class: 'row' }, field(label, input, true), note);
}

// text(value) says what the slider stands at.
function slider(name, text, changed, { least = limits[name][0], most = limits[name][1], step = 1 } = {}) {
  const input = make('input', { type: 'range', min: String(least), max: String(most), step: String(step) });
  const said = make('span', {}, text(state[name]));
  input.value = String(state[name]);
  input.setAttribute('aria-valuetext', text(state[name]));
  const act = later(() => { if (input.isConnected) changed(); }, 40);
  input.addEventListener('input', () => {
    set(name, Number(input.value));
    said.textContent = text(state[name]);
    input.setAttribute('aria-valuetext', said.textContent);
    act();
  });
  return make('label', { class: 'field grow' }, said, input);
}

function numberInput(label, name, changed, whole = true) {
  const [least, most] = limits[name];
  const input = make('input', { type: 'number', min: String(least), max: String(most), step: whole ? '1' : 'any', inputmode: whole ? 'numeric' : 'decimal' });
  input.value = String(state[name]);
  const take = () => {
    const x = whole ? Math.round(Number(input.value)) : Number(input.value);
    set(name, isFinite(x) ? Math.min(most, Math.max(least, x)) : standard[name]);
    changed();
  };
  input.addEventListener('change', () => { take(); input.value = String(state[name]); });
  input.addEventListener('input', later(() => { if (input.isConnected && input.value !== '' && input.checkValidity()) take(); }, 400));
  return field(label, input);
}

// options: [value, text] ..
function choice(legend, name, options, changed) {
  const box = make('div', { class: 'choice' });
  for (const [value, text] of options) {
    const input = make('input', { type: 'radio', name: 'choice-' + name, value: String(value) });
    input.checked = String(state[name]) === String(value);
    input.addEventListener('change', () => { set(name, value); changed(); });
    box.append(make('label', {}, input, make('span', {}, text)));
  }
  return make('fieldset', { class: 'group' }, make('legend', {}, legend), box);
}

function checkbox(label, name, changed) {
  const input = make('input', { type: 'checkbox' });
  input.checked = state[name] === 1;
  input.addEventListener('change', () => { set(name, input.checked ? 1 : 0); changed(); });
  return make('label', { class: 'check' }, input, label);
}

const button = (text, act, main = false) => make('button', { type: 'button', class: 'act' + (main ? ' main' : ''), onclick: act }, text);

// A word of a table: words that begin with what was typed are offered. `changed` is called for a word that
// the table does not have, too.
let pickers = 0;
function wordPicker(label, name, source, changed) {
  const list = make('datalist', { id: 'words-' + pickers++ });
  const input = make('input', { type: 'text', list: list.id, spellcheck: 'false', autocomplete: 'off', autocapitalize: 'off' });
  const wrong = make('p', { class: 'wrong-input', role: 'alert', hidden: true, id: list.id + '-wrong' });
  input.setAttribute('aria-describedby', wrong.id);
  const offer = () => {
    const begun = input.value, found = [];
    for (let i = 0; i < source.about.words.length && found.length < 12; i++) {
      const word = source.about.words[i];
      if (word !== null && word.startsWith(begun)) found.push(word);
    }
    list.replaceChildren(...found.map((word) => make('option', { value: word })));
  };
  const check = () => {
    const known = source.find(input.value) >= 0;
    wrong.hidden = known;
    wrong.textContent = known ? '' : TEXT.page.unknown(input.value);
    input.setAttribute('aria-invalid', String(!known));
  };
  input.value = state[name];
  input.addEventListener('input', () => {
    offer();
    check();
    set(name, input.value);
    changed();
  });
  input.addEventListener('focus', offer);
  check();
  const whole = make('div', { class: 'field grow' }, field(label, input), list, wrong);
  whole.show = (word) => { input.value = word; set(name, word); check(); };
  return whole;
}

function chip(text, small, { act = null, pressed = null, lit = false, unknown = false, title = null } = {}) {
  return make(act ? 'button' : 'span', {
    class: 'chip' + (lit ? ' lit' : '') + (unknown ? ' unknown' : ''), type: act ? 'button' : null, onclick: act,
    'aria-pressed': pressed === null ? null : String(pressed), title,
  }, text, small === null ? null : make('small', {}, small));
}

const chips = (items, label) => make('ul', { class: 'chips', 'aria-label': label }, ...items.map((item) => make('li', {}, item)));

/* ---- what each station has ---- */

const shown = (word, id) => (word === null || word === undefined ? '#' + id : word === '' ? '""' : visible(word));

function head(texts) {
  return [make('h1', {}, texts.title), make('p', { class: 'lead' }, texts.lead), ...(texts.glossary ? [glossary(texts.glossary)] : [])];
}

const tryThis = (text) => make('div', { class: 'box try' }, make('h2', {}, TEXT.page.try), make('p', {}, text));

// A learner commits to an answer, then ours opens; both stay.
function quiz(name, texts, answer) {
  const inputs = texts.options.map((_, i) => make('input', { type: 'radio', name: 'quiz-' + name, value: String(i) }));
  const out = make('div', { 'aria-live': 'polite' });
  const check = () => {
    const chosen = inputs.findIndex((input) => input.checked);
    if (chosen < 0) { out.replaceChildren(make('p', {}, TEXT.page.choose)); return; }
    const right = chosen === texts.right;
    out.replaceChildren(make('p', { class: 'verdict ' + (right ? 'right' : 'wrong') }, right ? TEXT.page.right : TEXT.page.wrong(texts.options[texts.right])), make('p', {}, answer()));
  };
  return make('section', { class: 'box quiz', 'aria-label': TEXT.page.think }, make('h2', {}, TEXT.page.think), make('p', {}, texts.question),
    make('fieldset', { class: 'answers' }, make('legend', { class: 'hidden' }, texts.question), ...texts.options.map((option, i) => make('div', {}, make('label', {}, inputs[i], option)))),
    button(TEXT.page.check, check), out);
}

function copyButton(text) {
  const copy = button(TEXT.page.copy, async () => {
    try {
      await navigator.clipboard.writeText(text());
    } catch (error) { // no right to the clipboard: select it instead
      const area = make('textarea', { readonly: true });
      area.value = text();
      document.body.append(area);
      area.select();
      document.execCommand('copy');
      area.remove();
    }
    copy.textContent = TEXT.page.copied;
    setTimeout(() => { copy.textContent = TEXT.page.copy; }, 1500);
  });
  return copy;
}

// update() of both is called when the numbers have changed.
function numbersText(text) {
  const pre = make('pre', { tabindex: '0', 'aria-label': TEXT.page.numbers });
  const details = make('details', { class: 'text' }, make('summary', {}, TEXT.page.numbers), pre, copyButton(() => text()));
  const update = () => { if (details.open) pre.textContent = text(); };
  details.addEventListener('toggle', update);
  details.update = update;
  return details;
}

// Where a command runs, and what its numbers have to do with those of the page.
// `facts` are those of the table that it reads; files of the demo are in the page as they are.
function terminalNote(facts = app.page.model) {
  const t = TEXT.page, own = facts.path === app.page.model.path && !app.page.model.demo, { command, exact, rows, of } = app.page.model;
  if (!own) return t.inDemo + ' ' + t.exact;
  return [t.inBoth(facts.operand), command ? t.madeBy(command) : '', rows < of ? t.cut(number(rows), number(of)) : '', exact ? t.exact : t.rounded].filter(Boolean).join(' ');
}

function terminal(text, { facts = app.page.model, note = () => terminalNote(facts), of = '' } = {}) {
  const title = TEXT.page.terminal + (of ? ': ' + of : '');
  const pre = make('pre', { tabindex: '0', 'aria-label': title });
  const said = make('div', {});
  const part = make('section', { class: 'box', 'aria-label': title }, make('h2', {}, TEXT.page.terminal),
    make('div', { class: 'command' }, pre, copyButton(() => pre.textContent)), said);
  part.update = () => { // a line breaks between words only, not behind a hyphen
    const command = text();
    part.hidden = command === '';
    pre.replaceChildren(...command.split(/( |\n)/).map((word) => (/^[ \n]$/.test(word) ? word : make('span', {}, word))));
    said.replaceChildren(marked('p', { class: 'soft' }, note()));
  };
  part.update();
  return part;
}

// The words that a station uses and does not explain.
function glossary(words) {
  return make('details', { class: 'more glossary' }, make('summary', {}, TEXT.page.words), make('dl', { class: 'words' }, ...words.flatMap(([word, meaning]) => [make('dt', {}, word), marked('dd', {}, meaning)])));
}

// A text in which `..` are commands and names of files.
function marked(tag, properties, text) {
  return make(tag, properties, ...text.split('`').map((part, i) => (i % 2 === 1 ? make('code', {}, part) : part)));
}

const wrongInput = (error) => make('p', { class: 'wrong-input', role: 'alert' }, error.message);

// Runs f, and shows a sentence in `out` in place of what f would have shown if it fails.
function attempt(out, f) {
  try {
    f();
  } catch (error) {
    if (!(error instanceof Error) || error.name !== 'Error') throw error;
    out.replaceChildren(wrongInput(error));
  }
}

// What a station shows again after a change: fill() writes into `out`, or a sentence stands there; then the
// numbers and the command follow.
function refresh(out, fill, ...parts) {
  attempt(out, fill);
  parts.forEach((part) => part.update());
  drawAll();
}

function tsv(rows) {
  return rows.map((row) => row.map((cell) => (typeof cell === 'number' && !Number.isInteger(cell) ? Number(cell.toPrecision(9)) : cell)).join('\t')).join('\n');
}
