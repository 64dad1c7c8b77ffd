/* A hidden page, the link that signs in, and a controller that dies. */
import { spawnSync } from 'node:child_process';
import { T, WAIT, run, moectl, check, need, text, until, rowOf, shoot } from './rig.mjs';

/* An idle tab asks for little; a hidden one for nothing. */
export async function frugal(page) {
  const seen = [];
  page.on('request', (r) => seen.push(r.url()));
  await check('a page that is hidden asks for nothing', async () => {
    await page.evaluate(() => {
      Object.defineProperty(document, 'hidden', { value: true, configurable: true });
      document.dispatchEvent(new Event('visibilitychange'));
    });
    await new Promise((r) => setTimeout(r, 1000)); // what was under way
    seen.length = 0;
    await new Promise((r) => setTimeout(r, 3000));
    need(seen.length === 0, seen.join(' '));
    await page.evaluate(() => {
      delete document.hidden;
      document.dispatchEvent(new Event('visibilitychange'));
    });
    await until(page, () => state.stream && state.stream.readyState === EventSource.OPEN);
  });
}

/* What a week brings, at once: events, samples, loads, new charts. What is left of a second week
 * after a collection is what was left of the first. */
export async function heap(browser, page) {
  const context = await browser.newContext(),
    mine = await context.newPage(),
    cdp = await context.newCDPSession(mine);
  await context.addCookies(await page.context().cookies());
  await mine.goto(`${T.url}/#${T.jobs.markup}`); // a job that is over: nothing else moves
  await until(mine, (id) => state.doc?.id === id && log.lastSeq > 0, T.jobs.markup);
  const week = async (k) => {
    await mine.evaluate(async (k) => {
      const e = { job: 'j-9', node: 'n', attempt: 1, rank: null, type: 'node.up' };
      e.time = '2026-01-01T00:00:00Z';
      for (let i = 0; i < 5000; i++)
        addEvent({ ...e, seq: 1e9 * k + i, message: `event ${k} ${i}` });
      for (let i = 0; i < 50; i++) {
        redraw();
        for (const name of ['jobs', 'nodes', 'job', 'ranks', 'curve', 'matrix'])
          await topics[name].load();
      }
    }, k);
    await cdp.send('HeapProfiler.collectGarbage');
    return (await cdp.send('Runtime.getHeapUsage')).usedSize / 2 ** 20;
  };
  await check('the heap is flat', async () => {
    await week(1);
    const [first, second] = [await week(2), await week(3)];
    need(second < first + 0.3, `${first.toFixed(2)} MiB, then ${second.toFixed(2)} MiB`);
  });
  await context.close();
}

/* The link of `moectl local up`, in a browser that nobody signed in. */
export async function link(browser) {
  const up = spawnSync(T.moectl, ['local', 'up', '--dir', T.dir], {
      encoding: 'utf8',
      env: process.env,
    }),
    address = (up.stderr.match(/^dashboard: (\S+)/m) || [])[1];
  const page = await (await browser.newContext()).newPage();
  await check('the link of `local up` signs in, and leaves the address', async () => {
    need(
      address && address.startsWith(T.url + '/#sign-in=') && !address.includes(T.token),
      up.stderr,
    );
    await page.goto(address);
    await page.waitForSelector(`#jobs tr[data-key="${T.jobs.train}"]`, { timeout: WAIT });
    need(!page.url().includes('sign-in'), page.url());
  });
  const other = await (await browser.newContext()).newPage();
  await check('it works once, and says so', async () => {
    await other.goto(address);
    await other.locator('#login').waitFor({ timeout: WAIT });
    await until(other, () =>
      /used already/.test(document.getElementById('login-error').textContent),
    );
  });
  await page.context().close();
  await other.context().close();
}

export async function cut(page) {
  const status = JSON.parse(moectl('local', 'status', '--dir', T.dir, '--json'));
  run.outage = true;
  process.kill(status.moed.pid, 'SIGKILL');
  await check('kill -9 of the controller: a banner says so, old data stays', async () => {
    await page.locator('#banner').waitFor({ timeout: WAIT });
    need(/does not answer/.test(await text(page, '#banner')), await text(page, '#banner'));
    need((await page.locator('#jobs tbody tr').count()) > 0, 'the jobs are gone');
  });
  await shoot(page, '3-banner');
  const again = spawnSync(T.moectl, ['local', 'up', '--dir', T.dir], {
    encoding: 'utf8',
    env: process.env,
  });
  await check('the controller is started again on the same port', () =>
    need(again.status === 0, again.stderr),
  );
  await check('the banner goes and the iteration moves on', async () => {
    await page.locator('#banner').waitFor({ state: 'hidden', timeout: WAIT });
    run.outage = false;
    const before = (await rowOf(page, 'jobs', T.jobs.train))[5];
    await until(
      page,
      ([id, was]) =>
        document.querySelector(`#jobs tr[data-key="${id}"]`).cells[5].textContent !== was,
      [T.jobs.train, before],
    );
  });
  await check('the event stream carries on without gap or repetition', async () => {
    const id = JSON.parse(moectl('submit', T.short_recipe, '--json')).id;
    await until(
      page,
      (id) => document.getElementById('events').textContent.includes('job.completed ' + id),
      id,
    );
    const seqs = (
      await page.$$eval('#events li', (ls) => ls.map((l) => [l.dataset.from, l.dataset.seq]))
    ).reverse();
    need(
      seqs.length > 5 && seqs.every(([from], i) => i === 0 || Number(from) === +seqs[i - 1][1] + 1),
      seqs.join(' '),
    );
  });
}

export async function headers() {
  await check('security headers of the page', async () => {
    const r = await fetch(T.url + '/'),
      csp = r.headers.get('content-security-policy') || '';
    need(
      /default-src '(self|none)'/.test(csp) && !/unsafe/.test(csp),
      'content-security-policy: ' + csp,
    );
    need(r.headers.get('x-content-type-options') === 'nosniff', 'no nosniff');
  });
}
