// SPDX-License-Identifier: Apache-2.0
// Starts the module, and shows the station that the address names.
'use strict';

const stations = { __proto__: null, start: startStation, tokens: tokensStation, rows: rowsStation, positions: positionsStation, alike: alikeStation,
  arrows: arrowsStation, next: nextStation, learn: learnStation, cost: costStation };
const names = Object.keys(stations);
let leave = null; // of the station that is shown: ends what it has begun

/* ---- files in the page ---- */

async function inflate(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

function filesOf() {
  return Array.from(document.querySelectorAll('script.file'), (element) => {
    element.id = 'file';
    return [element.dataset.path, bytesOf('file')]; // which removes it
  });
}

/* ---- the app: what stations compute with ---- */

const app = { play: null, page: null, files: [], module: null, main: null, words: null, letters: null };

// An opened model or table, with its words.
function openSource(facts) {
  const handle = app.play.open(facts.path), about = app.play.about(handle);
  const ids = new Map();
  about.words.forEach((word, id) => { if (word !== null && !ids.has(word)) ids.set(word, id); });
  return {
    handle, about, facts, name: (id) => shown(about.words[id], id),
    // what commands and controls call it
    word: (id) => (about.words[id] === null || about.words[id] === '' ? '#' + id : about.words[id]),
    find: (word) => (ids.has(word) ? ids.get(word) : /^#\d+$/.test(word) && Number(word.slice(1)) < about.rows ? Number(word.slice(1)) : -1),
    // Tokens of a text: those that have rows, and the words that have none.
    cut(text) {
      const found = app.play.tokens(handle, text).tokens;
      return { tokens: found.filter((token) => token.id >= 0), unknown: found.filter((token) => token.id < 0).map((token) => token.text) };
    },
  };
}

async function startModule() {
  if (typeof WebAssembly !== 'object' || typeof DecompressionStream !== 'function') throw new Error(TEXT.page.noWasm);
  app.page = JSON.parse($('page').textContent);
  app.module = await WebAssembly.compile(await inflate(bytesOf('module')));
  app.play = new Play(app.module, new Host((text) => console.error(text)));
  const version = app.play.version().version;
  if (version !== app.page.version) throw new Error(TEXT.page.otherVersion(version, app.page.version));
  app.files = filesOf();
  for (const [path, bytes] of app.files) app.play.host.put(path, bytes);
  app.main = openSource(app.page.model);
  app.words = app.page.words && app.page.words.path !== app.page.model.path ? openSource(app.page.words) : app.main;
  app.letters = openSource(app.page.letters);
}

// What the page shows by itself when its model is another one than that of the demo.
function ownDefaults() {
  const words = app.words.about.words.filter((word) => word !== null && /^\p{L}{3,}$/u.test(word)), { rows } = app.words.about;
  const some = (name, wanted, i) => { if (app.words.find(wanted) < 0) standard[name] = words[i] || app.words.word(Math.min(i, rows - 1)); };
  some('word', 'cat', 0), some('other', 'dog', 1), some('plus', 'king', 0), some('minus', 'man', 1), some('then', 'woman', 2);
  if (app.main.find('flew') < 0) standard.headword = app.main.about.words.find((word) => word !== null && /^\p{L}+$/u.test(word)) || app.main.word(0);
  for (const name of ['text', 'order', 'before']) {
    let tokens = [];
    try {
      tokens = app.main.cut(standard[name]).tokens;
    } catch (error) { // a character that the model does not have
    }
    if (tokens.length > 0) continue;
    const all = app.main.about.words.filter((word) => word !== null && !/^<.*>$/.test(word)), plain = all.filter((word) => /^\p{L}+$/u.test(word));
    const own = plain.length > 0 ? plain : all.length > 0 ? all : ['#0', '#1', '#2'].slice(0, app.main.about.rows), letters = app.main.about.model && own.every((word) => word.length === 1);
    standard[name] = own.slice(0, 5).join(letters ? '' : ' ');
  }
  if (app.main.about.words.every((word) => word === null || word.length <= 1 || /^<.*>$/.test(word))) standard.table = 'main';
  standard.corpus = app.page.texts[0].path;
  if (app.main.about.model) standard.kind = Math.max(0, KIND_NAMES.indexOf(app.main.about.kind));
}

/* ---- the frame ---- */

// A link changes the station alone; what was chosen stays.
function link(name, text) {
  return make('a', { href: '#s=' + name, onclick: (event) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    go(name, true);
  } }, text);
}

function frame() {
  $('skip').textContent = TEXT.page.skip;
  $('skip').addEventListener('click', (event) => { event.preventDefault(); $('main').focus(); });
  $('title').replaceChildren(link('start', TEXT.page.name(app.page ? app.page.title : document.title)));
  $('theme-name').textContent = TEXT.page.theme;
  for (const name of ['auto', 'light', 'dark']) $('theme-' + name).textContent = TEXT.page[name];
  $('nav').setAttribute('aria-label', TEXT.page.nav);
  $('nav').replaceChildren(make('ol', {}, ...names.slice(1).map((name, i) => {
    const item = link(name, (i + 1) + ' ' + TEXT[name].nav);
    item.dataset.station = name;
    return make('li', {}, item);
  })));
}

// The theme is part of the state, like all else that can be chosen.
function showTheme() {
  document.querySelectorAll('input[name=theme]').forEach((input) => { input.checked = input.value === state.theme; });
  readTheme();
  css.lit = getComputedStyle(document.documentElement).getPropertyValue('--lit');
  drawAll();
}
$('theme').addEventListener('change', (event) => { set('theme', event.target.value); showTheme(); });
dark.addEventListener('change', showTheme);

function turn(name) {
  const i = names.indexOf(name), out = make('div', { class: 'turn' });
  out.append(i > 0 ? link(names[i - 1], TEXT.page.back(TEXT[names[i - 1]].nav)) : make('span', {}));
  if (i + 1 < names.length) out.append(link(names[i + 1], TEXT.page.next(TEXT[names[i + 1]].nav)));
  return out;
}

function show(name, moved) {
  if (leave) leave();
  leave = null;
  const root = make('div', {});
  forget($('main'));
  $('main').replaceChildren(root);
  document.querySelectorAll('#nav a').forEach((item) => {
    const here = item.dataset.station === name;
    if (here) item.setAttribute('aria-current', 'step'); else item.removeAttribute('aria-current');
    if (here) item.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  });
  document.title = (name === 'start' ? '' : TEXT[name].title + ' \u2013 ') + TEXT.page.name(app.page.title);
  attempt(root, () => { leave = stations[name](root) || null; });
  root.append(turn(name));
  drawAll();
  if (moved) {
    window.scrollTo(0, 0);
    $('main').focus({ preventScroll: true });
    say(TEXT[name].title);
  }
}

function go(name, push) {
  if (!app.main) return; // not before the module has started
  if (push && name !== state.s) {
    try {
      const kept = new URLSearchParams(location.hash.slice(1));
      kept.set('s', name);
      history.pushState(null, '', '#' + kept);
    } catch (error) { // the browser does not allow it: the station is shown all the same
    }
  }
  set('s', name);
  show(name, push);
}

window.addEventListener('popstate', () => {
  readState();
  showTheme();
  show(stations[state.s] ? state.s : 'start', true);
});

async function start() {
  frame();
  showTheme();
  const still = make('div', {}), note = make('p', { class: 'soft', role: 'status' }, TEXT.page.loading);
  startStation(still);
  $('main').replaceChildren(still, note);
  try {
    if (document.readyState === 'loading') await new Promise((done) => document.addEventListener('DOMContentLoaded', done));
    await startModule();
  } catch (error) {
    note.replaceWith(wrongInput(new Error(TEXT.page.failed(error.message))));
    window.emblaReady = true;
    return;
  }
  ownDefaults();
  readState();
  frame();
  showTheme();
  const stored = app.page.model.stored;
  $('foot').replaceChildren(make('p', { class: 'soft' }, TEXT.page.foot(app.play.version())), ...(stored && !app.page.model.demo ? [make('p', { class: 'soft' }, TEXT.page.stored(stored))] : []));
  go(stations[state.s] ? state.s : 'start', false);
  window.embla = { app, state, go };
  window.emblaReady = true;
}
start();
