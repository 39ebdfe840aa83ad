// SPDX-License-Identifier: Apache-2.0
// Steps a second of microGPT in the page of `embla play`, in a worker of Chromium, beside those of the
// program: its plain loops (EMBLA_ISA=scalar) and its own choice. One line of JSON for each, as embla bench
// prints them: medians of turns, the program's time without its start.
//   usage: EMBLA_PLAYWRIGHT=FOLDER node bench/play.mjs CHROMIUM PROGRAM [TURNS]
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';

const [, , executablePath, given, turns = '5'] = process.argv;
const program = path.resolve(given), names = path.resolve(import.meta.dirname, '../demo/names.txt');
const { chromium } = createRequire(process.env.EMBLA_PLAYWRIGHT + '/')('playwright-core');
const folder = mkdtempSync(path.join(tmpdir(), 'embla-bench-'));
const STEPS = 6000;
const embla = (args, isa) => execFileSync(program, args, { stdio: 'ignore', env: { ...process.env, ...(isa ? { EMBLA_ISA: isa } : {}) } });
function native(isa) {
  const time = (steps) => {
    const begin = performance.now();
    embla(['train', names, '--preset', 'microgpt', '--engine', 'none', '--threads', '1', '--steps', String(steps), '--validation', '0', '-o', path.join(folder, 'run'), '-q'], isa);
    rmSync(path.join(folder, 'run'), { recursive: true });
    return performance.now() - begin;
  };
  const start = time(1);
  return (STEPS - 1) / (time(STEPS) - start) * 1000;
}
const inPage = `(async () => {
  const measure = 'onmessage = ({ data }) => { const play = new Play(data.module, new Host()); for (const [path, bytes] of data.files) play.host.put(path, bytes);'
    + 'const run = (steps) => { const training = play.train("/names.txt", { steps }); const begin = performance.now(); play.trainSteps(training, steps); play.trainClose(training); return performance.now() - begin; };'
    + 'run(500); postMessage(run(${STEPS})); };';
  const worker = new Worker(URL.createObjectURL(new Blob([document.getElementById('worker').textContent, measure], { type: 'text/javascript' })));
  const took = await new Promise((done) => { worker.onmessage = (event) => done(event.data); worker.postMessage({ module: embla.app.module, files: embla.app.files }); });
  worker.terminate();
  return ${STEPS} / took * 1000;
})()`;
const median = (list) => [...list].sort((a, b) => a - b)[list.length >> 1];
try {
  embla(['play', '-o', path.join(folder, 'play.html'), '-q']);
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
  const page = await browser.newPage();
  await page.goto('file://' + path.join(folder, 'play.html'));
  while (!await page.evaluate('window.emblaReady === true')) await new Promise((done) => setTimeout(done, 20));
  const found = { page: [], scalar: [], own: [] };
  for (let i = 0; i < Number(turns); i++) {
    found.page.push(await page.evaluate(inPage));
    found.scalar.push(native('scalar'));
    found.own.push(native(''));
  }
  const value = Math.round(median(found.page));
  for (const [name, list, is] of [['scalar', found.scalar, 'the program with EMBLA_ISA=scalar'], ['default', found.own, 'the program']]) {
    const limit = Math.round(median(list));
    console.log(JSON.stringify({ bench: 'play', case: 'microgpt/' + name, threads: 1, value, unit: 'steps/s', limit, limit_is: is, ratio: Number((value / limit).toFixed(3)) }));
  }
  console.error('Chromium ' + browser.version());
  await browser.close();
} finally {
  rmSync(folder, { recursive: true, force: true });
}
