/* What the dashboard draws: numbers, tables and charts, each from a document that app.js got. Rows,
 * cells and charts are reused, so that focus, scroll position and the chart's cursor stay. Server
 * data only ever becomes text (textContent), never markup. */
'use strict';

const $ = (id) => document.getElementById(id);
const CATEGORIES = [
  ['productive', '#2e7d4f'],
  ['recompute', '#c77f12'],
  ['load', '#5b7fb5'],
  ['init', '#8a6fb0'],
  ['save', '#3c9aa8'],
  ['image', '#4d6b8a'],
  ['launch', '#9aa7b5'],
  ['detect', '#b5473c'],
  ['hang', '#7d1f1f'],
  ['drain', '#776a52'],
  ['idle', '#68737f'],
];

function number(v, digits) {
  if (v === null || v === undefined) return '-';
  if (typeof v === 'string') return v; /* NaN and infinities come as strings */
  return v.toLocaleString('en-US', {
    minimumFractionDigits: digits || 0,
    maximumFractionDigits: digits || 0,
  });
}

function duration(s) {
  if (s === null || s === undefined) return '-';
  if (s < 90) return Math.round(s) + ' s';
  if (s < 5400) return Math.round(s / 60) + ' min';
  if (s < 172800) return (s / 3600).toFixed(1) + ' h';
  return (s / 86400).toFixed(1) + ' d';
}

/* With the day when it was not today. */
function clock(t) {
  if (!t) return '-';
  const d = new Date(t),
    time = d.toLocaleTimeString('en-GB');
  return d.toDateString() === new Date().toDateString()
    ? time
    : d.toLocaleDateString('en-GB', { day: 'numeric', month: 'short' }) + ' ' + time;
}

function setText(id, text) {
  if ($(id).textContent !== text) $(id).textContent = text;
}

/* A cell is [text, class]; shown(s) is the cell of a state. */
function shown(s) {
  return [s, 'state-' + String(s).replace(/[^a-z]/g, '')];
}

function put(td, [text, cls]) {
  const t = text === null || text === undefined || text === '' ? '-' : String(text);
  if (td.textContent !== t) td.textContent = t;
  if (td.className !== (cls || '')) td.className = cls || '';
}

/* A loss that is no finite number is sent as a string. */
function lossCell(v) {
  return [number(v, 4), typeof v === 'string' ? 'num state-failed' : 'num'];
}

/* rows: [key, cells, decorate?]; a key keeps its row. */
function fill(table, rows) {
  const body = $(table).tBodies[0],
    old = new Map([...body.rows].map((tr) => [tr.dataset.key, tr]));
  rows.forEach(([key, cells, decorate], i) => {
    let tr = old.get(String(key));
    if (!tr) {
      tr = document.createElement('tr');
      tr.dataset.key = key;
    }
    old.delete(String(key));
    if (body.rows[i] !== tr) body.insertBefore(tr, body.rows[i] || null);
    const first = decorate ? decorate(tr) : 0;
    cells.forEach((c, k) => put(tr.cells[first + k] || tr.insertCell(), c));
  });
  old.forEach((tr) => tr.remove());
}

function drawCluster(c) {
  const jobs =
      Object.entries(c.jobs)
        .filter(([, n]) => n > 0)
        .map(([s, n]) => `${n} ${s}`)
        .join(', ') || 'none',
    n = c.nodes;
  const odd = ['suspect', 'down', 'draining', 'drained']
    .filter((s) => n[s] > 0)
    .map((s) => `, ${n[s]} ${s}`)
    .join('');
  document.title = ['failed', 'recovering', 'running']
    .filter((s) => c.jobs[s] > 0)
    .map((s) => `${c.jobs[s]} ${s}`)
    .concat('moectl')
    .join(' · ');
  setText(
    'cluster',
    `${n.up} nodes up${odd} · ${number(c.gpus.total)} GPUs, ${number(c.gpus.free)} free · ` +
      `jobs: ${jobs}`,
  );
}

function select(id) {
  state.job = id;
  history.replaceState(null, '', '#' + id);
  refresh();
}

function jobButton(j) {
  return (tr) => {
    tr.setAttribute('aria-selected', String(j.id === state.job));
    if (tr.cells.length) return 1;
    const b = document.createElement('button');
    b.className = 'link';
    b.textContent = j.id;
    b.setAttribute('aria-label', 'Show job ' + j.id);
    b.addEventListener('click', () => select(j.id));
    tr.insertCell().appendChild(b);
    return 1;
  };
}

/* How many of a table are not there, and what lists them; text empty: none. */
function more(id, text) {
  $(id).hidden = !text;
  setText(id, text);
}

