/* What the page looks like: both schemes, widths from a phone on, tables that are longer or wider
 * than they fit. */
import { T, check, need, until, alter, reload, lineIn, shoot } from './rig.mjs';

export async function looks(page) {
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
export async function wide(page) {
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
export async function crowd(page) {
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

/* 127 events of one kind are one line, nodes that are bad come first, a job that failed shows what
 * it left. */
export async function order(page) {
  await check('events of many ranks are one line', async () => {
    // in one go: an event that comes meanwhile would count as one that was there
    const line = await page.evaluate(() => {
      const e = { job: 'j-1', node: 'n', attempt: 7, type: 'rank.exited' };
      e.time = '2026-01-01T00:00:00Z';
      for (let i = 0; i < 127; i++)
        addEvent({ ...e, seq: log.lastSeq + 1, rank: i, message: 'killed by SIGKILL' });
      const first = document.getElementById('events').firstElementChild,
        text = first.innerText;
      log.lastSeq -= 127;
      log.total -= 127;
      log.folded -= 126;
      first.remove();
      return text;
    });
    need(/\u00d7 127 ranks \(0-126\)/.test(line), line);
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
