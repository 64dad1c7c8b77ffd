/* What the tests of the page share: the cluster that test_page.py made ($PAGE_TEST, JSON: {url,
 * token, dir, moectl, nodes, gpus, jobs{train, markup, sweep}, short_recipe, shots}), one line for
 * each check, and ways to look at a page. */
import { execFileSync } from 'node:child_process';

export const T = JSON.parse(process.env.PAGE_TEST),
  WAIT = 20000,
  NO_JOB = 'j-999999',
  run = { passed: 0, failed: 0, outage: false, signedIn: false },
  problems = { errors: [], outside: [], bad: [] };

export function moectl(...args) {
  return execFileSync(T.moectl, args, { encoding: 'utf8', env: process.env });
}

export async function check(name, fn) {
  try {
    const r = await fn();
    if (r === false) throw new Error('it is not so');
    run.passed++;
    console.log('ok   ' + name);
  } catch (e) {
    run.failed++;
    console.log(
      `FAIL ${name}: ${String(e.message || e)
        .split('\n')
        .slice(0, 4)
        .join(' | ')}`,
    );
  }
}

export function need(condition, text) {
  if (!condition) throw new Error(text);
}

/* Errors on the console, requests to elsewhere and answers that should not be: `problems`. */
export function watch(page) {
  page.on('console', (m) => {
    if (m.type() !== 'error' && m.type() !== 'warning') return;
    if (m.location().url.includes(NO_JOB)) return; /* 404 is right there */
    if (run.outage || (!run.signedIn && /status of 401/.test(m.text())))
      return; /* the browser itself reports every 401 and every refused connection */
    problems.errors.push(m.text());
  });
  page.on('pageerror', (e) => problems.errors.push('uncaught: ' + e.message));
  page.on('request', (r) => {
    if (!r.url().startsWith(T.url) && !/^(data|blob|about):/.test(r.url()))
      problems.outside.push(r.url());
  });
  page.on('response', (r) => {
    if (
      r.status() >= 400 &&
      !run.outage &&
      !r.url().includes(NO_JOB) &&
      !(r.status() === 401 && !run.signedIn)
    )
      problems.bad.push(`${r.status()} ${r.url()}`);
  });
}

export const text = (page, selector) => page.locator(selector).innerText();
export const until = (page, fn, arg) =>
  page.waitForFunction(fn, arg, { timeout: WAIT, polling: 100 });

/* What the server answers, changed; without its tag, so that the page does not keep it. */
export async function alter(page, pattern, change) {
  await page.route(pattern, async (route) => {
    const headers = { ...route.request().headers() };
    delete headers['if-none-match'];
    const r = await route.fetch({ headers });
    await route.fulfill({
      status: r.status(),
      headers: { 'content-type': 'application/json' },
      json: await change(await r.json(), route.request().url()),
    });
  });
}

/* The page loads all again, as it does when it comes into view. */
export async function reload(page) {
  await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')));
}

/* Pixels of a chart's canvas that are not transparent, and how many of them are in the line's
 * colour. */
function pixels(page, id) {
  return page.evaluate((id) => {
    const c = document.querySelector(`#${id} canvas`);
    if (!c) return { drawn: 0, line: 0 }; // just being drawn anew
    const copy = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
    copy.canvas.width = c.width;
    copy.canvas.height = c.height;
    copy.drawImage(c, 0, 0);
    const d = copy.getImageData(0, 0, c.width, c.height).data;
    const hex = getComputedStyle(document.documentElement).getPropertyValue('--accent').trim(),
      want = [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
    let drawn = 0,
      line = 0;
    for (let i = 0; i < d.length; i += 4) {
      if (d[i + 3] > 0) drawn++;
      if (d[i + 3] > 200 && want.every((w, k) => Math.abs(d[i + k] - w) < 12)) line++;
    }
    return { drawn, line };
  }, id);
}

/* A chart may be drawn anew at any moment. */
export async function lineIn(page, id) {
  for (const end = Date.now() + WAIT; ;) {
    const p = await pixels(page, id);
    if (p.drawn > 500 && p.line > 50) return;
    need(Date.now() < end, `${id}: no line in the accent colour: ${JSON.stringify(p)}`);
    await page.evaluate(
      () => new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r))),
    );
  }
}

export async function pixelsOf(page, id) {
  return page.evaluate((id) => {
    const c = document.getElementById(id),
      d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
    let drawn = 0;
    for (let i = 3; i < d.length; i += 4) drawn += d[i] > 0;
    return drawn;
  }, id);
}

export function rowOf(page, table, key) {
  return page.evaluate(
    ([t, k]) => {
      const r = document.querySelector(`#${t} tr[data-key="${k}"]`);
      return r ? [...r.cells].map((c) => c.textContent) : null;
    },
    [table, key],
  );
}

export async function shoot(page, name) {
  await page.screenshot({ path: `${T.shots}/${name}.png`, fullPage: true, timeout: 120000 });
}