function drawJobs(items, counts) {
  $('jobs-empty').hidden = items.length > 0;
  if (!state.job && items.length)
    state.job = (location.hash.match(/^#(j-\d+)$/) || [])[1] || items[0].id;
  const left = Object.entries(counts)
    .map(([s, n]) => [s, n - items.filter((j) => j.state === s).length])
    .filter(([, n]) => n > 0);
  more(
    'jobs-more',
    left.length
      ? `${number(left.reduce((sum, [, n]) => sum + n, 0))} more are not shown: ` +
          `${left.map(([s, n]) => `${number(n)} ${s}`).join(', ')} (moectl list --all)`
      : '',
  );
  fill(
    'jobs',
    items.map((j) => [
      j.id,
      [
        [j.name],
        shown(j.state),
        [number(j.attempt), 'num'],
        [number(j.restarts), 'num'],
        [number(j.iteration) + (j.steps ? ' / ' + number(j.steps) : ''), 'num'],
        lossCell(j.loss),
        [number(j.tokens_per_s_per_gpu), 'num'],
        [j.checkpoint ? number(j.checkpoint.iteration) : '-', 'num'],
        [duration(j.eta_s), 'num'],
        [j.reason, 'wrap'],
      ],
      jobButton(j),
    ]),
  );
}

function drawNodes(items, counts) {
  const n = Object.values(counts).reduce((sum, k) => sum + k, 0) - items.length;
  more('nodes-more', n > 0 ? `${number(n)} more nodes are not shown (moectl nodes)` : '');
  fill(
    'nodes',
    items.map((n) => [
      n.name,
      [
        [n.name],
        shown(n.state),
        n.health ? shown(n.health + (n.findings ? ' (' + n.findings + ')' : '')) : ['-'],
        [number(n.gpus), 'num'],
        [number(n.gpus_free), 'num'],
        [number(n.cpus), 'num'],
        [n.jobs.join(' ')],
        [n.heartbeat_age_ms === null ? '-' : number(n.heartbeat_age_ms / 1000, 1) + ' s', 'num'],
        [n.reason, 'wrap'],
      ],
    ]),
  );
}

/* Below a chart stands what is under the cursor; without one the newest values, if they are of the
 * attempt that runs. */
function showNewest(u, current) {
  if (u.cursor.left < 0)
    u.setLegend({ idx: current && u.data[0].length ? u.data[0].length - 1 : null });
}

/* Chart colours are read from the theme: a canvas does not inherit them. */
function chart(id, label, data, current) {
  const box = $(id),
    width = Math.max(200, box.clientWidth),
    have = state.charts[id];
  if (have) {
    if (have.width !== width) have.setSize({ width, height: 220 });
    have.setData(data);
    showNewest(have, current);
    return;
  }
  const css = getComputedStyle(document.documentElement),
    v = (n) => css.getPropertyValue(n).trim();
  const digits = (incr) =>
    Math.min(
      8,
      Math.max(0, Math.ceil(-Math.log10(incr) - 1e-9)),
    ); /* as many as tell two ticks apart */
  const ticks = (u, splits, i, space, incr) => splits.map((t) => number(t, digits(incr)));
  const axis = {
    stroke: v('--dim'),
    grid: { stroke: v('--grid'), width: 1 },
    ticks: { stroke: v('--grid'), width: 1 },
  };
  const few = (u) => u.data[0].length < 60;
  state.charts[id] = new uPlot(
    {
      width,
      height: 220,
      cursor: { y: false },
      scales: { x: { time: false } },
      legend: { show: true },
      axes: [axis, { ...axis, size: 70, values: ticks }],
      series: [
        { label: 'iteration' },
        { label, stroke: v('--accent'), width: 1.5, spanGaps: false, points: { show: few } },
      ],
    },
    data,
    box,
  );
  showNewest(state.charts[id], current);
}

function dropCharts() {
  for (const id of Object.keys(state.charts)) {
    state.charts[id].destroy();
    delete state.charts[id];
  }
}

/* The samples that count: an attempt replaces what earlier ones did beyond the iteration from which
 * it went on. */
function counted(job, items) {
  const rows = [];
  for (const s of items) {
    if (s.iteration === null) continue;
    while (rows.length && rows[rows.length - 1].iteration >= s.iteration) rows.pop();
    rows.push(s);
  }
  const from = job.resume === null ? Infinity : Math.max(job.resume, 0);
  return rows.filter((s) => s.attempt === job.attempt || s.iteration <= from);
}

/* A chart is of one job: another one gets axes of its own. */
function drawCharts(job, items, earlier) {
  if (state.charted !== job.id) dropCharts();
  state.charted = job.id;
  const rows = counted(job, items),
    current = rows.length > 0 && rows[rows.length - 1].attempt === job.attempt;
  const num = (v) => (typeof v === 'number' ? v : null),
    x = rows.map((s) => s.iteration);
  more(
    'charts-more',
    earlier > 0
      ? `The newest ${number(items.length)} iterations; ${number(earlier)} earlier ones are ` +
          `not shown (moectl metrics ${job.id} --csv)`
      : '',
  );
  $('charts').hidden = rows.length === 0;
  $('charts-empty').hidden = rows.length > 0;
  if (!rows.length) {
    dropCharts();
    return;
  }
  chart('chart-loss', 'loss', [x, rows.map((s) => num(s.loss))], current);
  chart('chart-step', 'step ms', [x, rows.map((s) => num(s.step_ms))], current);
}

function drawLedger(report) {
  const g = report.gpu_seconds,
    ns = 'http://www.w3.org/2000/svg',
    svg = document.createElementNS(ns, 'svg');
  svg.setAttribute('viewBox', '0 0 1000 10');
  svg.setAttribute('preserveAspectRatio', 'none');
  const key = [];
  let at = 0;
  for (const [name, colour] of CATEGORIES) {
    const share = g.total > 0 ? g[name] / g.total : 0;
    if (share <= 0) continue;
    const r = document.createElementNS(ns, 'rect');
    r.setAttribute('x', at * 1000);
    r.setAttribute('width', share * 1000);
    r.setAttribute('height', 10);
    r.setAttribute('fill', colour);
    svg.appendChild(r);
    at += share;
    const dot = document.createElementNS(ns, 'svg'),
      square = document.createElementNS(ns, 'rect'),
      li = document.createElement('li');
    dot.setAttribute('class', 'dot');
    dot.setAttribute('viewBox', '0 0 1 1');
    square.setAttribute('width', 1);
    square.setAttribute('height', 1);
    square.setAttribute('fill', colour);
    dot.appendChild(square);
    li.append(dot, `${name} ${(share * 100).toFixed(1)} %`);
    key.push(li);
  }
  $('ledger').replaceChildren(svg);
  $('ledger-key').replaceChildren(...key);
  setText(
    'ledger-text',
    `${number(g.total, 1)} GPU-seconds` +
      (g.queue > 0 ? ` after ${number(g.queue, 1)} in the queue, ` : ', ') +
      `ETTR ${report.ettr === null ? '-' : number(report.ettr * 100, 1) + ' %'}, ` +
      `restarts ${report.restarts}`,
  );
  $('incidents').replaceChildren(
    ...report.incidents
      .slice()
      .reverse()
      .map((i) => {
        const li = document.createElement('li');
        const fall = Object.values(i.waterfall_ms).reduce((sum, ms) => sum + (ms || 0), 0);
        const took = fall < 10000 ? number(fall / 1000, 1) + ' s' : duration(fall / 1000);
        li.textContent =
          `${clock(i.time)} attempt ${i.attempt}: ${i.class}` +
          (i.first_rank === null ? '' : `, rank ${i.first_rank} first`) +
          `${i.node ? ' on ' + i.node : ''}: ${i.cause}; ${i.action}` +
          (i.lost_iterations ? `; ${i.lost_iterations} iterations lost` : '') +
          (i.waterfall_ms.init !== null ? `; the restart took ${took}` : '');
        return li;
      }),
  );
  $('incidents-empty').hidden = report.incidents.length > 0;
}

function bound(r) {
  if (r.bind_verified === true) return ['verified', 'state-verified'];
  return r.bind_verified === false
    ? ['NOT bound: ' + (r.bind_note || ''), 'wrap state-failed']
    : [r.bind_note || 'unknown', 'wrap'];
}

/* Of a job that runs there is nothing to explain but what is odd. */
function drawWhy(job, why) {
  const texts = why.reasons
    .filter((r) => r.code !== 'progress' && r.text !== job.reason && r.text !== job.state)
    .map((r) => r.text);
  const drift = job.plan && job.plan.within === false ? 'Against its plan: ' + job.plan.text : null;
  const lines = [
    job.reason,
    drift,
    ...texts,
    why.next && why.next !== 'nothing to do' ? 'Next: ' + why.next : null,
  ].filter(Boolean);
  $('job-why').replaceChildren(
    ...lines.map((t) => {
      const li = document.createElement('li');
      li.textContent = t;
      return li;
    }),
  );
}

/* What the planner promised, and what it chose where the recipe left it. */
function drawPlan(plan) {
  const c = plan && plan.chosen;
  const chosen = c
    ? `tp ${c.tp} pp ${c.pp} vpp ${c.vpp} ep ${c.ep} etp ${c.etp} cp ${c.cp} dp ${c.dp}, ` +
      `${c.sharding}, ${c.schedule}, micro-batch ${c.micro}; `
    : '';
  $('job-plan').hidden = !plan;
  setText('job-plan', plan ? `Plan: ${chosen}${plan.text}` : '');
}
