// SPDX-License-Identifier: Apache-2.0
// The page of `embla play` in Firefox, from a file: it starts, each station is shown, a training in the
// worker gives the program's weights. The driver speaks WebDriver BiDi.
//   usage: node play_firefox.mjs FIREFOX FOLDER [PICTURES]
import { strict as assert } from 'node:assert';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const [, , executablePath, folder, pictures] = process.argv;
const puppeteer = createRequire(process.env.EMBLA_PLAYWRIGHT + '/')('puppeteer-core');
const browser = await puppeteer.launch({ browser: 'firefox', executablePath, headless: true });
const page = await browser.newPage();
const wrong = [];
page.on('console', (message) => wrong.push('console: ' + message.text()));
page.on('pageerror', (error) => wrong.push('error: ' + error.message));
await page.setViewport({ width: 1280, height: 900 });
async function until(expression) {
  for (const end = Date.now() + 30000; !await page.evaluate(expression);) {
    if (Date.now() > end) throw new Error('still waiting for ' + expression);
    await new Promise((done) => setTimeout(done, 30));
  }
}
let count = 0;
await page.goto(`file://${folder}/play.html`);
await until('window.emblaReady === true');
for (const station of ['start', 'tokens', 'rows', 'positions', 'alike', 'arrows', 'next', 'learn', 'cost']) {
  await page.evaluate(`embla.go('${station}', true)`);
  if (station === 'learn') await until("document.querySelector('.facts-line').textContent.startsWith('Step 0 of')");
  assert.equal(await page.evaluate("document.querySelectorAll('#main .wrong-input:not([hidden])').length"), 0, station);
  assert.ok(await page.evaluate('document.documentElement.scrollWidth') <= 1280, station);
  if (pictures) await page.screenshot({ path: `${pictures}/firefox_${station}.png` });
  count++;
}
await page.goto('about:blank');
await page.goto(`file://${folder}/play.html#s=learn&steps=200&speed=2`);
await until("window.emblaReady === true && document.querySelector('.facts-line').textContent.startsWith('Step 0 of')");
await page.evaluate("document.querySelector('button.main').click()");
await until("document.getElementById('sum') !== null");
assert.equal((await page.evaluate("document.getElementById('sum').textContent")).split(' ').pop(), readFileSync(folder + '/letters.sum', 'utf8').trim());
assert.deepEqual(wrong, []);
await browser.close();
console.log(`Firefox: ${count} stations, and a training with the bits of the program`);
