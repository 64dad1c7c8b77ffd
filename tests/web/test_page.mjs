/* The dashboard in a real browser against real daemons. Started by test_page.py, which makes the
 * cluster. Every check is one line; the last line is "N passed, N failed". */
import { mkdirSync, writeFileSync } from 'node:fs';
import { chromium } from 'playwright-core';
import { T, check, need, problems, run, watch } from './rig.mjs';
import { labels, live, login, shows } from './basics.mjs';
import { crowd, looks, order, wide } from './layout.mjs';
import { charts, manyRanks, ranks } from './drawn.mjs';
import { access } from './access.mjs';
import { cut, frugal, headers, heap, link } from './cuts.mjs';

mkdirSync(T.shots, { recursive: true });
const browser = await chromium.launch({
  executablePath: T.chromium,
  args: process.getuid() === 0 ? ['--no-sandbox'] : [],
});
try {
  const page = await (
    await browser.newContext({ viewport: { width: 1280, height: 900 }, colorScheme: 'light' })
  ).newPage();
  watch(page);
  await page.goto(T.url + '/');
  await headers();
  await login(page);
  await shows(page);
  await live(page);
  await labels(page);
  await looks(page);
  await wide(page);
  await crowd(page);
  await charts(page);
  await ranks(page);
  await manyRanks(page);
  await order(page);
  await access(browser, page);
  await frugal(page);
  await heap(browser, page);
  await link(browser);
  await cut(page);
  const { errors, outside, bad } = problems;
  await check('no error on the console', () => need(errors.length === 0, errors.join(' | ')));
  await check('no request to anywhere else', () => need(outside.length === 0, outside.join(' ')));
  await check('nothing missing', () => need(bad.length === 0, bad.join(' ')));
} finally {
  await browser.close();
  writeFileSync(`${T.shots}/problems.json`, JSON.stringify(problems, null, 1));
}
console.log(`${run.passed} passed, ${run.failed} failed`);
process.exitCode = run.failed ? 1 : 0;
