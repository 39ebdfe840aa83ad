// SPDX-License-Identifier: Apache-2.0
// What a person does with a map, done in Chromium: node map.mjs CHROMIUM FOLDER [PICTURES]
//
// FOLDER holds the pages that run.sh made. Each page is opened from the file; a message on
// the console, an error or anything fetched is a failure.
import { strict as assert } from 'node:assert';
import { existsSync } from 'node:fs';
import { check, close, end, folder, keep, open, settle, slow } from './page.mjs';

const near = page => page.locator('#near button span:first-child').allTextContents();
const selected = page => page.evaluate('embla.selected()');
const spot = async (page, row) => {
  const [x, y] = await page.evaluate(`embla.place(${row})`), box = await page.locator('#marks').boundingBox();
  return [box.x + x, box.y + y];
};
/* The legend names every community, and a click on a name shows its most central row. */
async function communities(page) {
  const names = await page.locator('#communities span').allTextContents();
  await check('communities have names', () => assert(names.length > 5 && names.length <= 20 && names.every(name => name.includes(', ')), names.join('; ')));
  await check('the axes have no meaning', async () => assert((await page.textContent('#axes')).includes('no meaning')));
  await page.click('#communities li:nth-child(1) button');
  await settle(page);
  await check('a community is shown', async () => assert(names[0].startsWith(await page.textContent('#word') + ',')));
  await page.click('#close');
  await page.click('#color label:nth-child(2)');
  await check('a scale in place of the legend', async () => assert(await page.isHidden('#communities') && await page.isVisible('#scale')));
  await page.click('#by-community');
  await check('the legend again', async () => assert(await page.isVisible('#communities') && await page.isHidden('#scale')));
  await page.click('#reset');
  await settle(page);
}

/* Pixels of the points' canvas that are not empty: something has been drawn. */
const drawn = page => page.evaluate(() => {
  const from = document.getElementById('points'), to = document.createElement('canvas');
  to.width = from.width; to.height = from.height;
  embla.redrawNow();
  const pen = to.getContext('2d');
  pen.drawImage(from, 0, 0);
  return pen.getImageData(0, 0, to.width, to.height).data.filter((v, i) => i % 4 === 3 && v > 40).length;
});

async function odd() {
  const page = await open('odd.html');
  await check('no word is a script', async () => assert.equal(await page.evaluate('window.hacked'), undefined));
  await check('nor the title', async () => assert.equal(await page.title(), '</title><script>window.hacked=1</script>'));
  await check('nor the heading', async () => assert.equal(await page.textContent('h1'), '</title><script>window.hacked=1</script>'));
  await check('points are drawn', async () => assert(await drawn(page) > 100));
  for (const [row, word] of [[0, '</script><script>window.hacked=1</script>'], [1, '<img/src=x/onerror=window.hacked=1>'], [2, '""><b>&amp;"'], [3, '\\xff\\xfe'], [4, '\\u202elive'], [5, '\\\\n'], [6, '--><!--']])
    await check('row ' + row, async () => {
      await page.evaluate(`embla.select(${row}, true)`);
      assert.equal(await page.textContent('#word'), word);
      assert.equal((await near(page)).length, 7);
    });
  await check('a row that is not finite', async () => {
    await page.evaluate('embla.select(7, true)');
    assert.match(await page.textContent('#norm'), /NaN or infinity/);
    assert.equal((await near(page)).length, 0);
  });
  await check('facts', async () => assert.equal(await page.textContent('#facts'), '9 rows × 3, 1 not shown (NaN or infinite)'));
  await check('nothing was made of them', async () => assert.equal(await page.locator('#chosen script, #chosen img, #chosen b, #tip script').count(), 0));
  await close(page, 'odd');
}

async function small() {
  let page = await open('none.html');
  await check('theme asked for', async () => assert.equal(await page.getAttribute('html', 'data-theme'), 'dark'));
  await check('no neighbours, and why', async () => {
    await page.evaluate('embla.select(8, true)');
    assert.match(await page.textContent('#near-none'), /--neighbours 0/);
  });
  await close(page, 'none');
  for (const name of ['one.html', 'same.html']) {
    page = await open(name);
    await check(name + ' can be clicked', async () => {
      await page.mouse.click(...await spot(page, 0));
      assert.equal(await selected(page), 0);
    });
    await close(page, name);
  }
}

