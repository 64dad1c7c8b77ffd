/* The dashboard: one page, REST documents as they are, one event stream. Server data only ever becomes text (textContent), never markup. */
'use strict';

const $ = (id) => document.getElementById(id);
const state = { job: null, charts: {}, lastSeq: 0, lastData: 0, refreshing: false, dirty: true, stream: null };
const CATEGORIES = [['productive', '#2e7d4f'], ['recompute', '#c77f12'], ['load', '#5b7fb5'], ['init', '#8a6fb0'], ['save', '#3c9aa8'], ['launch', '#9aa7b5'],
  ['detect', '#b5473c'], ['hang', '#7d1f1f'], ['drain', '#776a52'], ['queue', '#c5ccd4'], ['idle', '#68737f']];

async function get(path) {
  const r = await fetch(path, { credentials: 'same-origin', headers: { Accept: 'application/json' } });
  if (r.status === 401) { showLogin(true); throw new Error('not signed in'); }
  if (!r.ok) throw new Error(path + ': HTTP ' + r.status);
  state.lastData = Date.now();
  return r.json();
}

function showLogin(on) { $('login').hidden = !on; }

function number(v, digits) {
  if (v === null || v === undefined) return '-';
  if (typeof v === 'string') return v;                       /* NaN and infinities come as strings */
  return v.toLocaleString('en-US', { minimumFractionDigits: digits || 0, maximumFractionDigits: digits || 0 });
}

function duration(s) {
  if (s === null || s === undefined) return '-';
  if (s < 90) return Math.round(s) + ' s';
  if (s < 5400) return Math.round(s / 60) + ' min';
  if (s < 172800) return (s / 3600).toFixed(1) + ' h';
  return (s / 86400).toFixed(1) + ' d';
}

function clock(t) { return t ? t.slice(11, 19) : '-'; }

function cell(row, text, cls) {
  const td = document.createElement('td');
  td.textContent = text === null || text === undefined ? '-' : String(text);
  if (cls) td.className = cls;
  row.appendChild(td);
  return td;
}

function stateCell(row, s) { cell(row, s, 'state-' + String(s).replace(/[^a-z]/g, '')); }

function fill(table, items, build) {
  const body = document.createElement('tbody');
  for (const it of items) { const tr = document.createElement('tr'); build(tr, it); body.appendChild(tr); }
  $(table).replaceChild(body, $(table).tBodies[0]);
}

function drawCluster(c) {
  const jobs = Object.entries(c.jobs).filter(([, n]) => n > 0).map(([s, n]) => n + ' ' + s).join(', ') || 'no jobs';
  $('cluster').textContent = `${c.nodes.up} nodes up, ${c.nodes.suspect} suspect, ${c.nodes.down} down, ${c.nodes.draining + c.nodes.drained} draining. ` +
    `${number(c.gpus.total)} GPUs, ${number(c.gpus.free)} free. ${jobs}.`;
}

