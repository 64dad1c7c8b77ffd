/* What is drawn: the charts of a job and the picture of its ranks. */
import { T, check, need, until, alter, reload, pixelsOf, shoot } from './rig.mjs';

/* What a chart shows is of this job and of the attempt that runs. */
export async function charts(page) {
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
export async function ranks(page) {
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

/* 100,352 ranks: each has its cell, the last one too, and numbers of all of them are told. */
export async function manyRanks(page) {
  const n = 100352;
  await alter(page, `**/v1/jobs/${T.jobs.train}/matrix*`, (doc) => ({
    ...doc,
    metric: 'step_ms',
    unit: 'ms',
    ranks: n,
    sizes: { tp: 4, pp: 16, ep: 8, cp: 2, dp: 784 },
    letters: undefined,
    legend: undefined,
    values: Array.from({ length: n }, (_, i) => (i === n - 1 ? 9000 : 2800 + (i % 7))),
    worst: [],
  }));
  await page.selectOption('#matrix-metric', 'step_ms');
  await check('100,352 ranks: a cell each, and the last one stands out', async () => {
    await until(page, () =>
      /^100,352 of 100,352 ranks: .* greatest 9,000/.test(
        document.getElementById('matrix-text').innerText,
      ),
    );
    const seen = await page.evaluate(() => {
      const { size, across, blocks } = heat.cells,
        b = blocks[blocks.length - 1],
        k = heat.doc.ranks - 1 - b.from,
        at = [STAGE_LABEL + (k % across) * size, b.y + Math.floor(k / across) * size],
        copy = document.createElement('canvas').getContext('2d'),
        rgb = [];
      copy.drawImage(document.getElementById('matrix'), -at[0], -at[1]);
      rgb.push(...copy.getImageData(0, 0, 1, 1).data);
      const bad = colour('--cell-bad');
      return {
        cells: blocks.reduce((sum, b) => sum + b.to - b.from, 0),
        last: '#' + rgb.slice(0, 3).map((v) => v.toString(16).padStart(2, '0')).join(''),
        bad,
      };
    });
    need(seen.cells === n && seen.last === seen.bad, JSON.stringify(seen));
  });
  await page.unrouteAll({ behavior: 'wait' });
  await page.selectOption('#matrix-metric', 'doing');
}
