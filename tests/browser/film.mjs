// SPDX-License-Identifier: Apache-2.0
// What a person does with a film, done in Chromium; run.sh made the pages.
import { strict as assert } from 'node:assert';
import { check, close, end, keep, open, settle, until } from './page.mjs';

const place = (page, row) => page.evaluate(`embla.place(${row})`);
const time = page => page.evaluate('embla.time()');
const spoken = page => page.getAttribute('#slider', 'aria-valuetext');
const rowOf = (page, word) => page.evaluate(word => Array.from(document.querySelectorAll('#chosen option')).find(o => o.textContent === word).value, word);

/* Points move when the slider moves, by keys and by buttons. */
async function move(page) {
  const row = await rowOf(page, 'a'), last = await page.evaluate('embla.moments - 1'), end = await place(page, row);
  await check('the first view is the last moment', async () => assert.equal(await time(page), last));
  await check('the slider says so', async () => assert.match(await spoken(page), /^step 1,000 of 1,000, loss [0-9]\.[0-9]{2}$/));
  await page.focus('#slider');
  await page.keyboard.press('Home');
  await settle(page);
  const begin = await place(page, row);
  await check('the first moment', async () => assert.match(await spoken(page), /^step 0 of 1,000, loss 3\.[0-9]{2}$/));
  await check('the row has moved', () => assert(Math.hypot(begin[0] - end[0], begin[1] - end[1]) > 20, `${begin} ${end}`));
  const widths = await page.evaluate(`(() => {
    const name = document.querySelector('#play-name'), now = name.textContent;
    const all = ['Play', 'Pause', 'Play again'].map(text => (name.textContent = text, document.querySelector('#play').offsetWidth));
    name.textContent = now;
    return all;
  })()`);
  await check('the button to play has one width, so the curve beside it stays', () => assert.equal(new Set(widths).size, 1, `${widths}`));
  await page.keyboard.press('ArrowRight');
  await check('one moment on', async () => assert.equal(await time(page), 1));
  await page.keyboard.press('PageUp');
  await check('a page on', async () => assert(await time(page) > 5));
  await page.keyboard.press('End');
  await check('the end again', async () => assert.deepEqual(await place(page, row), end));
  await check('five moments to look at', async () => assert.equal(await page.locator('#named button').count(), 5));
  const steps = await page.evaluate('embla.named.map(n => n[1])');
  await check('in the order of time', () => assert.deepEqual(steps, [...steps].sort((a, b) => a - b)));
  for (let i = 1; i <= 5; i++) {
    await page.click(`#named li:nth-child(${i}) button`);
    await check(`moment ${i}`, async () => assert.equal(await time(page), steps[i - 1]));
    await check(`moment ${i} is said`, async () => assert.match(await page.textContent('#said'), /^step .*loss/));
  }
}

/* What is beside the plane: texts, nearest rows, pairs, variance. */
async function beside(page) {
  await page.evaluate('embla.show(0)');
  const first = await page.textContent('#text'), note = await page.textContent('#note');
  await check('what the model writes at first', () => assert(first.length > 3));
  await page.evaluate('embla.show(embla.moments - 1)');
  await check('what it writes at the end is another text', async () => assert.notEqual(await page.textContent('#text'), first));
  await check('after which step', async () => assert.match(await page.textContent('#text-title'), /after step 1,000$/));
  await check('the share of variance changes', async () => assert.notEqual(await page.textContent('#note'), note));
  await check('and is a share', async () => assert.match(await page.textContent('#note'), /shows [0-9.]+\u202f% of the variance of this moment/));
  await page.selectOption('#chosen', { label: 'e' });
  await check('nearest rows', async () => assert.equal(await page.locator('#near button').count(), 6));
  await check('with their cosines', async () => assert.match(await page.locator('#near .score').first().textContent(), /^-?[01]\.[0-9]{3}$/));
  const near = await page.evaluate('embla.near().map(n => n.score)');
  await check('the nearest first', () => assert.deepEqual(near, [...near].sort((a, b) => b - a)));
  await check('pairs', async () => assert.equal(await page.locator('#pairs button').count(), 6));
  await page.evaluate('embla.show(embla.moments - 1)');
  const row = Number(await rowOf(page, 'a')), [x, y] = await place(page, row), box = await page.locator('#plane').boundingBox();
  await page.mouse.click(box.x + x, box.y + y);
  await check('a click selects a row', async () => assert.equal(await page.evaluate('embla.selected()'), row));
  await page.mouse.click(box.x + 3, box.y + 3);
  await check('a click beside it selects none', async () => assert.equal(await page.evaluate('embla.selected()'), -1));
}

