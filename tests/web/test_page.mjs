/* The dashboard in a real browser against real daemons. Started by test_page.py, which makes the
 * cluster and says where everything is in $PAGE_TEST (JSON):
 * {url, token, dir, moectl, nodes, gpus, jobs{train, markup}, short_recipe, shots}. Every check is
 * one line; the last line is "N passed, N failed". */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { chromium } from 'playwright-core';

const T = JSON.parse(process.env.PAGE_TEST),
  WAIT = 20000,
  NO_JOB = 'j-999999';
let passed = 0,
  failed = 0,
  outage = false,
  signedIn = false;
const errors = [],
  outside = [],
  bad = [];

function moectl(...args) {
  return execFileSync(T.moectl, args, { encoding: 'utf8', env: process.env });
}

async function check(name, fn) {
  try {
    const r = await fn();
    if (r === false) throw new Error('it is not so');
    passed++;
    console.log('ok   ' + name);
  } catch (e) {
    failed++;
    console.log(
      `FAIL ${name}: ${String(e.message || e)
        .split('\n')
        .slice(0, 4)
        .join(' | ')}`,
    );
  }
}

function need(condition, text) {
  if (!condition) throw new Error(text);
}

function watch(page) {
  page.on('console', (m) => {
    if (m.type() !== 'error' && m.type() !== 'warning') return;
    if (m.location().url.includes(NO_JOB)) return; /* 404 is right there */
    if (outage || (!signedIn && /status of 401/.test(m.text())))
      return; /* the browser itself reports every 401 and every refused connection */
    errors.push(m.text());
  });
  page.on('pageerror', (e) => errors.push('uncaught: ' + e.message));
  page.on('request', (r) => {
    if (!r.url().startsWith(T.url) && !/^(data|blob|about):/.test(r.url())) outside.push(r.url());
  });
  page.on('response', (r) => {
    if (
      r.status() >= 400 &&
      !outage &&
      !r.url().includes(NO_JOB) &&
      !(r.status() === 401 && !signedIn)
    )
      bad.push(`${r.status()} ${r.url()}`);
  });
}

const text = (page, selector) => page.locator(selector).innerText();
const until = (page, fn, arg) => page.waitForFunction(fn, arg, { timeout: WAIT, polling: 100 });

/* What the server answers, changed; without its tag, so that the page does not keep it. */
async function alter(page, pattern, change) {
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
async function reload(page) {
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
async function lineIn(page, id) {
  for (const end = Date.now() + WAIT; ;) {
    const p = await pixels(page, id);
    if (p.drawn > 500 && p.line > 50) return;
    need(Date.now() < end, `${id}: no line in the accent colour: ${JSON.stringify(p)}`);
    await page.evaluate(
      () => new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r))),
    );
  }
}

function rowOf(page, table, key) {
  return page.evaluate(
    ([t, k]) => {
      const r = document.querySelector(`#${t} tr[data-key="${k}"]`);
      return r ? [...r.cells].map((c) => c.textContent) : null;
    },
    [table, key],
  );
}

async function shoot(page, name) {
  await page.screenshot({ path: `${T.shots}/${name}.png`, fullPage: true });
}

async function login(page) {
  await check('without a credential there is a sign-in form and no data', async () => {
    await page.locator('#login').waitFor({ timeout: WAIT });
    need(await page.locator('#jobs').isHidden(), 'the jobs table is shown');
    need(!(await page.content()).includes(T.jobs.train), 'data is on the page');
  });
  await shoot(page, '1-login');
  await check('a wrong token is refused in words', async () => {
    await page.fill('#token', 'not-a-token');
    await page.keyboard.press('Enter');
    await until(page, () =>
      document.getElementById('login-error').textContent.includes('not valid'),
    );
  });
  await check('a valid token opens the page', async () => {
    await page.fill('#token', T.token);
    await page.keyboard.press('Enter');
    await page.locator('#login').waitFor({ state: 'hidden', timeout: WAIT });
    signedIn = true;
  });
  await check(
    'the cookie is HttpOnly and SameSite=Strict; nothing is kept in storage',
    async () => {
      const cookies = await page.context().cookies();
      need(
        cookies.length === 1 && cookies[0].httpOnly && cookies[0].sameSite === 'Strict',
        JSON.stringify(cookies),
      );
      need(
        (await page.evaluate(() => localStorage.length + sessionStorage.length)) === 0,
        'storage is used',
      );
    },
  );
}

