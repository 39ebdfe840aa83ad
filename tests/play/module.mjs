// SPDX-License-Identifier: Apache-2.0
// The module of the page under node, with the page's own host: its answers and the model that it trains are
// those of the program.
//   usage: node module.mjs PROJECT MODULE PROGRAM
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

const [project, moduleFile, program] = process.argv.slice(2);
const demo = path.join(project, 'demo');
const { Host, Play } = new Function(readFileSync(path.join(project, 'play/host.js'), 'utf8') + '\nreturn { Host, Play };')();
const wasm = readFileSync(moduleFile);
const said = [];
const play = new Play(new WebAssembly.Module(wasm), new Host((text) => said.push(text)));
const put = (name) => {
  const from = path.join(demo, name);
  if (statSync(from).isDirectory()) readdirSync(from).forEach((part) => put(name + '/' + part));
  else play.host.put('/demo/' + name, new Uint8Array(readFileSync(from)));
};
['story', 'names', 'words.vec', 'names.txt', 'village.txt'].forEach(put);
const embla = (...args) => execFileSync(program, args, { cwd: demo, encoding: 'utf8', env: { ...process.env, NO_COLOR: '1' } });
const json = (...args) => JSON.parse(embla(...args, '--json'));
const sum = (bytes) => createHash('sha256').update(bytes).digest('hex');
let count = 0;
const check = (name, f) => { f(); count++; console.log('ok', name); };

check('the version', () => assert.equal(play.version().version, embla('--version').match(/^embla (\S+)/)[1]));
const story = play.open('/demo/story'), words = play.open('/demo/words.vec');
check('tokens', () => {
  const ids = play.tokens(story, 'the cat sat on a mat').tokens.map((token) => token.id);
  assert.deepEqual(ids, embla('tokens', 'story', 'the cat sat on a mat').trim().split(/\s+/).map(Number));
});
check('rows, to the last bit', () => {
  const ours = play.embed(story, [0, 66, 20]);
  const theirs = embla('lookup', 'story', '--ids', '0,66,20', '--format', 'tsv').trim().split('\n').filter((line) => /^\d/.test(line));
  theirs.forEach((line, i) => {
    const numbers = line.split('\t').slice(2).join(' ').trim().split(/\s+/).map(Number);
    assert.deepEqual(ours.rows[i].map(Math.fround), numbers.map(Math.fround));
  });
  assert.equal(theirs.length, 3);
});
check('neighbours', () => {
  const theirs = embla('near', 'words.vec', 'cat', '--top', '5').trim().split('\n').map((line) => line.split('\t'));
  assert.equal(play.near(words, 66, 5).length, 5);
  play.near(words, 66, 5).forEach((near, i) => {
    assert.equal(near.id, Number(theirs[i][2]));
    assert.equal(Number(near.score.toPrecision(9)), Number(theirs[i][3]));
  });
});
check('an analogy', () => {
  const id = (word) => play.about(words).words.indexOf(word);
  assert.equal(play.analogy(words, [id('king'), id('woman')], [id('man')], 1)[0].id, id('queen'));
});
check('the next word', () => {
  const bos = play.about(story).words.indexOf('<bos>');
  const ids = [bos, ...play.tokens(story, 'the king').tokens.map((token) => token.id)];
  const theirs = json('predict', 'story', 'the king', '--top', '5');
  const ours = play.predict(story, ids, 1, 5).next;
  theirs.texts[0].next.forEach((next, i) => {
    assert.equal(ours[i].id, next.id);
    assert.equal(Math.fround(ours[i].logit), Math.fround(next.logit));
    assert.ok(Math.abs(ours[i].probability - next.probability) < 1e-6);
  });
  assert.equal(theirs.texts[0].next.length, 5);
});
check('sentences for what is refused', () => {
  assert.throws(() => play.open('/demo/nothing'), /nothing/);
  assert.throws(() => play.embed(story, [302]), /token 302 at index 0 is out of range: the table has 302 rows/);
  assert.throws(() => play.train('/demo/nothing', {}), /nothing/);
});

const work = mkdtempSync(path.join(tmpdir(), 'embla-play-'));
try {
  const trained = (text, choices, ...options) => {
    const training = play.train('/demo/' + text, choices);
    const begin = performance.now();
    play.trainSteps(training, choices.steps);
    const rate = choices.steps / (performance.now() - begin) * 1000;
    play.trainSave(training, '/made');
    play.trainClose(training);
    const folder = path.join(work, 'made');
    rmSync(folder, { recursive: true, force: true });
    embla('train', text, '--preset', 'microgpt', '--engine', 'none', '--steps', String(choices.steps), '-o', folder, '-q', ...options);
    for (const file of ['model.safetensors', 'config.json', 'tokenizer.json'])
      assert.equal(sum(play.host.get('/made/' + file)), sum(readFileSync(path.join(folder, file))), file);
    return rate;
  };
  check('names, 200 steps: the bytes of the program', () => console.log(Math.round(trained('names.txt', { steps: 200 })), 'steps a second'));
  check('words, sinusoidal, tied', () => trained('village.txt', { steps: 40, words: 300, dim: 32, positions: 2, tied: 1 },
    '--words', '300', '--dim', '32', '--positions', 'sinusoidal', '--tied'));
} finally {
  rmSync(work, { recursive: true });
}
check('memory is given back', () => {
  const before = play.calls.memory.buffer.byteLength;
  for (let i = 0; i < 50; i++) {
    const training = play.train('/demo/names.txt', { steps: 5 });
    play.trainSteps(training, 5);
    play.trainClose(training);
    play.close(play.open('/demo/story'));
  }
  assert.ok(play.calls.memory.buffer.byteLength <= before + 4 * 65536);
});
assert.deepEqual(said, []);
console.log(count + ' checks passed; the module has ' + wasm.length + ' bytes');
