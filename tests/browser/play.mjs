// SPDX-License-Identifier: Apache-2.0
// The page of `embla play` in a browser: its stations, its bits, the keyboard, odd texts, the address, and
// what it says when something fails.
import { strict as assert } from 'node:assert';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { check, close, end, folder, keep, modules, open, settle, slow, until } from './page.mjs';

const stations = ['start', 'tokens', 'rows', 'positions', 'alike', 'arrows', 'next', 'learn', 'cost'];
const at = (station, more = '') => open('play.html', { width: 1280, height: 900, query: `#s=${station}${more}` });
const read = (name) => readFileSync(`${folder}/${name}`, 'utf8');
const status = "document.querySelector('.facts-line').textContent";
const press = async (page, ...keys) => { for (const key of keys) await page.keyboard.press(key); };
// Moves on with the Tab key until an element has the focus.
async function tabTo(page, selector) {
  for (let i = 0; i < 200; i++) {
    await page.keyboard.press('Tab');
    if (await page.evaluate((s) => document.activeElement !== null && document.activeElement.matches(s), selector)) return;
  }
  throw new Error('the Tab key does not reach ' + selector);
}

/* ---- each station, on each screen ---- */

for (const [width, scheme] of [[360, 'light'], [360, 'dark'], [1280, 'light'], [1280, 'dark'], [2560, 'light'], [2560, 'dark']])
  for (const station of stations) {
    const what = `play_${station}_${width}_${scheme}`, page = await open('play.html', { width, height: 900, scheme, query: '#s=' + station });
    if (station === 'learn') await until(page, status + ".startsWith('Step 0 of')");
    await settle(page);
    await check(what + ' has a title', async () => assert.ok(await page.evaluate("document.querySelector('h1').textContent.length > 0")));
    await check(what + ' has no failure', async () => assert.equal(await page.evaluate("document.querySelectorAll('.wrong-input:not([hidden])').length"), 0));
    await check(what + ' is not wider than the screen', async () => assert.ok(await page.evaluate('document.documentElement.scrollWidth') <= width));
    await check(what + ' has the colours of the scheme', async () =>
      assert.equal(Number((await page.evaluate('getComputedStyle(document.body).backgroundColor')).match(/\d+/)[0]) < 128, scheme === 'dark'));
    await keep(page, what);
    await close(page, what);
  }

/* ---- axe: what a reader of the screen would miss ---- */

const hasAxe = (() => { try { return modules.resolve('axe-core/axe.min.js'); } catch { return null; } })();
if (!hasAxe) console.log('note: axe-core is not in EMBLA_PLAYWRIGHT, so pages are not audited');
for (const scheme of hasAxe ? ['light', 'dark'] : [])
  for (const station of stations) {
    const page = await open('play.html', { width: 1280, height: 900, scheme, query: '#s=' + station, bypassCSP: true });
    if (station === 'learn') await until(page, status + ".startsWith('Step 0 of')");
    await page.evaluate("document.querySelectorAll('details').forEach((details) => { details.open = true; })");
    await settle(page);
    await page.evaluate(readFileSync(hasAxe, 'utf8'));
    const { violations } = await page.evaluate('axe.run()');
    await check(`axe: ${station}, ${scheme}`, () => assert.deepEqual(violations.map(({ id, impact, nodes }) => `${impact} ${id}: ${nodes[0].html.slice(0, 100)}`), []));
    await page.close();
  }

/* ---- the same numbers as the program ---- */

