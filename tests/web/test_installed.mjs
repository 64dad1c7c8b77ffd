/* The page of an installed controller, in a real browser: $PAGE_TEST is {link, job, chromium}.
 * Prints nothing; what is wrong becomes the exit status and a line. */
import { chromium } from 'playwright-core';

const T = JSON.parse(process.env.PAGE_TEST),
  WAIT = 30000,
  bad = [];
const browser = await chromium.launch({
  executablePath: T.chromium,
  args: process.getuid() === 0 ? ['--no-sandbox'] : [],
});
try {
  const page = await browser.newPage();
  page.on('response', (r) => {
    if (r.status() >= 400 && r.status() !== 401) bad.push(`${r.status()} ${r.url()}`);
  });
  page.on('pageerror', (e) => bad.push(e.message));
  await page.goto(T.link);
  await page.waitForSelector(`#jobs tr[data-key="${T.job}"] .state-completed`, { timeout: WAIT });
  await page.waitForSelector('#nodes tbody .state-up', { timeout: WAIT });
  if (bad.length) throw new Error(bad.join(' '));
} catch (e) {
  console.log(e.message.split('\n')[0]);
  process.exitCode = 1;
} finally {
  await browser.close();
}
