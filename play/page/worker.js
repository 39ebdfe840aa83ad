// SPDX-License-Identifier: Apache-2.0
// Trains in a worker, so that the page stays quick. It gets messages { kind, .. } and posts what the rows
// look like; a failure is posted as a sentence. Every message has the number of the training that it is
// about: the page drops those of an earlier one.
'use strict';

const AHEAD = 1200; // milliseconds of training ahead, to find the plane of the end
const SLICE = 24; // milliseconds of steps between two looks at the messages

let play = null, training = 0, run = 0, about = null, aim = null, aimed = 'end', choices = null;
let perSecond = 0, running = false, begun = 0, made = 0, watch = 0, waiting = false, timer = 0;
let rate = { since: 0, steps: 0, now: null };

const post = (message, moved = []) => postMessage({ run, ...message }, moved);
function rowsOf(t) { return play.trainRows(t, about.vocab * about.dim); }

// What the page draws. It answers 'drawn' before it gets the next.
function tell(found, kind = 'moved') {
  const plane = play.trainPlane(training, aim), rows = rowsOf(training), positions = play.trainPositions(training, about.positions * about.dim);
  const near = play.trainNear(training, watch, Math.min(8, about.vocab - 1));
  waiting = true;
  post({ kind, found, xy: plane.xy, share: plane.share, aimed, rows, positions, near, rate: rate.now, running, memory: play.calls.memory.buffer.byteLength },
    positions ? [rows.buffer, positions.buffer] : [rows.buffer]);
}

// Trains ahead with the same choices, for a while, and keeps the rows of its end.
function lookAhead() {
  const ahead = play.train(choices.path, choices), end = performance.now() + AHEAD;
  about = play.trainAbout(ahead);
  for (let step = 0; step < about.steps && performance.now() < end; step += 20) play.trainSteps(ahead, Math.min(20, about.steps - step));
  aim = rowsOf(ahead);
  aimed = 'end';
  play.trainClose(ahead);
}

function start(message) {
  stop();
  run = message.run;
  waiting = false;
  if (message.module) {
    play = new Play(message.module, new Host());
    for (const [path, bytes] of message.files) play.host.put(path, bytes);
  }
  for (const [path, bytes] of message.texts || []) play.host.put(path, bytes);
  play.trainClose(training);
  training = 0;
  choices = message.choices;
  if (choices.pieces > 0) play.cutterClose(play.cutterTrain(choices.path, choices.tokenizer, choices.pieces));
  lookAhead();
  training = play.train(choices.path, choices);
  watch = Math.min(Math.max(0, message.watch), about.vocab - 1);
  rate.now = null;
  post({ kind: 'ready', about });
  tell(play.trainSteps(training, 0));
}

function stop() {
  running = false;
  clearTimeout(timer);
}

// Some steps, as many as the speed asks for, then a look at the messages. The last step has not been made.
function slice() {
  if (!running || training === 0) return;
  const now = performance.now(), end = now + SLICE;
  let found = null;
  const losses = [];
  while (performance.now() < end) {
    const due = Math.floor((performance.now() - begun) / 1000 * perSecond) - made;
    if (due <= 0) break;
    found = play.trainSteps(training, 1);
    losses.push([found.step, found.loss]);
    made++;
    rate.steps++;
    if (found.step >= about.steps) break;
  }
  if (now - rate.since > 1000) rate = { since: now, steps: 0, now: rate.steps / ((now - rate.since) / 1000) };
  if (losses.length > 0) post({ kind: 'losses', losses });
  if (found && found.step >= about.steps) { stop(); tell(found); save(); return; }
  if (found && !waiting) tell(found);
  timer = setTimeout(() => guarded(slice), found && perSecond === Infinity ? 0 : 8);
}

function go(message) {
  perSecond = message.perSecond;
  begun = performance.now() - (perSecond === Infinity ? 0 : 1000 / perSecond);
  made = 0;
  rate = { since: performance.now(), steps: 0, now: null };
  if (running || ended()) return;
  running = true;
  slice();
}

const ended = () => play.trainSteps(training, 0).step >= about.steps;

// The files of the model as it is now.
function save() {
  play.trainSave(training, '/made');
  post({ kind: 'saved', files: ['model.safetensors', 'config.json', 'tokenizer.json'].map((name) => [name, play.host.get('/made/' + name)]).filter(([, bytes]) => bytes) });
}

// What needs a training is not done without one: the last start may have failed.
const acts = {
  run: go,
  pause() { stop(); tell(play.trainSteps(training, 0)); },
  step() {
    stop();
    if (ended()) return;
    const found = play.trainSteps(training, 1);
    post({ kind: 'losses', losses: [[found.step, found.loss]] });
    tell(found);
    if (found.step >= about.steps) save();
  },
  fit() { aim = rowsOf(training); aimed = 'now'; tell(play.trainSteps(training, 0), 'looked'); },
  watch(message) { watch = message.id; if (!running) tell(play.trainSteps(training, 0), 'looked'); },
  sample(message) { post({ kind: 'sampled', step: message.step, ...play.trainSample(training, 0.8, message.seed) }); },
  drawn() { waiting = false; },
};

function guarded(f, message) {
  try {
    f(message);
  } catch (error) {
    stop();
    post({ kind: 'failed', sentence: error.message });
  }
}

onmessage = ({ data }) => {
  if (data.kind === 'start') guarded(start, data);
  else if (data.kind === 'halt') stop();
  else if (training !== 0 && data.run === run) guarded(acts[data.kind], data);
};