function drawJobs(items) {
  $('jobs-empty').hidden = items.length > 0;
  if (!state.job && items.length) state.job = (location.hash.match(/^#(j-\d+)$/) || [])[1] || items[items.length - 1].id;
  fill('jobs', items.slice().reverse(), (tr, j) => {
    tr.setAttribute('aria-selected', String(j.id === state.job));
    const td = cell(tr, '');
    const b = document.createElement('button');
    b.className = 'link'; b.textContent = j.id; b.setAttribute('aria-label', 'Show job ' + j.id);
    b.addEventListener('click', () => { state.job = j.id; location.hash = j.id; refresh(); });
    td.appendChild(b);
    cell(tr, j.name); stateCell(tr, j.state); cell(tr, number(j.attempt), 'num'); cell(tr, number(j.restarts), 'num');
    cell(tr, number(j.iteration) + (j.steps ? ' / ' + number(j.steps) : ''), 'num'); cell(tr, number(j.loss, 4), 'num'); cell(tr, number(j.tokens_per_s_per_gpu, 0), 'num');
    cell(tr, j.checkpoint ? number(j.checkpoint.iteration) : '-', 'num'); cell(tr, duration(j.eta_s), 'num'); cell(tr, j.reason, 'wrap');
  });
}

function drawNodes(items) {
  fill('nodes', items, (tr, n) => {
    cell(tr, n.name); stateCell(tr, n.state); cell(tr, number(n.gpus), 'num'); cell(tr, number(n.gpus_free), 'num'); cell(tr, number(n.cpus), 'num');
    cell(tr, n.jobs.join(' ') || '-'); cell(tr, n.heartbeat_age_ms === null ? '-' : number(n.heartbeat_age_ms / 1000, 1) + ' s', 'num'); cell(tr, n.reason, 'wrap');
  });
}

/* Chart colours are read from the theme: a canvas does not inherit them. */
function chart(id, label, x, y) {
  const css = getComputedStyle(document.documentElement), v = (n) => css.getPropertyValue(n).trim();
  const box = $(id), width = Math.max(200, box.clientWidth);
  if (state.charts[id]) state.charts[id].destroy();
  const axis = { stroke: v('--dim'), grid: { stroke: v('--grid') }, ticks: { stroke: v('--grid') } };
  state.charts[id] = new uPlot({ width, height: 220, cursor: { y: false }, scales: { x: { time: false } }, legend: { show: true },
    axes: [axis, { ...axis, size: 60 }], series: [{ label: 'iteration' }, { label, stroke: v('--accent'), width: 1.5, spanGaps: false, points: { show: x.length < 60 } }] }, [x, y], box);
}

/* An iteration repeated by a later attempt replaces the earlier one in the picture. */
function drawCharts(items) {
  const byIteration = new Map();
  for (const s of items) if (s.iteration !== null) byIteration.set(s.iteration, s);
  const rows = [...byIteration.values()].sort((a, b) => a.iteration - b.iteration);
  const num = (v) => (typeof v === 'number' ? v : null), x = rows.map((s) => s.iteration);
  chart('chart-loss', 'loss', x, rows.map((s) => num(s.loss)));
  chart('chart-step', 'step ms', x, rows.map((s) => num(s.step_ms)));
}

function drawLedger(report) {
  const g = report.gpu_seconds, ns = 'http://www.w3.org/2000/svg', svg = document.createElementNS(ns, 'svg');
  svg.setAttribute('viewBox', '0 0 1000 10'); svg.setAttribute('preserveAspectRatio', 'none');
  let at = 0; const words = [];
  for (const [name, colour] of CATEGORIES) {
    const share = g.total > 0 ? g[name] / g.total : 0;
    if (share <= 0) continue;
    const r = document.createElementNS(ns, 'rect');
    r.setAttribute('x', at * 1000); r.setAttribute('width', share * 1000); r.setAttribute('height', 10); r.setAttribute('fill', colour);
    svg.appendChild(r); at += share; words.push(`${name} ${(share * 100).toFixed(1)} %`);
  }
  $('ledger').replaceChildren(svg);
  $('ledger-text').textContent = `${number(g.total, 1)} GPU-seconds: ${words.join(', ') || 'none yet'}. ETTR ${report.ettr === null ? '-' : number(report.ettr * 100, 1) + ' %'}, restarts ${report.restarts}.`;
  $('incidents').replaceChildren(...report.incidents.slice().reverse().map((i) => {
    const li = document.createElement('li');
    li.textContent = `${clock(i.time)} attempt ${i.attempt}: ${i.class}${i.first_rank === null ? '' : ', rank ' + i.first_rank + ' first'}${i.node ? ' on ' + i.node : ''}: ${i.cause}; ${i.action}` +
      (i.lost_iterations ? `; ${i.lost_iterations} iterations lost` : '');
    return li;
  }));
}

async function drawJob(id) {
  const base = '/v1/jobs/' + encodeURIComponent(id);
  const [job, why, metrics, ranks, checkpoints, report] = await Promise.all([get(base), get(base + '/why'), get(base + '/metrics?limit=1000&last=1'), get(base + '/ranks?limit=256'),
    get(base + '/checkpoints?limit=200'), get(base + '/report')]);
  if (id !== state.job) return;
  $('job').hidden = false;
  $('job-title').textContent = `${job.id} ${job.name}`;
  $('job-line').textContent = `${job.state}, attempt ${job.attempt}, iteration ${number(job.iteration)}${job.steps ? ' of ' + number(job.steps) : ''}, loss ${number(job.loss, 4)}, on ${job.nodes.join(' ') || 'no nodes'}`;
  $('job-why').textContent = why.verdict + (why.next ? ' Next: ' + why.next : '');
  drawCharts(metrics.items);
  drawLedger(report);
  fill('ranks', ranks.items, (tr, r) => {
    cell(tr, r.rank, 'num'); cell(tr, r.node); cell(tr, r.pid, 'num'); stateCell(tr, r.state); cell(tr, number(r.iteration), 'num'); cell(tr, number(r.step_ms, 1), 'num'); cell(tr, r.cpus);
    cell(tr, r.bind_verified === true ? 'verified' : r.bind_verified === false ? 'NOT bound: ' + (r.bind_note || '') : r.bind_note || 'unknown');
  });
  fill('checkpoints', checkpoints.items.slice().reverse(), (tr, c) => { cell(tr, number(c.iteration), 'num'); stateCell(tr, c.state); cell(tr, clock(c.saved_at)); cell(tr, c.reason, 'wrap'); });
}

async function refresh() {
  if (state.refreshing) { state.dirty = true; return; }
  state.refreshing = true; state.dirty = false;
  try {
    const [cluster, jobs, nodes] = await Promise.all([get('/v1/cluster'), get('/v1/jobs?limit=1000'), get('/v1/nodes?limit=1000')]);
    showLogin(false);
    drawCluster(cluster); drawJobs(jobs.items); drawNodes(nodes.items);
    if (state.job) await drawJob(state.job);
    if (!state.stream) follow();
  } catch (e) {
    if (e.message !== 'not signed in') state.error = e.message;
  } finally { state.refreshing = false; }
}

function addEvent(e) {
  if (e.seq <= state.lastSeq) return;
  state.lastSeq = e.seq;
  const li = document.createElement('li'), t = document.createElement('time');
  t.dateTime = e.time; t.textContent = clock(e.time) + ' ';
  li.append(t, `${e.type}${e.job ? ' ' + e.job : ''}${e.node ? ' ' + e.node : ''}${e.rank === null ? '' : ' rank ' + e.rank}: ${e.message || ''}`);
  $('events').prepend(li);
  while ($('events').childElementCount > 200) $('events').lastElementChild.remove();
  state.dirty = true;
}

/* One stream; a second of back-off with jitter when it ends. It carries on after the last event seen. */
function follow() {
  state.stream = new EventSource('/v1/events?follow=1&last=100');
  state.stream.onmessage = (m) => addEvent(JSON.parse(m.data));
  state.stream.onerror = () => { if (state.stream.readyState === EventSource.CLOSED) { state.stream = null; setTimeout(refresh, 1000 + Math.random() * 1000); } };
}

function age() {
  const s = (Date.now() - state.lastData) / 1000, stale = state.lastData && s > 6;
  $('fresh').textContent = state.lastData ? `data ${s.toFixed(0)} s old` : 'connecting';
  $('banner').hidden = !stale;
  if (stale) $('banner').textContent = `No answer from the controller since ${new Date(state.lastData).toLocaleTimeString()}; trying again. What you see is old.`;
}

$('login-form').addEventListener('submit', async (ev) => {
  ev.preventDefault();
  const r = await fetch('/v1/session', { method: 'POST', headers: { Authorization: 'Bearer ' + $('token').value.trim() } });
  $('token').value = '';
  $('login-error').textContent = r.ok ? '' : 'This token is not valid. Ask for one with: moectl token create --role viewer';
  if (r.ok) { showLogin(false); refresh(); }
});
window.addEventListener('hashchange', () => { const m = location.hash.match(/^#(j-\d+)$/); if (m) { state.job = m[1]; refresh(); } });
window.addEventListener('resize', () => { state.dirty = true; });
setInterval(age, 1000);
setInterval(() => { if (!document.hidden) refresh(); }, 2000);
refresh();
