// SPDX-License-Identifier: Apache-2.0
// The documentation site in a browser, from files, without a network: nothing is fetched from elsewhere, no
// page is wider than a narrow screen, and the search finds names and words.
import { strict as assert } from 'node:assert';
import { check, close, end, keep, open, settle, until } from './page.mjs';

const pages = [['index', ''], ['concepts', ''], ['api/embla_store', ''], ['verbs/near', ''], ['python-api', ''],
               ['search', '?q=embla_lookup'], ['search', '?q=rotary']];

for (const scheme of ['light', 'dark'])
  for (const width of [360, 1280])
    for (const [name, query] of pages) {
      const what = `${name.replace('/', '_')}${query.replace('?q=', '_')}_${width}_${scheme}`;
      const page = await open(`site/${name}.html`, { width, height: 900, scheme, query, within: 'site/' });
      if (query)
        await check(what + ' finds pages', () => until(page, "document.querySelectorAll('ul.search li a').length > 0"));
      await settle(page);
      await check(what + ' is not wider than the screen', async () =>
        assert.ok(await page.evaluate('document.documentElement.scrollWidth') <= width));
      const paper = await page.evaluate('getComputedStyle(document.body).backgroundColor');
      await check(what + ' has the colours of the scheme', () =>
        assert.equal(Number(paper.match(/\d+/)[0]) < 128, scheme === 'dark', paper));
      await keep(page, what);
      await close(page, what);
    }
await end();
