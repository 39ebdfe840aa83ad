// SPDX-License-Identifier: Apache-2.0
// Station 7: a training in a worker: rows on a plane, the loss, what a step read, and what the model writes.
'use strict';

const TABLE_EVERY = 120, TEXTS_EVERY = 250; // milliseconds, while a training runs
const OWN = '/text.txt', SPEEDS = [10, 100, Infinity], SAMPLES = 6, UNITS = ['letters', 'words', 'pieces'];
let ownText = null; // bytes of the learner's own text; it stays while the page is open

// What is trained: the choices as the worker takes them, and as the command has them.
function trainingChoices() {
  const text = app.page.texts.find(({ path }) => path === state.corpus), path = text ? text.path : OWN;
  const unit = state.unit || (text && text.words > 0 ? 'words' : 'letters');
  const choices = { path, dim: state.dim, steps: state.steps, seed: state.seed, rate: state.rate, positions: state.pos + 1, tied: state.tied ? 1 : -1 };
  if (unit === 'words') choices.words = text && text.words > 0 ? text.words : 300;
  if (unit === 'pieces') choices.tokenizer = '/pieces.json', choices.pieces = 257 + state.merges; // as many as station 1 has
  return { choices, unit, operand: text ? text.operand : 'text.txt', own: !text };
}

function trainingCommand() {
  const { choices, unit, operand } = trainingChoices(), words = unit === 'words' ? ' --words ' + choices.words : '';
  const file = `pieces-${choices.pieces}.json`, tokenizer = unit === 'pieces' ? `embla tokenizer ${inShell(operand)} -o ${file} --force --size ${choices.pieces} --special '<|endoftext|>'\n` : '';
  return `${tokenizer}embla train ${inShell(operand)} --preset microgpt${words}${unit === 'pieces' ? ' --tokenizer ' + file : ''} --dim ${choices.dim} --positions ${KIND_NAMES[state.pos]} ` +
    `${state.tied ? '--tied' : '--untied'} --steps ${choices.steps} --seed ${choices.seed}${choices.rate > 0 ? ' --rate ' + choices.rate : ''} --engine none -o run &&\nsha256sum run/model.safetensors`;
}

// The worker; `hear` gets its messages.
function startWorker(hear) {
  const url = URL.createObjectURL(new Blob([$('worker').textContent], { type: 'text/javascript' }));
  const worker = new Worker(url);
  worker.onmessage = (event) => hear(event.data);
  worker.onerror = (event) => { event.preventDefault(); hear({ kind: 'failed', run: null, sentence: event.message || String(event) }); };
  URL.revokeObjectURL(url);
  return worker;
}