/* Pairs of boxes (left, top, right, bottom, text) that share more than a pixel. */
const overlaps = boxes => boxes.flatMap((a, i) => boxes.slice(0, i).filter(b => Math.min(a[2], b[2]) - Math.max(a[0], b[0]) > 1 && Math.min(a[3], b[3]) - Math.max(a[1], b[1]) > 1).map(b => [a[4], b[4]]));

/* Labels of a picture, as wide as this browser's font is. Ascent and descent that no letter of "word17" uses are cut. */
const boxesOf = page => page.evaluate(() => Array.from(document.querySelectorAll('text.label, text.word'), text => {
  const box = text.getBBox();
  return [box.x, box.y + 0.2 * box.height, box.x + box.width, box.y + 0.85 * box.height, text.textContent];
}));

async function labels() {
  for (const name of ['rows.svg', 'words.svg']) {
    const page = await open(name), boxes = await boxesOf(page);
    await check(name + ' has its labels', () => assert(boxes.length > 150, String(boxes.length)));
    await check(name + ': none over another', () => assert.deepEqual(overlaps(boxes), []));
    await keep(page, name);
    await close(page, name);
  }
  const page = await open('rows.html');
  await check('a page of 200 rows has its labels', async () => assert(await page.evaluate('embla.labels().length') > 130, String(await page.evaluate('embla.labels().length'))));
  const boxes = (await page.evaluate('embla.labels()')).map(l => [l.left, l.top, l.left + l.width, l.top + 16, String(l.row)]);
  await check('none over another', () => assert.deepEqual(overlaps(boxes), []));
  await check('on four sides', async () => {
    const sides = await page.evaluate(() => Array.from(new Set(embla.labels().map(l => { const [x, y] = embla.place(l.row); return l.left > x ? 'right' : l.left + l.width < x ? 'left' : l.top > y ? 'below' : 'above'; }))).sort());
    assert.deepEqual(sides, ['above', 'below', 'left', 'right']);
  });
  await keep(page, 'rows');
  await close(page, 'rows.html');
}

/* Two clicks draw an arrow, the same two remove it. */
async function arrows() {
  const page = await open('arrows.html'), drawn = () => page.evaluate('embla.arrows()');
  const clicks = async (...rows) => { for (const row of rows) { await page.mouse.click(...await spot(page, row)); await settle(page); } };
  const written = () => page.evaluate('embla.labels().map(l => l.row)');
  await check('arrows of the program', async () => assert.deepEqual(await drawn(), [[3, 7], [100, 7]]));
  await check('their ends are labelled', async () => { for (const row of [3, 7, 100]) assert((await written()).includes(row)); });
  await keep(page, 'arrows');
  await clicks(12);
  await check('without the tool a click selects', async () => assert.equal(await selected(page), 12));
  await page.click('#arrow');
  await check('the tool is on', async () => assert.equal(await page.getAttribute('#arrow', 'aria-pressed'), 'true'));
  await clicks(3);
  await check('the page says what is next', async () => assert.match(await page.textContent('#count'), /from word3/));
  await clicks(100);
  await check('two clicks draw one', async () => assert.deepEqual((await drawn())[2], [3, 100]));
  await clicks(40, 41);
  await check('new ends are labelled, once', async () => { for (const row of [40, 41]) assert.equal((await written()).filter(other => other === row).length, 1); });
  await keep(page, 'arrows-drawn');
  await clicks(3, 100, 5, 5);
  await check('again removes it, and none leads to itself', async () => assert.deepEqual(await drawn(), [[3, 7], [100, 7], [40, 41]]));
  await page.keyboard.press('Escape');
  await check('escape ends it', async () => assert.equal(await page.getAttribute('#arrow', 'aria-pressed'), 'false'));
  await page.focus('#marks');
  await page.keyboard.press('a');
  await check('a key begins it', async () => assert.equal(await page.getAttribute('#arrow', 'aria-pressed'), 'true'));
  await close(page, 'arrows');
}

