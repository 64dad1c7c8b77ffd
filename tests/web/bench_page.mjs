/* Measures the page in a real browser. Started by tests/bench/page.py, which says where everything
 * is in $PAGE_BENCH (JSON: {url, token, chromium, job, recipe, n, soak_s}); prints one JSON
 * document: a list of samples for each figure. */
import { chromium } from 'playwright-core';

const B = JSON.parse(process.env.PAGE_BENCH),
  WAIT = 60000,
  out = {};
const put = (name, v) => (out[name] ||= []).push(v);

/* In the page before its scripts: when the table of jobs has its first row, and when the picture of
 * ranks is drawn, each at the frame after that. */
function marks() {
  window.at = {};
  const mark = (name) => {
    if (name in window.at) return;
    window.at[name] = null;
    requestAnimationFrame(() => setTimeout(() => (window.at[name] = performance.now())));
  };
  new MutationObserver(() => {
    if (document.querySelector('#jobs tbody tr')) mark('jobs');
    if (document.getElementById('matrix-text')?.textContent) mark('ranks');
  }).observe(document, { childList: true, subtree: true, characterData: true });
}

/* What a browser that signed in keeps. */
async function signIn(browser) {
  const context = await browser.newContext(),
    signed = await context.request.post(B.url + '/v1/session', {
      headers: { Authorization: 'Bearer ' + B.token },
    });
  if (!signed.ok()) throw new Error(`sign-in: ${signed.status()}`);
  const kept = await context.storageState();
  await context.close();
  return kept;
}

async function visit(browser, storageState) {
  const context = await browser.newContext({
    storageState,
    viewport: { width: 1280, height: 900 },
  });
  const page = await context.newPage(),
    cdp = await context.newCDPSession(page),
    files = new Map();
  let bytes = 0;
  await cdp.send('Network.enable');
  cdp.on('Network.requestWillBeSent', (r) => files.set(r.requestId, r.request.url));
  cdp.on('Network.loadingFinished', (r) => {
    if (!files.get(r.requestId)?.includes('/v1/')) bytes += r.encodedDataLength;
  });
  await page.addInitScript(marks);
  await page.goto(`${B.url}/#${B.job}`);
  await page.waitForFunction(() => window.at.jobs && window.at.ranks, null, { timeout: WAIT });
  return { context, page, cdp, bytes: () => bytes };
}

/* From the time of an event, by moed's clock, to the frame that shows it: the same machine's. */
async function eventToPixel(page) {
  await page.evaluate(() => {
    const list = document.getElementById('events'),
      before = log.lastSeq;
    window.shown = new Promise((resolve) => {
      new MutationObserver((_, o) => {
        const li = [...list.children].find((l) => /job.submitted/.test(l.textContent));
        if (!li || Number(li.dataset.seq) <= before) return;
        const event = Date.parse(li.querySelector('time').dateTime);
        o.disconnect();
        requestAnimationFrame(() => setTimeout(() => resolve(Date.now() - event)));
      }).observe(list, { childList: true });
    });
  });
  const r = await fetch(B.url + '/v1/jobs', {
    method: 'POST',
    headers: { Authorization: 'Bearer ' + B.token, 'Content-Type': 'application/json' },
    body: JSON.stringify(B.recipe),
  });
  if (!r.ok) throw new Error(`submit: ${r.status} ${await r.text()}`);
  return page.evaluate(() => window.shown);
}

async function heapMib(cdp) {
  await cdp.send('HeapProfiler.collectGarbage');
  const { usedSize } = await cdp.send('Runtime.getHeapUsage');
  return usedSize / 2 ** 20;
}

const browser = await chromium.launch({
  executablePath: B.chromium,
  args: process.getuid() === 0 ? ['--no-sandbox'] : [],
});
try {
  const kept = await signIn(browser);
  for (let i = 0; i < B.n; i++) {
    const { context, page, bytes } = await visit(browser, kept),
      at = await page.evaluate(() => ({
        ...window.at,
        paint: performance.getEntriesByName('first-contentful-paint')[0].startTime,
      }));
    put('files', bytes() / 1024);
    put('first_paint', at.paint);
    put('first_jobs', at.jobs);
    put('first_ranks', at.ranks);
    put('draw_ranks', await page.evaluate(async () => {
      const t = performance.now();
      drawMatrix();
      await new Promise((r) => requestAnimationFrame(() => setTimeout(r)));
      return performance.now() - t;
    }));
    await context.close();
  }
  const { page, cdp } = await visit(browser, kept);
  for (let i = 0; i < B.n; i++) {
    put('event_to_pixel', await eventToPixel(page));
    await page.waitForTimeout(1000); // what the event had loaded
  }
  for (let i = 0; i < Math.max(5, B.n); i++) {
    put('heap', await heapMib(cdp));
    await new Promise((r) => setTimeout(r, (B.soak_s * 1000) / B.n));
  }
} finally {
  await browser.close();
}
console.log(JSON.stringify(out));