async function shows(page) {
  await check('cluster line', () =>
    until(
      page,
      (t) =>
        document.getElementById('cluster').textContent.startsWith(`${t.nodes} nodes up`) &&
        document.getElementById('cluster').textContent.includes(`${t.gpus} GPUs`),
      T,
    ),
  );
  await check('the training job is listed, running', () =>
    until(
      page,
      (id) => document.querySelector(`#jobs tr[data-key="${id}"] .state-running`),
      T.jobs.train,
    ),
  );
  await check('choosing a job shows it', async () => {
    await page.click(`#jobs tr[data-key="${T.jobs.train}"] button`);
    await until(
      page,
      (id) => document.getElementById('job-title').textContent.startsWith(id + ' '),
      T.jobs.train,
    );
    need((await page.url()).endsWith('#' + T.jobs.train), 'the address does not name the job');
  });
  await check('the iteration moves without a reload', async () => {
    const before = (await rowOf(page, 'jobs', T.jobs.train))[5];
    await until(
      page,
      ([id, was]) =>
        document.querySelector(`#jobs tr[data-key="${id}"]`).cells[5].textContent !== was,
      [T.jobs.train, before],
    );
  });
  await check('charts have a line', async () => {
    for (const id of ['chart-loss', 'chart-step']) {
      await lineIn(page, id);
    }
  });
  await check('nodes are up with their GPUs', async () => {
    await until(page, (n) => document.querySelectorAll('#nodes tbody tr').length === n, T.nodes);
    const states = await page.locator('#nodes tbody td:nth-child(2)').allInnerTexts();
    need(
      states.every((s) => s === 'up'),
      states.join(' '),
    );
  });
  await check('ranks with node, pid and binding', async () => {
    const rows = await page.locator('#ranks tbody tr').allInnerTexts();
    need(rows.length === T.train_ranks && rows.every((r) => /running/.test(r)), rows.join(' / '));
  });
  await check('checkpoints of the job', () =>
    until(
      page,
      () =>
        document.querySelectorAll('#checkpoints .state-complete, #checkpoints .state-verified')
          .length > 0,
    ),
  );
  await check('GPU time adds up to the whole bar', async () => {
    const widths = await page.$$eval('#ledger rect', (rs) =>
      rs.map((r) => parseFloat(r.getAttribute('width'))),
    );
    need(
      widths.length > 0 && Math.abs(widths.reduce((a, b) => a + b, 0) - 1000) < 1,
      JSON.stringify(widths),
    );
  });
  await check('an incident is shown', () =>
    until(page, () => /attempt 1: .*; /.test(document.getElementById('incidents').textContent)),
  );
  await check('events of what happened before', () =>
    until(
      page,
      (id) => document.getElementById('events').textContent.includes('job.running ' + id),
      T.jobs.train,
    ),
  );
}

async function live(page) {
  await check('a new job appears by its event', async () => {
    const id = JSON.parse(moectl('submit', T.short_recipe, '--json')).id;
    await until(
      page,
      (id) =>
        document.getElementById('events').textContent.includes('job.submitted ' + id) &&
        document.querySelector(`#jobs tr[data-key="${id}"]`),
      id,
    );
    await until(
      page,
      (id) => document.querySelector(`#jobs tr[data-key="${id}"] .state-completed`),
      id,
    );
  });
  await check('focus survives refreshes', async () => {
    await page.locator(`#jobs tr[data-key="${T.jobs.train}"] button`).focus();
    const mark = await page.evaluate(() => {
      document.activeElement.dataset.mark = 'x';
      return document.getElementById('jobs').innerText;
    });
    await until(page, (was) => document.getElementById('jobs').innerText !== was, mark);
    need(
      await page.evaluate(() => document.activeElement.dataset.mark === 'x'),
      'it went elsewhere',
    );
  });
  await check('what a rank prints stays text', async () => {
    await page.evaluate((id) => {
      location.hash = id;
    }, T.jobs.markup);
    await until(
      page,
      (id) => document.getElementById('job-title').textContent.startsWith(id + ' '),
      T.jobs.markup,
    );
    await until(page, () => document.body.textContent.includes('<img src=x onerror='));
    await until(page, () => !document.getElementById('job-evidence-box').hidden);
    need(
      await page.evaluate(() => !window.harmed && !document.querySelector('main img')),
      'markup became an element',
    );
  });
  await check('an unknown job in the address does no harm', async () => {
    await page.evaluate((id) => {
      location.hash = id;
    }, NO_JOB);
    await page.waitForResponse((r) => r.url().includes('/v1/jobs/' + NO_JOB), { timeout: WAIT });
    await until(page, () => document.querySelectorAll('#jobs tbody tr').length > 0);
    await page.evaluate((id) => {
      location.hash = id;
    }, T.jobs.train);
    await until(
      page,
      (id) => document.getElementById('job-title').textContent.startsWith(id + ' '),
      T.jobs.train,
    );
  });
}