{
  const page = await at('start');
  await check('rows are those of embla lookup', async () => {
    const ours = await page.evaluate('embla.app.play.embed(embla.app.main.handle, [0, 66, 20]).rows');
    const theirs = read('lookup.tsv').trim().split('\n').filter((line) => /^\d/.test(line)).map((line) => line.split(/\s+/).slice(2).map(Number));
    assert.deepEqual(ours.map((row) => row.map(Math.fround)), theirs.map((row) => row.map(Math.fround)));
    assert.equal(theirs.length, 3);
  });
  await check('neighbours are those of embla near', async () => {
    const ours = await page.evaluate("embla.app.play.near(embla.app.words.handle, embla.app.words.find('cat'), 10).map(({ id, score }) => [id, Number(score.toPrecision(9))])");
    assert.deepEqual(ours, read('near.tsv').trim().split('\n').map((line) => line.split('\t')).map((cells) => [Number(cells[2]), Number(cells[3])]));
  });
  await check('predictions are those of embla predict', async () => {
    const ours = await page.evaluate("embla.app.play.predict(embla.app.main.handle, promptOf('the cat sat on a'), 1, 10).next");
    const theirs = JSON.parse(read('predict.json')).texts[0].next;
    assert.deepEqual(ours.map(({ id, logit }) => [id, Math.fround(logit)]), theirs.map(({ id, logit }) => [id, Math.fround(logit)]));
    assert.deepEqual(ours.map(({ probability }) => Number(probability.toPrecision(9))), theirs.map(({ probability }) => Number(probability.toPrecision(9))));
  });
  await close(page, 'play, numbers');
}
for (const [name, choices] of [['letters', '&steps=200'], ['words', '&corpus=/village.txt&steps=60&dim=32&pos=1&tied=1'], ['pieces', '&unit=pieces&steps=60&pos=2&seed=3']]) {
  const page = await at('learn', choices + '&speed=2');
  await until(page, status + ".startsWith('Step 0 of')");
  await page.getByRole('button', { name: 'Train', exact: true }).click();
  await until(page, "document.getElementById('sum') !== null");
  await check(`${name}: the trained weights have the SHA-256 of embla train`, async () =>
    assert.equal((await page.evaluate("document.getElementById('sum').textContent")).split(' ').pop(), read(name + '.sum').trim()));
  await check(`${name}: the page says that it has ended`, async () => assert.match(await page.evaluate(status), /The training has ended/));
  await close(page, 'play, training of ' + name);
}

/* ---- the commands that the page shows ---- */

{
  const page = await at('start', '&steps=20'), run = (command) => spawnSync('bash', ['-ec', 'rm -rf run; ' + command], { cwd: folder + '/demo', encoding: 'utf8',
    env: { ...process.env, PATH: path.dirname(process.env.EMBLA_PROGRAM) + ':' + process.env.PATH } });
  let ran = 0;
  for (const [station, choice] of [['tokens'], ['rows', 0], ['rows', 1], ['rows', 2], ['positions', 0], ['positions', 1], ['positions', 2], ['positions', 3], ['alike'], ['arrows'], ['next'], ['learn'], ['cost']]) {
    await page.evaluate((name) => embla.go(name, true), station);
    if (choice !== undefined) await page.evaluate((i) => document.querySelectorAll('#main .choice input')[i].click(), choice);
    await page.evaluate("document.querySelectorAll('#main details').forEach((details) => { details.open = true; })");
    if (station === 'learn') await until(page, status + ".startsWith('Step 0 of')");
    await settle(page);
    for (const command of await page.evaluate("[...document.querySelectorAll('.command')].filter((e) => e.checkVisibility()).map((e) => e.querySelector('pre').textContent)")) {
      const done = run(command);
      await check(`${station}: ${command}`, () => assert.equal(done.status, 0, done.stderr));
      ran++;
    }
  }
  await check('each station shows a command', () => assert.ok(ran >= 13, String(ran)));
  for (const [word, name] of [["'; echo no", 'a quote'], ['--help', 'an option'], ['$(echo no)', 'a command']]) {
    await page.evaluate((text) => { embla.state.text = text; embla.go('tokens', true); }, word);
    await settle(page);
    await check(`a text with ${name} is one word of the command`, async () => {
      const done = run((await page.evaluate("document.querySelector('.command pre').textContent")).split('\n').at(-1));
      assert.equal(done.status, 0, done.stderr);
      assert.match(done.stdout, /^\d+\t/);
      assert.ok(!/^no$/m.test(done.stdout) && !/Usage/.test(done.stdout));
    });
  }
  await close(page, 'play, commands');
}

/* ---- by keyboard alone ---- */

