// SPDX-License-Identifier: Apache-2.0
// What the tests of pages share: node TEST.mjs CHROMIUM FOLDER [PICTURES]
//
// Pages are opened from files. A message on the console, an error or anything fetched is a failure.
import { strict as assert } from 'node:assert';
import { createRequire } from 'node:module';

export const [, , executablePath, folder, pictures] = process.argv;
export const slow = !!process.env.EMBLA_TEST_SLOW;
export const modules = createRequire(process.env.EMBLA_PLAYWRIGHT + '/');
const { chromium } = modules('playwright-core');
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
let checks = 0, failed = 0;

export async function check(what, test) {
  checks++;
  try {
    await test();
  } catch (error) {
    failed++;
    console.log(`${what}: ${error.message}`);
  }
}

/* `within` is what a page may fetch of its own: only itself, or a folder of a site, whose pages do not say when they are ready. */
export async function open(name, { width = 1600, height = 1000, scheme = 'light', query = '', motion = 'reduce', within = name, bypassCSP = false } = {}) {
  const page = await browser.newPage({ bypassCSP, viewport: { width, height }, colorScheme: scheme, reducedMotion: motion, hasTouch: width < 500 });
  const wrong = [], begun = Date.now();
  /* a remark of the driver about the pictures that this test takes is none of the page's */
  page.on('console', message => { if (!message.text().includes('GPU stall due to ReadPixels')) wrong.push('console: ' + message.text()); });
  page.on('pageerror', error => wrong.push('error: ' + error.message));
  page.on('request', request => { if (!request.url().startsWith('file://' + folder + '/' + within) && !/^(data|blob):/.test(request.url())) wrong.push('fetched: ' + request.url()); });
  await page.goto(`file://${folder}/${name}${query}`);
  if (name.endsWith('.html') && within === name) await until(page, 'window.emblaReady === true');
  page.took = Date.now() - begun;
  page.wrong = wrong;
  return page;
}

export async function close(page, name) {
  await check(name + ' is quiet', () => assert.deepEqual(page.wrong, []));
  await page.close();
}

export const settle = page => page.evaluate(() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done))));
export const keep = async (page, name) => { if (pictures) await page.screenshot({ path: `${pictures}/${name}.png` }); };

/* Waits until an expression is true. waitForFunction would need eval, which the policy of a page forbids. */
export async function until(page, expression) {
  for (const end = Date.now() + 20000; !await page.evaluate(expression);) {
    if (Date.now() > end) throw new Error(`still waiting for ${expression}`);
    await new Promise(done => setTimeout(done, 20));
  }
}

/* Says what was found, and ends the program. */
export async function end() {
  await browser.close();
  console.log(`${checks} checks, ${failed} failed`);
  process.exit(failed > 0 ? 1 : 0);
}