async function looks(page) {
  for (const scheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme: scheme });
    await check(`${scheme} scheme: background, text and chart change with it`, async () => {
      const rgb = (await page.evaluate(() => getComputedStyle(document.body).backgroundColor))
        .match(/\d+/g)
        .map(Number);
      need(scheme === 'dark' ? rgb[0] < 60 : rgb[0] > 200, rgb.join(','));
      await until(
        page,
        () =>
          document.querySelector('#chart-loss canvas') &&
          document.querySelector('#chart-step canvas'),
      );
      await lineIn(page, 'chart-loss');
    });
    for (const width of [1280, 360]) {
      await page.setViewportSize({ width, height: 900 });
      await check(`${scheme} scheme at ${width} px: nothing sticks out`, async () => {
        await until(
          page,
          () => document.documentElement.scrollWidth <= document.documentElement.clientWidth,
        );
      });
      await shoot(page, `2-${scheme}-${width}`);
    }
    await page.setViewportSize({ width: 1280, height: 900 });
  }
}

/* Long as on a real node: the CPUs of a rank, and why it is not bound as it should be; a loss that
 * is no number. */
async function wide(page) {
  await alter(page, '**/v1/jobs/*/ranks*', (doc) => {
    for (const k of doc.items)
      Object.assign(k, {
        node: 'mi355x-rack07-node12',
        cpus: '0-11,96-107,192-203',
        bind_verified: false,
        bind_note: '3 of 91 threads run on CPUs 12-23, which are not those of its GPU',
      });
    return doc;
  });
  await alter(page, '**/v1/jobs?*', (doc) => {
    for (const j of doc.items) if (j.id === T.jobs.markup) j.loss = 'NaN'; // no stream tells of it
    return doc;
  });
  const plan = {
    text: 'step 8.04 s, memory 232.3 GB planned; set against the run after 50 steady steps',
    within: null,
    chosen: {
      tp: 1,
      pp: 12,
      vpp: 8,
      ep: 8,
      etp: 1,
      cp: 2,
      dp: 32,
      micro: 1,
      sharding: 'zero1',
      schedule: 'interleaved',
    },
  };
  await alter(page, `**/v1/jobs/${T.jobs.train}`, (doc) => ({ ...doc, plan }));
  await reload(page);
  await check('a plan is shown: what was chosen and what is promised', () =>
    until(page, () =>
      document
        .getElementById('job-plan')
        .innerText.startsWith(
          'Plan: tp 1 pp 12 vpp 8 ep 8 etp 1 cp 2 dp 32, zero1, interleaved, micro-batch 1; ' +
            'step 8.04 s, memory',
        ),
    ),
  );
  await until(page, () =>
    /mi355x-rack07-node12/.test(document.getElementById('ranks').textContent),
  );
  for (const width of [1100, 1300, 1600]) {
    await page.setViewportSize({ width, height: 900 });
    await check(`at ${width} px no table is cut`, () =>
      until(page, () =>
        [...document.querySelectorAll('.scroll')].every((e) => e.scrollWidth <= e.clientWidth),
      ),
    );
    await shoot(page, `2-wide-${width}`);
  }
  await check('a loss that is no number stands out', () =>
    until(
      page,
      (id) =>
        document.querySelector(`#jobs tr[data-key="${id}"] td.num.state-failed`)?.textContent ===
        'NaN',
      T.jobs.markup,
    ),
  );
  await page.mouse.move(0, 0);
  await check('charts without a cursor show the newest values', () =>
    until(page, () => /loss:?\s*[0-9.]+/.test(document.getElementById('chart-loss').innerText)),
  );
  await page.unrouteAll({ behavior: 'wait' });
  await page.setViewportSize({ width: 1280, height: 900 });
}

