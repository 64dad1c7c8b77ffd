/* The curves of a job: its whole run in buckets that the server made, of which each has the newest,
 * the least and the greatest value. What is newer is asked for by itself, and until then told by
 * the stream. What later attempts ran again is left out of the line and marked below it. */
'use strict';

const POINTS = 600;
const OTHERS = {
  tokens_per_s_per_gpu: 'tokens/s/GPU',
  mfu: 'MFU',
  grad_norm: 'gradient norm',
};
const curve = { job: null, attempt: 0, names: '', doc: null, tail: [], plots: {}, saved: [] };

function wantedNames() {
  return `loss,step_ms,${$('curve-other').value}`;
}

/* b, which is newer, behind a. */
function joinCurves(a, b) {
  const n = a.iteration.length,
    values = (doc, name, kind, length) => {
      const s = doc.series.find((s) => s.name === name);
      return s ? s[kind] || s.last : Array(length).fill(null);
    };
  const series = [...new Set([...a.series, ...b.series].map((s) => s.name))].map((name) => {
    const s = { name };
    for (const k of ['last', 'min', 'max'])
      s[k] = values(a, name, k, n).concat(values(b, name, k, b.iteration.length));
    return s;
  });
  const attempts = b.attempts.map((t) => {
    const old = a.attempts.find((o) => o.attempt === t.attempt);
    return { ...t, at: old && old.at !== null ? old.at : t.at === null ? null : t.at + n };
  });
  return {
    ...b,
    decimated: a.decimated || b.decimated,
    attempts,
    series,
    iteration: a.iteration.concat(b.iteration),
    count: a.count.concat(b.count),
  };
}

async function loadCurve(job) {
  const names = wantedNames(),
    base = `/v1/jobs/${encodeURIComponent(job.id)}/metrics?points=${POINTS}&names=${names}`,
    goesOn =
      curve.doc &&
      curve.doc.next &&
      curve.job === job.id &&
      curve.attempt === job.attempt &&
      curve.names === names &&
      curve.doc.iteration.length < 2 * POINTS;
  const doc = await get(goesOn ? `${base}&after=${curve.doc.next}` : base, false);
  if (curve.job !== job.id) dropCurves();
  Object.assign(curve, { job: job.id, attempt: job.attempt, names });
  curve.doc = goesOn ? joinCurves(curve.doc, doc) : doc;
  curve.tail = curve.tail.filter((s) => isNewer(s, curve.doc.next));
}

function isNewer(s, place) {
  const [attempt, iteration] = (place || '0.-1').split('.').map(Number);
  return s.attempt > attempt || (s.attempt === attempt && s.iteration > iteration);
}

/* A sample that the stream told of. */
function addSample(job, s) {
  const newest = curve.tail[curve.tail.length - 1];
  if (curve.job !== job || !curve.doc || !isNewer(s, curve.doc.next)) return;
  if (newest && !isNewer(s, `${newest.attempt}.${newest.iteration}`)) return;
  curve.tail.push(s);
}

/* Places of the buckets that no later attempt ran again. */
function countedPlaces(doc) {
  const places = [],
    begun = doc.attempts.filter((a) => a.at !== null);
  begun.forEach((a, k) => {
    const end = k + 1 < begun.length ? begun[k + 1].at : doc.iteration.length;
    for (let i = a.at; i < end; i++)
      if (a.counted !== null && doc.iteration[i] <= a.counted) places.push(i);
  });
  return places.sort((a, b) => doc.iteration[a] - doc.iteration[b]);
}

const finite = (v, log) => (typeof v === 'number' && (!log || v > 0) ? v : null);

/* [x, last, min, max] of one series. */
function columns(name, log) {
  const s = curve.doc.series.find((s) => s.name === name) || { last: [] },
    places = countedPlaces(curve.doc),
    tail = curve.tail.filter((t) => t.attempt === curve.attempt);
  const column = (kind) =>
    places
      .map((i) => finite((s[kind] || s.last)[i], log))
      .concat(tail.map((t) => finite(t[name], log)));
  return [
    places.map((i) => curve.doc.iteration[i]).concat(tail.map((t) => t.iteration)),
    column('last'),
    column('min'),
    column('max'),
  ];
}

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/* Behind the line: attempts in turn, what was lost, and a tick for each checkpoint. */
function drawBehind(u) {
  const { left, top, width, height } = u.bbox,
    x = (i) => Math.min(Math.max(u.valToPos(i, 'x', true), left), left + width),
    box = (from, to, fill, y, h) => {
      u.ctx.fillStyle = fill;
      u.ctx.fillRect(x(from), y, Math.max(1, x(to) - x(from)), h);
    };
  u.ctx.save();
  const newest = curve.tail[curve.tail.length - 1];
  curve.doc.attempts.forEach((a, k) => {
    const goesOn = newest && newest.attempt === a.attempt,
      end = goesOn ? newest.iteration : a.counted;
    if (k % 2 && end !== null) box(a.first, end, colour('--panel'), top, height);
    if (a.counted !== a.last)
      box(a.counted === null ? a.first : a.counted, a.last, colour('--lost'), top + height - 8, 8);
  });
  for (const i of curve.saved)
    if (i >= u.scales.x.min && i <= u.scales.x.max) {
      u.ctx.fillStyle = colour('--ok');
      u.ctx.fillRect(x(i) - 1, top, 2, 6);
    }
  u.ctx.restore();
}