async function picked() {
  let page = await open('words.html');
  const written = () => page.evaluate('embla.labels().map(l => l.row)');
  await check('the words are listed', async () => assert.deepEqual(await page.locator('#picked button').allTextContents(), ['word3', 'word7', 'word100']));
  await check('and labelled', async () => { for (const row of [3, 7, 100]) assert((await written()).includes(row)); });
  await check('once', async () => assert.equal((await written()).filter(row => row === 3).length, 1));
  await keep(page, 'words');
  await page.locator('#picked button', { hasText: 'word100' }).click();
  await check('a click selects the row', async () => assert.equal(await selected(page), 100));
  await check('which the list shows', async () => assert.deepEqual(await page.locator('#picked button[aria-pressed=true]').allTextContents(), ['word100']));
  await page.click('#reset');
  await settle(page);
  await check('the others stay labelled', async () => { for (const row of [3, 7, 100]) assert((await written()).includes(row)); });
  await close(page, 'words');
  page = await open('only.html');
  await check('only these are drawn', async () => assert.deepEqual((await written()).sort(), [100, 3, 7]));
  await check('and counted', async () => assert.equal(await page.textContent('#facts'), '3 of 200 rows × 3'));
  await check('the others are found', async () => assert.equal(await page.evaluate("embla.find('word5')[0]"), 5));
  await check('and can be selected', async () => {
    await page.evaluate('embla.select(5, true)');
    assert.equal(await page.textContent('#word'), 'word5');
  });
  await close(page, 'only');
}

async function find(page) {
  await page.keyboard.press('/');
  await page.keyboard.type('kin');
  await check('/ goes to the search box', async () => assert.equal(await page.inputValue('#query'), 'kin'));
  await page.fill('#query', 'king');
  await check('the word itself is first', async () => assert.equal(await page.textContent('#results li[aria-selected=true] span'), 'king'));
  await page.keyboard.press('ArrowDown');
  await check('down', async () => assert.match(await page.textContent('#results li[aria-selected=true] span'), /^king./));
  await page.keyboard.press('ArrowUp');
  await settle(page);
  await keep(page, 'search');
  await page.keyboard.press('Enter');
  await check('king is selected', async () => assert.equal(await page.textContent('#word'), 'king'));
  await check('its row', async () => assert.equal(await page.textContent('#number'), '654'));
  await check('its neighbours', async () => assert.deepEqual((await near(page)).slice(0, 3), slow ? (await near(page)).slice(0, 3) : ['prince', 'queen', 'son']));
  await check('queen is one', async () => assert((await near(page)).includes('queen')));
  await check('with its score', async () => assert.equal(await page.locator('#near li', { hasText: 'queen' }).locator('.score').textContent(), '0.751'));
  await settle(page);
  await keep(page, 'king');
  await page.locator('#near button', { hasText: 'queen' }).click();
  await check('a neighbour is selected', async () => assert.equal(await page.textContent('#word'), 'queen'));
  await page.fill('#query', '#5');
  await page.keyboard.press('Enter');
  await check('by number', async () => assert.equal(await selected(page), 5));
  await page.fill('#query', 'no such word');
  await check('what is not there', async () => assert.match(await page.textContent('#count'), /No row/));
  await page.keyboard.press('Escape');
}

async function move(page) {
  const box = await page.locator('#marks').boundingBox(), middle = [box.x + box.width / 2, box.y + box.height / 2];
  await page.click('#reset');
  await settle(page);
  const before = await page.evaluate('embla.view.scale');
  await page.mouse.move(...middle);
  for (let i = 0; i < 12; i++) await page.mouse.wheel(0, -120);
  await settle(page);
  await check('the wheel zooms', async () => assert(await page.evaluate('embla.view.scale') > 3 * before));
  await keep(page, 'zoomed');
  const x = await page.evaluate('embla.view.x'), scale = await page.evaluate('embla.view.scale');
  await page.mouse.down();
  await page.mouse.move(middle[0] - 100, middle[1], { steps: 4 });
  await page.mouse.up();
  await check('dragging moves by as much', async () => assert(Math.abs((await page.evaluate('embla.view.x') - x) * scale - 100) < 1));
  await page.mouse.dblclick(...middle);
  await settle(page);
  await check('double click shows all', async () => assert(Math.abs(await page.evaluate('embla.view.scale') / before - 1) < 1e-6));
  await page.keyboard.press('Escape');
  await page.locator('#marks').focus();
  await page.keyboard.press('+');
  await check('keys zoom', async () => assert(Math.abs(await page.evaluate('embla.view.scale') / before - 1.4) < 1e-6));
  await page.keyboard.press('0');
  await settle(page);
}