/* More of everything than the page shows: what runs comes first, and what is left out is
 * counted. */
async function crowd(page) {
  await page.evaluate((id) => {
    location.hash = id;
  }, T.jobs.train);
  const job = await (
    await fetch(`${T.url}/v1/jobs/${T.jobs.train}`, {
      headers: { Authorization: 'Bearer ' + T.token },
    })
  ).json();
  await alter(page, '**/v1/jobs?state=queued*', () => ({
    items: Array.from({ length: 200 }, (_, i) => ({
      ...job,
      id: `j-${5000 + i}`,
      name: 'crowd',
      state: 'queued',
      loss: null,
    })),
    next: null,
  }));
  await alter(page, '**/v1/cluster', (doc) => {
    doc.jobs.queued = 1234;
    doc.nodes.up = 12500;
    return doc;
  });
  await alter(page, '**/v1/jobs/*/ranks*', (doc) => ({ ...doc, next: '3' }));
  await alter(page, `**/v1/jobs/${T.jobs.train}`, (doc) => ({ ...doc, ranks: 1024 }));
  for (const path of [
    `**/v1/jobs/${T.jobs.train}/metrics*`,
    `**/v1/jobs/${T.jobs.train}/checkpoints*`,
    '**/v1/events?last=1',
  ])
    await alter(page, path, (doc) => ({ ...doc, earlier: 4321 }));
  await page.evaluate(() => dropCurves()); // so that the whole of it is asked for
  await reload(page);
  await check('a running job stands above 200 newer ones that wait', () =>
    until(
      page,
      (id) =>
        document.querySelectorAll('#jobs tbody tr').length > 200 &&
        document.querySelector('#jobs tbody tr').dataset.key === id,
      T.jobs.train,
    ),
  );
  await check('jobs that are not shown are counted', () =>
    until(page, () =>
      /^1,034 more are not shown: 1,034 queued /.test(
        document.getElementById('jobs-more').innerText,
      ),
    ),
  );
  await check('ranks that are not shown are counted', () =>
    until(
      page,
      (n) =>
        document
          .getElementById('ranks-more')
          .innerText.startsWith(`${(1024 - n).toLocaleString('en-US')} more ranks`),
      T.train_ranks,
    ),
  );
  await check('nodes that are not shown are counted', () =>
    until(
      page,
      (n) =>
        document
          .getElementById('nodes-more')
          .innerText.startsWith(`${(12500 - n).toLocaleString('en-US')} more nodes`),
      T.nodes,
    ),
  );
  await check('iterations, checkpoints and events that are not shown are counted', () =>
    until(
      page,
      () =>
        /4,321 iterations of earlier attempts are not shown/.test(
          document.getElementById('charts-more').innerText,
        ) &&
        document
          .getElementById('checkpoints-more')
          .innerText.startsWith('4,321 earlier checkpoints') &&
        /^4,[0-9]{3} earlier events are not shown/.test(
          document.getElementById('events-more').innerText,
        ),
    ),
  );
  await shoot(page, '2-crowd');
  await page.unrouteAll({ behavior: 'wait' });
  await page.evaluate(() => dropCurves());
  await reload(page);
  await check('without more nothing is said of it', () =>
    until(page, () =>
      ['jobs-more', 'ranks-more', 'nodes-more', 'checkpoints-more'].every(
        (id) => document.getElementById(id).hidden,
      ) && !/earlier/.test(document.getElementById('charts-more').textContent),
    ),
  );
}