{
  const page = await at('start');
  await tabTo(page, '.begin a');
  await press(page, 'Enter');
  await check('Enter begins station 1, and the heading is next', async () =>
    assert.deepEqual(await page.evaluate("[embla.state.s, document.activeElement.id]"), ['tokens', 'main']));
  const acts = {
    async tokens() {
      await tabTo(page, 'input[type=range]');
      await press(page, 'ArrowRight', 'ArrowRight');
      await until(page, "document.querySelectorAll('#main h2 + p + label + div p')[0].textContent.endsWith('319')");
    },
    async rows() {
      await tabTo(page, '[data-row="0"]');
      await press(page, 'Enter', 'Tab', 'Enter');
      assert.equal(await page.evaluate('embla.state.ids'), '2,3,0,0,1');
    },
    async positions() {
      await tabTo(page, '[data-place="1"]');
      await press(page, 'Enter', 'Tab', 'Tab', 'Tab', 'Enter');
      assert.equal(await page.evaluate('embla.state.swap'), '1,4');
      assert.match(await page.evaluate("document.querySelector('#main table').textContent"), /dog.*1 \u2192 4/);
      await page.keyboard.press('Shift+Tab');
    },
    async alike() {
      await tabTo(page, 'svg [role=slider]');
      await press(page, 'ArrowRight', 'ArrowRight', 'ArrowUp');
      assert.equal(await page.evaluate('embla.state.u'), '4,4.5');
    },
    async arrows() {
      await tabTo(page, 'input[type=checkbox]');
      await press(page, 'Space');
      assert.equal(await page.evaluate('embla.state.keep'), 1);
    },
    async next() {
      await tabTo(page, '#main button.act');
      await press(page, 'Enter', 'Enter');
      assert.match(await page.evaluate('embla.state.before'), /^the king \w+ \w+$/);
    },
    async learn() {
      await until(page, status + ".startsWith('Step 0 of')");
      await tabTo(page, '#main button.act:not(.main)');
      await press(page, 'Enter');
      await until(page, status + ".startsWith('Step 1 of')");
      assert.equal(await page.evaluate("document.querySelectorAll('[aria-label=\"What the last step read\"] .chip').length"), 5);
      assert.match(await page.evaluate("document.body.textContent"), /It read 5 of 27 tokens\. The numbers of 5 rows have changed/);
    },
    async cost() {
      await tabTo(page, 'select');
      await page.keyboard.type('andrea-120m');
      await until(page, "document.body.textContent.includes('98,698,752')");
    },
  };
  for (const station of stations.slice(1)) {
    await check(`${station}: its control works by keyboard`, acts[station]);
    await check(`${station}: the question works by keyboard`, async () => {
      await page.evaluate("document.querySelector('.quiz').scrollIntoView()");
      await tabTo(page, '.quiz input');
      await press(page, 'Space', 'ArrowDown', 'Tab', 'Enter');
      assert.ok(await page.evaluate("document.querySelector('.quiz .verdict').textContent.length > 0"));
      assert.ok(!/NaN|undefined|\u2013/.test(await page.evaluate("document.querySelector('.quiz [aria-live]').textContent")));
    });
    await check(`${station}: each control is reached by the Tab key`, async () => {
      await page.evaluate("document.getElementById('main').focus()");
      const missing = await page.evaluate(() => { window.wanted = new Set([...document.querySelectorAll('#main a[href], #main button:not(:disabled), #main input:not([type=radio]), #main select, #main textarea, #main summary, #main [role=slider]')].filter((e) => e.checkVisibility())); return window.wanted.size; });
      for (let i = 0; i < 2 * missing + 40; i++) {
        await page.keyboard.press('Tab');
        if (await page.evaluate(() => { window.wanted.delete(document.activeElement); return window.wanted.size; }) === 0) return;
      }
      assert.deepEqual(await page.evaluate(() => [...window.wanted].map((e) => e.outerHTML.slice(0, 80))), []);
    });
    if (station === stations.at(-1)) continue;
    await page.evaluate("document.getElementById('main').focus()");
    await tabTo(page, '.turn a:last-child');
    await press(page, 'Enter');
  }
  await close(page, 'play, keyboard');
}

/* ---- odd texts ---- */