async function checksum(bytes) {
  if (!globalThis.crypto || !crypto.subtle) return null;
  return Array.from(new Uint8Array(await crypto.subtle.digest('SHA-256', bytes)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

function saveFile(name, bytes) {
  const url = URL.createObjectURL(new Blob([bytes], { type: 'application/octet-stream' }));
  const a = make('a', { href: url, download: name });
  a.click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

/* ---- what is drawn, from what the worker says ---- */

class LearnView {
  constructor(t) {
    this.t = t;
    this.clear();
    this.status = make('p', { class: 'facts-line' }, t.working);
    this.shape = make('p', { class: 'soft' });
    this.aim = make('p', { class: 'soft' });
    this.read = make('div', {});
    this.samples = make('ul', { class: 'samples', 'aria-label': t.writesTitle });
    this.near = make('div', {});
    this.caption = make('figcaption', {});
    this.plane = planePicture((width) => Math.min(560, Math.max(300, width * 0.8)), '', () => ({
      xy: this.places(), name: (id) => this.name(id), chosen: this.watch, box: this.box, marked: new Set(this.last ? this.last.found.read : []),
      lines: this.last ? this.last.near.filter(({ score }) => score > 0).map(({ id, score }) => [this.watch, id, score]) : [],
    }), (id) => this.pick(id));
    this.loss = lossPicture('', () => this.about && { losses: this.losses, steps: this.about.steps, guess: this.about.guessing });
    this.table = make('div', {});
  }

  clear() {
    this.drawn = this.said = 0, this.stale = false;
    this.about = null, this.last = null, this.from = null, this.losses = [], this.mean = null, this.box = null, this.watch = 0, this.sampled = [], this.pick = () => {};
  }

  // A piece of one byte that is no character by itself has a letter that stands for it.
  name(id) {
    const word = this.about.words[id], { words } = this.about;
    return words.length > 256 && word !== null && id <= 256 && [...word].length === 1 && word.codePointAt(0) > 0x7e && word !== '\u0120' ? this.t.oneByte(word) : shown(word, id);
  }

  ready(about) {
    this.about = about;
    this.losses = [], this.mean = null, this.sampled = [], this.last = null, this.from = null, this.box = null;
    this.samples.replaceChildren();
    forget(this.table);
    this.table.replaceChildren();
    this.near.replaceChildren();
    this.read.replaceChildren();
    this.caption.textContent = '';
    this.fresh = true;
    this.shape.textContent = this.t.shape({ vocab: number(about.vocab), dim: about.dim, parameters: number(about.parameters), documents: number(about.documents) });
    this.aim.textContent = this.t.aim(number(about.vocab), fixed(about.guessing));
    const lit = () => new Set(this.last ? this.last.found.read : []), part = (key, count, title, name, marks) => {
      const canvas = tablePicture(count, about.dim, count > 60 ? 360 : Math.max(90, 13 * count), title, () => ({
        value: (r, k) => (this.last ? this.last[key][r * about.dim + k] : 0), most: this.most, lit: marks(), name }));
      return make('figure', {}, make('h3', {}, title), canvas);
    };
    this.tables = [part('rows', about.vocab, this.t.tableTitle, (id) => this.name(id), lit)];
    this.learned = null;
    this.part = part;
  }

  // Without a training there is nothing to draw.
  empty(sentence) {
    this.about = this.last = null, this.losses = [], this.fresh = true;
    for (const part of [this.table, this.near, this.read, this.samples]) part.replaceChildren();
    forget(this.table);
    for (const part of [this.shape, this.aim, this.caption]) part.textContent = '';
    this.status.textContent = sentence;
  }

  // The means of the loss over about 40 steps.
  addLosses(losses) {
    for (const [step, loss] of losses) {
      this.mean = this.mean === null ? loss : this.mean + (loss - this.mean) * Math.max(1 / 40, 1 / (this.losses.length + 1));
      this.losses.push([step, loss, this.mean]);
    }
    if (this.losses.length > 4000) this.losses = this.losses.filter((_, i) => i % 2 === 0);
  }

  places() {
    if (!this.last) return [];
    if (!this.from || still.matches) return this.last.xy;
    const part = Math.min(1, (performance.now() - this.at) / 60);
    return this.last.xy.map(([x, y], i) => [this.from[i][0] + (x - this.from[i][0]) * part, this.from[i][1] + (y - this.from[i][1]) * part]);
  }

  // The view takes in all points, and grows; it does not jump.
  widen(xy) {
    const now = boxOf(xy), box = this.box || now;
    this.box = [Math.min(box[0], now[0]), Math.max(box[1], now[1]), Math.min(box[2], now[2]), Math.max(box[3], now[3])];
  }

  moved(message) {
    const turned = this.last && this.last.aimed !== message.aimed;
    if (message.kind === 'looked') message.found = { ...message.found, read: this.last ? this.last.found.read : [], moved: this.last ? this.last.found.moved : [] };
    this.from = this.last && !turned && message.kind === 'moved' ? this.places() : null;
    this.at = performance.now();
    this.fresh = true;
    if (turned) this.box = null;
    this.last = message;
    this.widen(message.xy);
    if (!this.learned) {
      this.learned = true;
      if (message.positions) this.tables.push(this.part('positions', this.about.positions, this.t.positionsTitle, String, () => new Set()));
      this.table.replaceChildren(make('p', { class: 'soft' }, this.t.tableAbout), make('div', { class: 'wide' }, ...this.tables));
    }
    let most = 0;
    for (const x of message.rows) most += x * x;
    this.most = 2.2 * Math.sqrt(most / message.rows.length) || 1;
    if (message.running && this.at - this.said < TEXTS_EVERY) return; // so that a name in a list can be clicked
    this.said = this.at;
    this.texts();
  }

  texts() {
    const { t, last, about } = this, { found } = last, loss = this.mean === null ? null : fixed(this.mean, 3);
    this.status.textContent = t.state(number(found.step), number(about.steps), loss, last.running && last.rate ? number(Math.round(last.rate)) : null) + (found.step >= about.steps ? '. ' + t.ended : '');
    this.caption.textContent = (last.aimed === 'end' ? t.plane : t.planeNow)(...last.share.map(percent));
    this.plane.label(t.planeLabel(number(about.vocab), number(found.step)));
    this.loss.label(t.lossLabel(loss, fixed(about.guessing)));
    this.near.replaceChildren(make('h3', {}, t.nearTitle(this.name(this.watch))), nearList(last.near, (id) => this.name(id), t.nearTitle(this.name(this.watch)), (id) => this.pick(id)));
    const some = found.read.slice(0, 40);
    this.read.replaceChildren(...(found.step === 0 || (found.read.length === 0 && found.moved.length === 0) ? [make('p', { class: 'soft' }, t.readNone)] : [make('p', {}, t.read(number(found.read.length), number(found.moved.length), number(about.vocab))),
      chips(some.map((id) => chip(this.name(id), String(id), { lit: true })), t.readTitle), ...(found.moved.length > found.read.length ? [make('p', { class: 'soft' }, about.tied ? t.readTied : t.readMore)] : [])]));
  }

  sample({ step, text }) {
    this.sampled.push([step, text]);
    const some = this.sampled.length > SAMPLES ? [this.sampled[0], ...this.sampled.slice(1 - SAMPLES)] : this.sampled; // the first stays, to compare
    this.samples.replaceChildren(...some.map(([when, said]) => make('li', {}, make('span', { class: 'when' }, this.t.when(number(when))), said || '\u2026')));
  }

  // Once for each frame; points move between two messages.
  draw() {
    const now = performance.now();
    if (this.fresh || now - this.at < 100) this.plane.draw();
    if (this.fresh) this.loss.draw();
    this.stale = this.stale || this.fresh;
    this.fresh = false;
    if (!this.stale || (this.last && this.last.running && now - this.drawn < TABLE_EVERY)) return;
    this.stale = false;
    this.drawn = now;
    this.table.querySelectorAll('canvas').forEach((canvas) => canvas.draw());
  }
}

/* ---- the station ---- */

function ownPart(t, use) {
  const area = make('textarea', { spellcheck: 'false' }), note = make('p', { class: 'soft' }), file = make('input', { type: 'file', accept: '.txt,text/plain' });
  const facts = () => { note.textContent = ownText ? t.ownNote(number(new TextDecoder().decode(ownText).split('\n').filter(Boolean).length), number(ownText.length)) : ''; };
  if (ownText && ownText.length < 200000) area.value = new TextDecoder().decode(ownText);
  const put = (bytes) => {
    const empty = new TextDecoder().decode(bytes).trim() === '';
    ownText = empty ? null : bytes;
    facts();
    use();
    if (empty) note.textContent = t.ownEmpty;
  };
  file.addEventListener('change', async () => {
    if (file.files.length > 0) { const bytes = new Uint8Array(await file.files[0].arrayBuffer()); area.value = bytes.length < 200000 ? new TextDecoder().decode(bytes) : ''; put(bytes); }
  });
  facts();
  return make('div', {}, field(t.ownLabel, area), make('div', { class: 'row' }, button(t.ownPut, () => put(new TextEncoder().encode(area.value))), field(t.ownFile, file)), note);
}

function learnStation(root) {
  const t = TEXT.learn, view = new LearnView(t), own = make('div', {}), failed = make('div', {}), saved = make('div', {});
  let frame = 0, next = { step: 0, seed: 1 }, running = false, asked = false, current = 0, module = app.module, lost = state.corpus === OWN && !ownText; // an own text does not outlive the page
  const worker = startWorker((message) => hear(message));
  const ask = (kind, more = {}) => worker.postMessage({ kind, run: current, ...more });
  const sampleAt = (step) => {
    if (asked || step < next.step) return;
    asked = true;
    ask('sample', { step, seed: next.seed++ });
    next.step = step + Math.max(1, Math.round(view.about.steps / 20));
  };
  const setRunning = (now) => {
    running = now;
    train.textContent = now ? t.pause : t.train;
    const ended = view.last && view.last.found.step >= view.about.steps;
    for (const control of [train, one]) control.disabled = !view.last || ended;
    turnTo.disabled = !view.last;
  };
  const watchList = () => {
    watch.replaceChildren(...view.about.words.map((_, id) => make('option', { value: String(id) }, view.name(id))));
    const wanted = view.about.words.indexOf(state.watch);
    view.watch = wanted >= 0 ? wanted : Math.max(0, view.about.words.indexOf('e'));
    watch.value = String(view.watch);
  };
  const hearers = {
    ready({ about }) {
      view.ready(about);
      watchList();
      ask('watch', { id: view.watch });
      next = { step: 0, seed: 1 }, asked = false;
      failed.replaceChildren();
    },
    losses({ losses }) { view.addLosses(losses); },
    moved(message) {
      view.moved(message);
      if (message.kind === 'moved') setRunning(message.running);
      sampleAt(message.found.step);
      numbers.update();
      if (!message.running) say(view.status.textContent);
    },
    sampled(message) { asked = false; view.sample(message); },
    async saved({ files }) {
      const mine = current, sum = await checksum(files[0][1]);
      if (mine !== current) return; // another training has begun
      saved.replaceChildren(make('h2', {}, t.saved), ...(sum ? [make('p', { class: 'soft', id: 'sum' }, t.sum(sum)), make('p', { class: 'soft' }, t.sumNote)] : []), make('div', { class: 'row' }, button(t.save, () => files.forEach(([name, bytes]) => saveFile(name, bytes)))));
    },
    failed({ sentence }) { view.empty(''); setRunning(false); failed.replaceChildren(wrongInput(new Error(t.stopped(sentence)))); },
  };
  hearers.looked = hearers.moved;
  const hear = (message) => {
    if (message.run !== null && message.run !== current) return;
    hearers[message.kind](message);
    if (message.kind === 'moved' || message.kind === 'looked') requestAnimationFrame(() => ask('drawn'));
  };
  const begin = () => {
    const { choices, own: mine } = trainingChoices();
    own.hidden = !mine;
    command.update();
    current++;
    for (const part of [failed, saved]) part.replaceChildren();
    merges.hidden = choices.pieces === undefined;
    merges.textContent = t.pieces(state.merges);
    view.empty(mine && !ownText ? (lost ? t.ownLost : t.ownFirst) : t.working);
    lost = false;
    setRunning(false);
    if (mine && !ownText) { ask('halt'); return; }
    ask('start', { ...(module ? { module, files: app.files } : {}), texts: ownText ? [[OWN, ownText]] : [], choices, watch: view.watch });
    module = null; // the worker keeps it, and the files
  };
  const turnTo = button(t.fit, () => ask('fit'));
  const train = button(t.train, () => { if (running) { setRunning(false); ask('pause'); } else { setRunning(true); ask('run', { perSecond: SPEEDS[state.speed] }); } }, true);
  const one = button(t.one, () => ask('step')), watch = make('select', {});
  view.pick = (id) => { watch.value = String(id); view.watch = id; set('watch', view.about.words[id] || ''); ask('watch', { id }); };
  watch.addEventListener('change', () => view.pick(Number(watch.value)));
  own.append(ownPart(t, begin));
  const merges = make('p', { class: 'soft', hidden: true });
  const command = terminal(() => (state.corpus === OWN && !ownText ? '' : trainingCommand()), { note: () => [state.corpus === OWN ? t.needText : TEXT.page.inDemo, t.terminalNote, t.newFolder].join(' ') });
  const numbers = numbersText(() => (view.last ? tsv(Array.from({ length: view.about.vocab }, (_, id) => [view.name(id), id, ...view.last.rows.slice(id * view.about.dim, (id + 1) * view.about.dim)])) : ''));
  const changed = () => begin();
  const kinds = TEXT.positions.kinds.map((name, i) => [i, name]);
  root.append(...head(t), make('section', { class: 'box', 'aria-label': t.text },
    make('div', { class: 'row' }, choice(t.text, 'corpus', [...app.page.texts.map(({ path, operand }) => [path, operand]), [OWN, t.own]], () => { set('unit', ''); unit.replaceWith(unit = units()); changed(); })), own,
    make('div', { class: 'row' }, make('span', { class: 'units' })), merges, make('div', { class: 'row' }, choice(t.positions, 'pos', kinds, changed), choice(t.tied, 'tied', [[0, t.tiedNo], [1, t.tiedYes]], changed)),
    make('div', { class: 'row' }, numberInput(t.dim, 'dim', changed), numberInput(t.steps, 'steps', changed), numberInput(t.seed, 'seed', changed), numberInput(t.rate + ' (0: ' + t.rateDefault + ')', 'rate', changed, false))),
  make('section', { class: 'box', 'aria-label': t.title }, view.shape, view.aim,
    make('div', { class: 'row' }, train, one, button(t.again, () => begin()), choice(t.speed, 'speed', t.speeds.map((name, i) => [i, name]), () => { if (running) ask('run', { perSecond: SPEEDS[state.speed] }); })),
    view.status, failed,
    make('div', { class: 'wide' }, make('figure', {}, make('h2', { class: 'small' }, t.planeTitle), view.plane, view.caption, turnTo),
      make('div', {}, make('h2', { class: 'small' }, t.lossTitle), view.loss, make('h2', { class: 'small' }, t.writesTitle), view.samples, make('div', { class: 'row' }, field(t.watch, watch)), view.near)),
    saved, make('h2', {}, t.readTitle), view.read, make('h2', {}, t.tablesTitle), view.table, numbers), tryThis(t.try), quiz('learn', t, t.answer), command);
  const units = () => {
    const part = choice(t.unit, 'unit', UNITS.map((name, i) => [name, t.units[i]]), changed);
    part.querySelectorAll('input').forEach((input) => { input.checked = input.value === trainingChoices().unit; });
    return part;
  };
  let unit = units();
  root.querySelector('.units').replaceWith(unit);
  const draw = () => { frame = requestAnimationFrame(draw); view.draw(); };
  frame = requestAnimationFrame(draw);
  begin();
  root.learn = { view, ask };
  app.learn = root.learn;
  return () => { worker.terminate(); cancelAnimationFrame(frame); };
}