/* One button plays and pauses, and says which. */
async function play(page, still) {
  await page.evaluate('embla.show(0)');
  const name = () => page.textContent('#play-name');
  await check('nothing plays by itself', async () => assert.equal(await page.evaluate('embla.playing()'), false));
  await check('Play', async () => assert.equal(await name(), 'Play'));
  await page.focus('#play');
  await page.keyboard.press('Space');
  await until(page, 'embla.time() > 1.5');
  await check('Pause', async () => assert.equal(await name(), 'Pause'));
  await page.keyboard.press('Space');
  const when = await time(page);
  await check('a paused film shows a moment', () => assert.equal(when, Math.round(when)));
  await check('Play goes on', async () => assert.equal(await name(), 'Play'));
  await settle(page);
  await check('it stays there', async () => assert.equal(await time(page), when));
  await check('the pause is said', async () => assert.match(await page.textContent('#said'), /^step/));
  await page.evaluate('embla.show(embla.moments - 3)');
  await page.click('#play');
  await until(page, '!embla.playing()');
  await check('it ends at the last moment', async () => assert.equal(await time(page), await page.evaluate('embla.moments - 1')));
  await check('from the beginning', async () => assert.equal(await name(), 'Play again'));
  if (!still) return;
  await page.evaluate(`embla.show(0); window.seen = [];
    new MutationObserver(() => window.seen.push(embla.time())).observe(document.getElementById('now-step'), { childList: true });
    document.getElementById('play').click()`);
  await until(page, 'window.seen.length > 2');
  await check('steps in place of tweens', async () => assert((await page.evaluate('window.seen')).every(t => t === Math.round(t))));
  await page.click('#play');
}

async function letters() {
  let page = await open('letters.html');
  await keep(page, 'film-end');
  await move(page);
  await beside(page);
  await play(page, true);
  await page.click('#theme label:nth-child(3)');
  await check('dark by the switch', async () => assert.equal(await page.evaluate('getComputedStyle(document.body).backgroundColor'), 'rgb(18, 20, 25)'));
  await page.click('#theme label:nth-child(2)');
  await page.evaluate('embla.show(0)');
  await keep(page, 'film-start');
  await page.evaluate('embla.show(embla.named[2][1])');
  await page.selectOption('#chosen', { label: 'e' });
  await settle(page);
  await keep(page, 'film-middle');
  await close(page, 'letters');
  page = await open('letters.html', { scheme: 'dark', motion: 'no-preference' });
  await keep(page, 'film-dark');
  await play(page, false);
  await close(page, 'letters, dark');
  page = await open('letters.html', { width: 360, height: 740 });
  await check('narrow: nothing is cut off', async () => assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 360));
  await check('narrow: the slider is in view', async () => assert(await page.isVisible('#slider') && (await page.locator('#slider').boundingBox()).y < 740));
  await keep(page, 'film-narrow');
  await page.evaluate('embla.show(embla.named[1][1])');
  await page.evaluate('window.scrollTo(0, 900)');
  await settle(page);
  await keep(page, 'film-narrow-below');
  await close(page, 'letters, narrow');
}

async function others() {
  let page = await open('axes.html');
  await check('axes have names', async () => assert.match(await page.textContent('#note'), /^Across: from man to woman\. Up: from man to king\./));
  const [man, woman] = [await place(page, await rowOf(page, 'man')), await place(page, await rowOf(page, 'woman'))];
  await check('man and woman are on one line', () => assert(Math.abs(man[1] - woman[1]) < 1 && woman[0] > man[0] + 30, `${man} ${woman}`));
  await keep(page, 'film-axes');
  await close(page, 'axes');
  page = await open('words.html');
  await check('words have no texts', async () => assert(await page.isHidden('#text-part')));
  await keep(page, 'film-words');
  await close(page, 'words');
  page = await open('still.html');
  await check('a film of one moment', async () => assert.equal(await time(page), 0));
  await page.click('#play');
  await check('cannot play', async () => assert.equal(await page.evaluate('embla.playing()'), false));
  await close(page, 'still');
  page = await open('odd.html');
  await check('no word is a script', async () => assert.equal(await page.evaluate('window.hacked'), undefined));
  await check('a word is a word', async () => assert.notEqual(await rowOf(page, '<img/src=x/onerror=window.hacked=1>'), undefined));
  await close(page, 'odd');
}

await letters();
await others();
await end();