{
  const page = await at('tokens');
  const type = (text) => page.evaluate((value) => { const input = document.querySelector('#main input[type=text]'); input.value = value; input.dispatchEvent(new Event('input')); }, text);
  const says = (text) => until(page, `document.getElementById('main').textContent.includes(${JSON.stringify(text)})`);
  await type('');
  await check('an empty text is asked for', () => says('Type a text.'));
  await type('a');
  await check('a text of one letter', () => says('1 token of a vocabulary of 302'));
  await type('caf\u00e9 \u{1f600}\u{1f469}\u200d\u{1f469}\u200d\u{1f467}');
  await check('pieces have every text', () => says('byte 1 of 4'));
  await check('letters say which character they do not have', () => says('is not in the vocabulary of 33'));
  await type('the cat sat on a mat. '.repeat(4600)); // 100 kB
  await check('a long text is cut, and the page says so', () => says('Only the first 120 of '));
  await check('a long text is not put into the address', async () => assert.ok((await page.evaluate('location.hash')).length < 1000));
  for (const station of ['rows', 'positions', 'next']) {
    for (const text of ['', '\u{1f600}', 'the cat sat on a mat. '.repeat(4600), '<script>alert(1)</script>']) {
      await page.evaluate(([s, t]) => { embla.state.text = embla.state.order = embla.state.before = t; embla.state.table = 'main'; embla.go(s, true); }, [station, text]);
      await settle(page);
      await check(`${station}: ${text.slice(0, 12) || 'empty'} gives an answer or a sentence`, async () =>
        assert.ok(await page.evaluate("document.querySelectorAll('#main canvas, #main .bars, #main .wrong-input:not([hidden])').length > 0")));
    }
  }
  await close(page, 'play, odd texts');
}
{
  const page = await at('learn', '&steps=30&speed=2');
  await until(page, status + ".startsWith('Step 0 of')");
  await page.evaluate("document.querySelector('input[value=\"/text.txt\"]').click()");
  await check('without a text of one\'s own nothing is trained', async () => {
    assert.match(await page.evaluate(status), /Use this text/);
    assert.ok(await page.evaluate("document.querySelector('button.main').disabled"));
  });
  const use = async (text) => { await page.evaluate((value) => { document.querySelector('textarea').value = value; }, text); await page.getByRole('button', { name: 'Use this text' }).click(); };
  await use(' \n ');
  await check('an empty text is not trained', async () => {
    await until(page, "document.getElementById('main').textContent.includes('This text is empty.')");
    assert.ok(await page.evaluate("document.querySelector('button.main').disabled"));
  });
  await use('aaaa\naaa\naa\n');
  await check('a text of one letter can be trained', () => until(page, status + ".startsWith('Step 0 of 30')"));
  await use('\u{1f600}\u{1f601}\n\u{1f602}\u{1f603}\n\u{1f600}\u{1f602}\n');
  await check('emoji can be trained', async () => {
    await until(page, "document.getElementById('main').textContent.includes('5 rows of 16')");
    await page.getByRole('button', { name: 'Train', exact: true }).click();
    await until(page, "document.getElementById('sum') !== null");
  });
  await use('the cat sat on a mat\n'.repeat(5000)); // 100 kB
  await check('100 kB can be trained', async () => {
    await until(page, "document.getElementById('main').textContent.includes('5,000 documents')");
    await page.getByRole('button', { name: 'Train', exact: true }).click();
    await until(page, "document.getElementById('sum') !== null");
  });
  await close(page, 'play, own texts');
}

/* ---- the address ---- */

{
  const page = await at('positions', '&order=the+king+saw+the+queen&kind=3&swap=1,4');
  await check('the address has the state', async () => {
    assert.equal(await page.evaluate("document.querySelector('#main input[type=text]').value"), 'the king saw the queen');
    assert.match(await page.evaluate("document.querySelector('#main table').textContent"), /king.*1 \u2192 4.*1\.0000/);
  });
  await page.evaluate("embla.go('cost', true)");
  await page.goBack();
  await until(page, "embla.state.s === 'positions'");
  await check('Back leads to the station before, with its state', async () => assert.equal(await page.evaluate("document.querySelector('#main input[type=text]').value"), 'the king saw the queen'));
  await close(page, 'play, address');
  const odd = await at('nowhere', '&merges=-7&dim=1e99&V=x&heat=0&ids=9,-1,a&u=1&token=77777&swap=9,9&table=none&corpus=none&dtype=none&word=%3Cb%3E');
  await check('an address beyond the limits shows the start', async () => assert.equal(await odd.evaluate('embla.state.s'), 'start'));
  await check('a name of JavaScript is no station', async () => {
    await odd.evaluate("location.hash = '#s=constructor'");
    await settle(odd);
    assert.equal(await odd.evaluate("document.querySelector('h1').textContent"), 'The embedding layer, in your hands');
    assert.equal(await odd.evaluate('embla.state.dtype'), 'f32');
  });
  for (const station of stations) {
    await odd.evaluate((s) => embla.go(s, true), station);
    await settle(odd);
    await check(`an address beyond the limits: ${station}`, async () => assert.ok(await odd.evaluate("document.querySelector('h1').textContent.length > 0")));
  }
  await close(odd, 'play, odd address');
}

/* ---- failures, the policy, memory, frames ---- */