/* As many digits as tell two ticks apart. */
function tickTexts(u, splits, i, space, incr) {
  const digits = Math.min(8, Math.max(0, Math.ceil(-Math.log10(incr) - 1e-9)));
  return splits.map((t) =>
    t === null ? '' : u.scales.y.distr === 3 ? String(Number(t.toPrecision(2))) : number(t, digits),
  );
}

/* Chart colours are read from the theme: a canvas does not inherit them. */
function newPlot(box, label, width, log) {
  const axis = {
    stroke: colour('--dim'),
    grid: { stroke: colour('--grid'), width: 1 },
    ticks: { stroke: colour('--grid'), width: 1 },
  };
  const quiet = { stroke: 'transparent', points: { show: false } };
  return new uPlot(
    {
      width,
      height: 220,
      cursor: { y: false },
      scales: { x: { time: false }, y: { distr: log ? 3 : 1 } },
      legend: { show: true },
      axes: [axis, { ...axis, size: 70, values: tickTexts }],
      series: [
        { label: 'iteration' },
        {
          label,
          stroke: colour('--accent'),
          width: 1.5,
          spanGaps: false,
          points: { show: (u) => u.data[0].length < 60 },
        },
        { ...quiet, label: 'least' },
        { ...quiet, label: 'greatest' },
      ],
      bands: [{ series: [3, 2], fill: colour('--band') }],
      hooks: { drawClear: [drawBehind], ready: [showNewest] },
    },
    [[], [], [], []],
    box,
  );
}

/* The same as numbers, where somebody opened it: the newest first, of a bucket the newest value and
 * the range. */
function drawCurveTable() {
  if (!$('curve-values').open) return;
  const other = $('curve-other').value,
    names = [
      ['loss', 4],
      ['step_ms', 1],
      [other, other === 'tokens_per_s_per_gpu' ? 0 : 4],
    ],
    all = names.map(([name]) => columns(name, false));
  const cell = ([, last, min, max], i, digits) => {
    const range =
      min[i] === max[i] ? '' : ` (${number(min[i], digits)} to ${number(max[i], digits)})`;
    return [number(last[i], digits) + range, 'num'];
  };
  setText('curve-table-other', OTHERS[other]);
  fill(
    'curve-table',
    all[0][0]
      .map((x, i) => [x, [[number(x), 'num'], ...names.map(([, d], k) => cell(all[k], i, d))]])
      .reverse(),
  );
}

/* Below a chart stands what is under the cursor; without one the newest values, if they are of the
 * attempt that runs. */
function showNewest(u) {
  const last = curve.doc.attempts[curve.doc.attempts.length - 1],
    current = curve.tail.length > 0 || (last && last.attempt === curve.attempt);
  if (u.cursor.left < 0)
    u.setLegend({ idx: current && u.data[0].length ? u.data[0].length - 1 : null });
}

function plot(id, name, label) {
  const box = $(id),
    width = Math.max(200, box.clientWidth),
    log = $('curve-log').checked,
    key = `${label} ${log}`;
  let have = curve.plots[id];
  if (have && have.key !== key) {
    have.u.destroy();
    have = null;
  }
  if (!have) have = curve.plots[id] = { key, u: newPlot(box, label, width, log) };
  if (have.u.width !== width) have.u.setSize({ width, height: 220 });
  have.u.setData(columns(name, log));
  showNewest(have.u);
}

function dropPlots() {
  for (const p of Object.values(curve.plots)) p.u.destroy();
  curve.plots = {};
}

/* A chart is of one job: another one gets axes of its own. */
function dropCurves() {
  dropPlots();
  Object.assign(curve, { job: null, doc: null, tail: [], saved: [] });
}

function drawCurves(job) {
  const doc = curve.doc,
    other = $('curve-other').value,
    none = !doc || (doc.iteration.length === 0 && curve.tail.length === 0);
  $('charts').hidden = $('curve-tools').hidden = $('curve-values').hidden = none;
  $('charts-empty').hidden = !none;
  if (none) {
    dropPlots();
    more('charts-more', '');
    return;
  }
  const lost = doc.attempts.reduce((n, a) => n + a.last - (a.counted ?? a.first - 1), 0),
    notes = [
      doc.attempts.length > 1 ? `${number(doc.attempts.length)} attempts, shaded in turn.` : '',
      curve.saved.length > 0 ? 'Checkpoints are ticks at the top.' : '',
      lost > 0 ? `${number(lost)} iterations were lost to restarts (red below).` : '',
      doc.decimated ? 'The band is from the least to the greatest value.' : '',
      doc.earlier > 0
        ? `${number(doc.earlier)} iterations of earlier attempts are not shown ` +
          `(moectl metrics ${job.id} --csv).`
        : '',
    ];
  more('charts-more', notes.filter(Boolean).join(' '));
  setText('chart-other-title', OTHERS[other]);
  plot('chart-loss', 'loss', 'loss');
  plot('chart-step', 'step_ms', 'step ms');
  plot('chart-other', other, OTHERS[other]);
  drawCurveTable();
}