/* What a chart shows is of this job and of the attempt that runs. */
async function charts(page) {
  const series = (n) => [
    { name: 'loss', last: Array.from({ length: n }, (_, i) => 5 - i / 50) },
    { name: 'step_ms', last: Array(n).fill(40) },
  ];
  const document_ = (attempts, iteration) => ({
    decimated: false,
    attempts,
    iteration,
    count: iteration.map(() => 1),
    series: iteration.length ? series(iteration.length) : [],
    next: '9.999999', // no sample is newer than this
    earlier: 0,
    left_out: 0,
  });
  const upTo = (n, from = 1) => Array.from({ length: n - from + 1 }, (_, i) => from + i);
  const serve = async (job, doc) => {
    await page.unrouteAll({ behavior: 'wait' });
    await alter(page, `**/v1/jobs/${T.jobs.train}`, (was) => ({ ...was, ...job }));
    await alter(page, `**/v1/jobs/${T.jobs.train}/metrics*`, (was, url) =>
      url.includes('after=')
        ? document_(
            doc.attempts.map((a) => ({ ...a, at: null })),
            [],
          )
        : doc,
    );
    await page.evaluate(() => dropCurves());
    await reload(page);
  };
  await page.mouse.move(0, 0);
  const first = { attempt: 1, first: 1, last: 100, counted: 20, at: 0 };
  await serve({ attempt: 3, resume: 20 }, document_([first], upTo(100)));
  await check('after a restart the value of the dead attempt is not the newest', () =>
    until(page, () => document.querySelector('#chart-loss .u-value')?.textContent === '--'),
  );
  await check('what is run again is said', () =>
    until(page, () =>
      /80 iterations were lost/.test(document.getElementById('charts-more').textContent),
    ),
  );
  await serve(
    { attempt: 3, resume: 20 },
    document_(
      [first, { attempt: 3, first: 21, last: 22, counted: 22, at: 100 }],
      upTo(100).concat([21, 22]),
    ),
  );
  await check('the new attempt goes on where it resumed', () =>
    until(page, () => document.querySelector('#chart-loss .u-value')?.textContent === '22'),
  );
  await check('what was in vain is not in the line', async () =>
    need(
      (await page.evaluate(() => curve.plots['chart-loss'].u.data[0].join(','))) ===
        upTo(22).join(','),
      'the line has other iterations',
    ),
  );
  await serve({ attempt: 1, resume: -1 }, document_([], []));
  await check('a job without iterations has no charts', () =>
    until(
      page,
      () =>
        document.getElementById('charts').hidden &&
        !document.getElementById('charts-empty').hidden &&
        !document.querySelector('#chart-loss canvas'),
    ),
  );
  await page.unrouteAll({ behavior: 'wait' });
  await page.evaluate(() => dropCurves());
  await reload(page);
  await check('they come back with data', () =>
    until(
      page,
      () =>
        !document.getElementById('charts').hidden && document.querySelector('#chart-loss canvas'),
    ),
  );
  await check('the curve is of both attempts, and grows without being asked for anew', async () => {
    const whole = await page.evaluate(() => [
      curve.doc.attempts.length,
      curve.plots['chart-loss'].u.data[0].length,
    ]);
    need(whole[0] === 2, `${whole[0]} attempts`);
    await until(page, (n) => curve.plots['chart-loss'].u.data[0].length > n + 1, whole[1]);
  });
  await check('a logarithmic axis and another third curve', async () => {
    await page.check('#curve-log');
    await until(page, () => curve.plots['chart-loss'].u.scales.y.distr === 3);
    await page.selectOption('#curve-other', 'grad_norm');
    await until(
      page,
      () => document.getElementById('chart-other-title').textContent === 'gradient norm',
    );
    await page.uncheck('#curve-log');
  });
}