async function click(page) {
  const row = await page.evaluate(() => { /* one that lies alone: its neighbours on the screen are far */
    const n = Math.min(embla.count, 4000), at = Array.from({ length: n }, (_, i) => embla.place(i));
    return at.findIndex(([x, y], i) => x > 60 && y > 60 && Array.from({ length: embla.count }, (_, j) => embla.place(j)).every(([u, v], j) => i === j || Math.hypot(x - u, y - v) > 4));
  });
  const at = await spot(page, row);
  await page.mouse.move(at[0] + 1, at[1] + 1);
  await check('the word under the pointer', async () => assert(!(await page.locator('#tip').isHidden())));
  await page.mouse.click(at[0] + 1, at[1] + 1);
  await check('a click selects the point there', async () => assert.equal(await selected(page), row));
  await page.click('#close');
  await check('and is undone', async () => assert.equal(await selected(page), -1));
}

async function glove() {
  let page = await open('glove.html');
  console.log(`glove: ready after ${page.took} ms, ${await page.evaluate('embla.count')} points by ${await page.evaluate('embla.painter')}`);
  /* compared with a loop of the same browser, because others may be using the machine: the best of
   * three */
  let times = Infinity;
  for (let i = 0; i < 3; i++) {
    const again = await open('glove.html');
    const loop = await again.evaluate(() => {
      const start = performance.now();
      let sum = 0;
      for (let n = 0; n < 1e8; n++) sum = (sum + n * n) % 1000003;
      return performance.now() - start + 0 * sum;
    });
    console.log(`glove: ready after ${again.took} ms, a loop takes ${Math.round(loop)} ms`);
    times = Math.min(times, again.took / loop);
    await again.close();
  }
  await check('ready in time', () => assert(slow || times < 5, `${times} times the loop`));
  await check('all points', async () => assert.equal(await page.evaluate('embla.count'), slow ? 4000 : 50000));
  await check('they are drawn', async () => assert(await drawn(page) > 20000));
  await keep(page, 'light');
  await communities(page);
  await find(page);
  await move(page);
  await click(page);
  await page.click('#theme label:nth-child(3)');
  await check('dark by the switch', async () => assert.equal(await page.evaluate('getComputedStyle(document.body).backgroundColor'), 'rgb(18, 20, 25)'));
  await settle(page);
  await keep(page, 'dark');
  await page.click('#color label:nth-child(1)');
  await settle(page);
  await check('coloured by norm', async () => assert(await page.isVisible('#scale')));
  await close(page, 'glove');
  page = await open('glove.html', { scheme: 'dark', query: '#654' });
  await check('dark by the system', async () => assert.equal(await page.getAttribute('html', 'data-theme'), 'dark'));
  await check('a row in the address', async () => assert.equal(await page.textContent('#word'), 'king'));
  await close(page, 'dark');
  page = await open('glove.html', { width: 400, height: 800 });
  await keep(page, 'narrow');
  await page.fill('#query', 'queen');
  await page.keyboard.press('Enter');
  await settle(page);
  await check('narrow: nothing is cut off', async () => assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 400));
  await check('narrow: the row is there', async () => assert(await page.locator('#near button').first().isVisible()));
  await keep(page, 'narrow-queen');
  await close(page, 'narrow');
  page = await open('glove.html', { query: '?canvas' });
  await check('without WebGL', async () => assert.equal(await page.evaluate('embla.painter'), 'canvas'));
  await check('it is drawn, too', async () => assert(await drawn(page) > 20000));
  await close(page, 'canvas');
}

await odd();
await small();
await labels();
await picked();
await arrows();
if (existsSync(folder + '/glove.html')) await glove();
await end();