{
  const page = await at('learn', '&dim=7&pos=2');
  await check('a choice that cannot be is a sentence', () => until(page, "document.querySelector('#main .wrong-input') !== null && document.querySelector('#main .wrong-input').textContent.includes('7')"));
  await check('after it, a choice that can be is trained', async () => {
    await page.evaluate("document.querySelector('input[name=choice-pos]').click()");
    await until(page, status + ".startsWith('Step 0 of')");
  });
  await check('steps end at the last', async () => {
    await page.evaluate("{ const input = [...document.querySelectorAll('#main input[type=number]')][1]; input.value = '2'; input.dispatchEvent(new Event('change')); }");
    await until(page, status + ".startsWith('Step 0 of 2')");
    await page.evaluate("for (let i = 0; i < 4; i++) [...document.querySelectorAll('#main button.act')].find((b) => b.textContent === 'One step').click()");
    await until(page, status + ".startsWith('Step 2 of 2')");
  });
  await check('a training that is begun again and again says nothing of the one before', async () => {
    await page.evaluate("embla.state.steps = 100000; embla.state.speed = 2; embla.go('learn', true)");
    for (let i = 0; i < 6; i++) {
      await until(page, status + ".startsWith('Step 0 of 100,000')");
      await page.getByRole('button', { name: 'Train', exact: true }).click();
      await page.waitForTimeout(60);
      await page.getByRole('button', { name: 'Start again' }).click();
    }
    await until(page, status + ".startsWith('Step 0 of 100,000')");
    await until(page, "document.querySelectorAll('.samples .when').length > 0");
    assert.deepEqual(await page.evaluate("[...document.querySelectorAll('.samples .when')].map((when) => when.textContent)"), ['step 0']);
  });
  await check('stations that are left and entered again give their memory back', async () => {
    const bytes = () => page.evaluate('embla.app.play.calls.memory.buffer.byteLength');
    const visit = async (times) => { for (let i = 0; i < times; i++) for (const s of ['cost', 'tokens', 'rows', 'alike']) await page.evaluate((name) => { embla.go(name, true); document.querySelectorAll('details').forEach((d) => { d.open = true; }); }, s); };
    await visit(3);
    const before = await bytes();
    await visit(20);
    assert.ok(await bytes() <= before + 1e6, `${before} and ${await bytes()}`);
    assert.ok(await page.evaluate('pictures.size') < 10);
  });
  await check('a station is left while its text is still being read', async () => {
    await page.evaluate("embla.go('tokens', true)");
    await page.evaluate("{ const input = document.querySelector('#main input[type=text]'); input.value = 'the dog'; input.dispatchEvent(new Event('input')); embla.go('cost', true); }");
    await page.waitForTimeout(150);
  });
  await close(page, 'play, failure');
  const strict = await at('start');
  await check('the policy forbids eval and other hosts', async () => {
    assert.match(await strict.evaluate("document.querySelector('meta[http-equiv]').content"), /default-src 'none'/);
    const tried = await strict.evaluate(() => new Promise((done) => setTimeout(async () => { // outside of what the driver may do
      const out = [], inline = document.createElement('script');
      inline.textContent = 'window.ran = true';
      document.body.append(inline);
      if (window.ran) out.push('inline');
      try { (0, eval)('1'); out.push('eval'); } catch { /* as it must be */ }
      try { await fetch('https://example.invalid/'); out.push('fetch'); } catch { /* as it must be */ }
      done(out);
    })));
    assert.deepEqual(tried, []);
  });
  await strict.close(); // what was tried is on its console
}
{
  const page = await open('play.html', { width: 1280, height: 900, motion: 'no-preference', query: '#s=learn&corpus=/village.txt&dim=32&steps=100000&speed=1' });
  await until(page, status + ".startsWith('Step 0 of')");
  const memory = 'embla.app.learn.view.last.memory', seconds = process.env.EMBLA_TEST_LONG ? 600 : 4;
  await page.getByRole('button', { name: 'Train', exact: true }).click();
  await page.waitForTimeout(2000);
  const before = [await page.evaluate(memory), await page.evaluate('performance.memory.usedJSHeapSize')];
  const frames = await page.evaluate((ms) => new Promise((done) => { const times = []; const tick = (now) => { times.push(now); if (now - times[0] < ms) requestAnimationFrame(tick); else done(times); }; requestAnimationFrame(tick); }), seconds * 1000);
  const gaps = frames.slice(1).map((time, i) => time - frames[i]).sort((a, b) => a - b), after = [await page.evaluate(memory), await page.evaluate('performance.memory.usedJSHeapSize')];
  console.log(`302 rows while training: ${(1000 / gaps[gaps.length >> 1]).toFixed(0)} frames a second (median), 95 of 100 gaps below ${gaps[Math.floor(gaps.length * 0.95)].toFixed(0)} ms; module ${before[0]} and ${after[0]} bytes, page ${(before[1] / 1e6).toFixed(0)} and ${(after[1] / 1e6).toFixed(0)} MB after ${seconds} s`);
  await check('memory of the module does not grow', () => assert.equal(after[0], before[0]));
  await check('memory of the page stays below 60 MB more', () => assert.ok(after[1] < before[1] + 60e6, `${before[1]} and ${after[1]}`));
  if (!slow) await check('pictures move', () => assert.ok(frames.length > 20 * seconds, String(frames.length)));
  await close(page, 'play, long training');
}
await end();