/* All ranks as a picture, and as a table behind it. */
async function ranks(page) {
  await check('the picture of all ranks: what they do, in words too', async () => {
    await until(page, () =>
      /stepping|saving/.test(document.getElementById('matrix-text').innerText),
    );
    need((await pixelsOf(page, 'matrix')) > 200, 'nothing is drawn');
  });
  const n = 1024,
    sizes = { tp: 4, pp: 8, ep: 4, cp: 1, dp: 32 };
  await alter(page, `**/v1/jobs/${T.jobs.train}/matrix*`, (doc) => ({
    ...doc,
    metric: 'step_ms',
    unit: 'ms',
    ranks: n,
    sizes,
    letters: undefined,
    legend: undefined,
    values: Array.from({ length: n }, (_, i) => (i === 700 ? 3600 : 2800 + (i % 7))),
    worst: [
      { rank: 700, node: 'node-2', gpu: 4, coords: null, value: 3600, median: 2803, score: 14.2 },
    ],
  }));
  await page.selectOption('#matrix-metric', 'step_ms');
  await check('a rank that stands out of its stage is named', () =>
    until(page, () => {
      const row = document.querySelector('#matrix-worst tbody tr');
      return row && row.cells[0].textContent === '700' && /pp 5/.test(row.cells[3].textContent);
    }),
  );
  await check('the pointer tells which rank is where', async () => {
    await page.hover('#matrix', { position: { x: 50, y: 2 } });
    await until(page, () =>
      /^rank 0 \(pp 0 dp 0 cp 0 ep 0 tp 0\): 2,800.0 ms/.test(
        document.getElementById('matrix-point').textContent,
      ),
    );
  });
  await shoot(page, '2-ranks');
  await page.emulateMedia({ colorScheme: 'dark' });
  await shoot(page, '2-ranks-dark');
  await page.emulateMedia({ colorScheme: 'light' });
  await page.unrouteAll({ behavior: 'wait' });
  await page.selectOption('#matrix-metric', 'doing');
}

async function pixelsOf(page, id) {
  return page.evaluate((id) => {
    const c = document.getElementById(id),
      d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
    let drawn = 0;
    for (let i = 3; i < d.length; i += 4) drawn += d[i] > 0;
    return drawn;
  }, id);
}

/* 127 events of one kind are one line, nodes that are bad come first, a job that failed shows what
 * it left. */
async function order(page) {
  await check('events of many ranks are one line', async () => {
    await page.evaluate(() => {
      const e = { job: 'j-1', node: 'n', attempt: 7, type: 'rank.exited' };
      e.time = '2026-01-01T00:00:00Z';
      for (let i = 0; i < 127; i++)
        addEvent({ ...e, seq: log.lastSeq + 1, rank: i, message: 'killed by SIGKILL' });
    });
    const line = await page.locator('#events li').first().innerText();
    need(/\u00d7 127 ranks \(0-126\)/.test(line), line);
    await page.evaluate(() => {
      log.lastSeq -= 127;
      log.total -= 127;
      log.folded -= 126;
      document.getElementById('events').firstElementChild.remove();
    });
  });
  await alter(page, '**/v1/nodes?*', (doc) => ({
    ...doc,
    items: ['node-10', 'node-2', 'node-7', 'node-1'].map((name) => ({
      ...doc.items[0],
      name,
      state: name === 'node-7' ? 'down' : 'up',
    })),
  }));
  await reload(page);
  await check('nodes: bad ones first, then in their order', () =>
    until(
      page,
      () =>
        [...document.querySelectorAll('#nodes tbody tr')].map((r) => r.dataset.key).join(' ') ===
        'node-7 node-1 node-2 node-10',
    ),
  );
  await page.unrouteAll({ behavior: 'wait' });
  await reload(page);
}

/* An idle tab asks for little; a hidden one for nothing. */
async function frugal(page) {
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

/* The link of `moectl local up`, in a browser that nobody signed in. */
async function link() {
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

async function cut(page) {
  const status = JSON.parse(moectl('local', 'status', '--dir', T.dir, '--json'));
  outage = true;
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
    outage = false;
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

async function headers() {
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
  await looks(page);
  await wide(page);
  await crowd(page);
  await charts(page);
  await ranks(page);
  await order(page);
  await frugal(page);
  await link();
  await cut(page);
  await check('no error on the console', () => need(errors.length === 0, errors.join(' | ')));
  await check('no request to anywhere else', () => need(outside.length === 0, outside.join(' ')));
  await check('nothing missing', () => need(bad.length === 0, bad.join(' ')));
} finally {
  await browser.close();
  writeFileSync(`${T.shots}/problems.json`, JSON.stringify({ errors, outside, bad }, null, 1));
}
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed ? 1 : 0;
