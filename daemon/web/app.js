/* The dashboard: one page, REST documents as they are, one event stream. Here is who is signed in,
 * which job is looked at, which topics (rest.js) there are and which events touch them; what is
 * drawn of them is in the other files. The stream drives the page: what an event may have changed
 * is asked for again, progress of the job comes with the stream, and nothing happens while the page
 * is hidden. Server data only ever becomes text (textContent), never markup. */
'use strict';

const STALE_MS = 45000,
  BROKEN_MS = 6000;
/* What runs comes first, then what waits, then what is over; of each the newest, and what is not
 * shown is counted. */
const KINDS = [
  ['running,recovering,starting,stopping', 1000],
  ['queued,paused', 200],
  ['completed,failed,cancelled', 100],
];
const RANKS = 256,
  NODES = 1000,
  CHECKPOINTS = 1000;
const state = {
  job: null,
  doc: null, // of that job
  label: null, // only jobs with it; null: all
  jobs: new Map(),
  stream: null,
  followed: null,
  broken: 0,
  signedOut: false,
};

function signedOut(on) {
  state.signedOut = loading.stopped = on;
  $('login').hidden = !on;
  document.body.classList.toggle('signed-out', on);
}

/* What the address says: #JOB?label=LABEL, both optional. It is kept up to date, so that a link
 * shows the same. */
function address() {
  const [job, query] = location.hash.slice(1).split('?');
  return {
    job: /^j-\d+$/.test(job) ? job : null,
    label: new URLSearchParams(query).get('label') || null,
  };
}

function keepAddress() {
  const query = state.label === null ? '' : `?label=${encodeURIComponent(state.label)}`;
  history.replaceState(null, '', `#${state.job || ''}${query}`);
}

function filterJobs(label) {
  state.label = label;
  keepAddress();
  due('jobs');
}

/* A list for each of these kinds; null: the label of the address is none, then all are due. */
async function getJobs(kinds) {
  const label = state.label,
    query = label === null ? '' : `&label=${encodeURIComponent(label)}`;
  try {
    return await Promise.all(
      kinds.map(([states, n]) => get(`/v1/jobs?state=${states}&limit=${n}&last=1${query}`)),
    );
  } catch (e) {
    if (e.status !== 400 || label === null) throw e;
    if (label === state.label) filterJobs(null);
    return null;
  }
}

async function loadJobs() {
  const label = state.label,
    [cluster, kinds] = await Promise.all([get('/v1/cluster'), getJobs(KINDS)]);
  if (!kinds || label !== state.label) return due('jobs');
  const items = kinds.flatMap((k) => k.items.slice().reverse()),
    before = state.job;
  state.jobs = new Map(items.map((j) => [j.id, j]));
  drawCluster(cluster);
  drawJobs(
    items,
    cluster.jobs,
    kinds.reduce((n, k) => n + k.earlier, 0),
  );
  topics.running.at = Date.now() + topics.running.every;
  if (state.job !== before) jobDue();
  else if (state.job) follow();
}

/* Of running jobs the list has what moves. */
async function loadRunning() {
  const lists = await getJobs([KINDS[0]]);
  if (!lists) return;
  const { items } = lists[0];
  if (items.length !== [...state.jobs.values()].filter((j) => KINDS[0][0].includes(j.state)).length)
    return due('jobs');
  for (const j of items) drawMoving(j);
}

async function loadNodes() {
  const [nodes, cluster] = await Promise.all([get(`/v1/nodes?limit=${NODES}`), get('/v1/cluster')]);
  drawCluster(cluster);
  drawNodes(nodes.items, cluster.nodes);
}

async function loadCount() {
  const events = await get('/v1/events?last=1', false);
  log.total = events.items.length + events.earlier;
  log.asOf = events.items.length ? events.items[0].seq : 0;
  countEvents();
}

/* fn(job, base): draws something of the job that is looked at. */
async function ofJob(fn) {
  const id = state.job,
    base = '/v1/jobs/' + encodeURIComponent(id);
  if (!id) return;
  try {
    const job = await get(base);
    if (id !== state.job) return;
    state.doc = job;
    await fn(job, base);
  } catch (e) {
    if (e.status !== 404) throw e;
    if (id !== state.job) return;
    state.job = state.doc = null;
    $('job').hidden = true;
  }
}

const mine = (job) => job.id === state.job;

async function loadJob(job, base) {
  const [why, report] = await Promise.all([get(base + '/why'), get(base + '/report')]);
  if (!mine(job)) return;
  $('job').hidden = false;
  setText('job-title', `${job.id} ${job.name}`);
  drawJobLine(job);
  drawPlan(job.plan);
  drawWhy(job, why);
  drawLedger(report);
}

async function loadRanks(job, base) {
  const ranks = await get(base + `/ranks?limit=${RANKS}`);
  if (mine(job)) drawRanks(job, ranks);
}

async function loadCheckpoints(job, base) {
  const checkpoints = await get(base + `/checkpoints?limit=${CHECKPOINTS}&last=1`);
  if (!mine(job)) return;
  drawCheckpoints(job, checkpoints);
  curve.saved = checkpoints.items.map((c) => c.iteration);
}

topic('jobs', 300, loadJobs);
topic('running', 30, loadRunning);
topic('nodes', 120, loadNodes);
topic('count', 3600, loadCount, true);
topic('job', 120, () => ofJob(loadJob));
topic('ranks', 30, () => ofJob(loadRanks));
topic('checkpoints', 120, () => ofJob(loadCheckpoints));
topic('curve', 60, () =>
  ofJob(async (job) => {
    await loadCurve(job);
    if (mine(job)) drawCurves(job);
  }),
);
topic('matrix', 120, () =>
  ofJob(async (job) => {
    await loadMatrix(job);
    if (mine(job)) drawMatrix();
  }),
);

function jobDue() {
  for (const name of ['job', 'ranks', 'checkpoints', 'curve', 'matrix']) topics[name].at = 0;
  follow();
  plan();
}

loading.after = (failed) => {
  if (!failed) signedOut(false);
  else if (failed.status === 401) signedOut(true);
  if (!failed) follow();
  age();
};

/* Which topics an event touches. */
function touch(e) {
  const [noun] = e.type.split('.');
  if (e.type === 'events.gone' || noun === 'controller') return dueAll();
  if (noun === 'job') due('jobs');
  if (e.job === state.job) {
    if (noun === 'checkpoint') due('checkpoints');
    else due('job', 'ranks', 'matrix');
    if (noun === 'job') due('curve');
  }
  if (e.node && noun !== 'rank' && noun !== 'checkpoint') due('nodes');
}

/* What the stream tells of the job that is looked at, or a list of one that runs. */
function drawMoving(j) {
  const row = state.jobs.get(j.id);
  if (!row) return;
  Object.assign(row, j);
  const tr = document.querySelector(`#jobs tr[data-key="${j.id}"]`);
  if (tr) jobCells(row).forEach((c, k) => put(tr.cells[1 + k], c));
}

function onProgress(p) {
  const job = state.doc;
  if (!job || p.job !== state.job) return;
  if (p.state !== job.state || p.attempt !== job.attempt) due('jobs', 'job', 'ranks', 'curve');
  const s = p.sample || {},
    known = (name) => s[name] ?? job[name];
  Object.assign(job, {
    iteration: p.iteration,
    eta_s: p.eta_s,
    loss: known('loss'),
    tokens_per_s_per_gpu: known('tokens_per_s_per_gpu'),
    mfu: known('mfu'),
  });
  drawMoving(job);
  drawJobLine(job);
  if (!p.sample) return;
  addSample(p.job, p.sample);
  if (curve.doc && curve.job === p.job) drawCurves(job);
}

/* One stream. The browser connects again by itself after a cut and says the last event it saw; an
 * answer that is no stream ends it, and the next load opens another. */
function follow() {
  if (document.hidden || state.signedOut) return;
  if (state.stream && state.followed === state.job) return;
  unfollow();
  const from = log.lastSeq ? `after=${log.lastSeq}` : 'last=100',
    stream = new EventSource(
      `/v1/events?follow=1&${from}` + (state.job ? `&progress=${state.job}` : ''),
    );
  state.stream = stream;
  state.followed = state.job;
  stream.onopen = () => {
    if (state.broken) dueAll(); // what happened meanwhile is not only events
    state.broken = 0;
    loading.lastData = Date.now();
  };
  stream.onmessage = (m) => {
    const e = JSON.parse(m.data);
    loading.lastData = Date.now();
    if (!addEvent(e)) return;
    countEvents();
    if (e.seq > log.asOf) touch(e);
  };
  stream.addEventListener('progress', (m) => {
    loading.lastData = Date.now();
    onProgress(JSON.parse(m.data));
  });
  stream.onerror = () => {
    if (state.stream !== stream) return;
    if (!state.broken) state.broken = Date.now();
    if (stream.readyState === EventSource.CLOSED) state.stream = null;
    due('running');
  };
}

function unfollow() {
  if (state.stream) state.stream.close();
  state.stream = null;
}

function age() {
  const now = Date.now(),
    ms = now - loading.lastData,
    failed = loading.failed,
    bad =
      !state.signedOut &&
      !document.hidden &&
      (failed ||
        (state.broken && now - state.broken > BROKEN_MS) ||
        (loading.lastData && ms > STALE_MS));
  setText(
    'fresh',
    state.signedOut
      ? 'not signed in'
      : loading.lastData
        ? `data ${Math.floor(ms / 1000)} s old`
        : 'connecting',
  );
  $('banner').hidden = !bad;
  if (!bad) return;
  const how = !failed
      ? ''
      : failed.status
        ? ` (${failed.message})`
        : ` (${failed.name === 'TimeoutError' ? 'too slow' : 'no connection'})`,
    since = loading.lastData
      ? ` since ${new Date(loading.lastData).toLocaleTimeString('en-GB')}; what you see is old`
      : '';
  setText(
    'banner',
    `The controller does not answer${how}${since}. Trying again; jobs keep training meanwhile.`,
  );
}

function select(id) {
  state.job = id;
  state.doc = null;
  keepAddress();
  for (const tr of $('jobs').tBodies[0].rows)
    tr.setAttribute('aria-selected', String(tr.dataset.key === id));
  jobDue();
}

function start() {
  const { job, label } = address();
  state.label = label;
  state.job = job || state.job;
  signedOut(false);
  dueAll();
}

/* A link of `moectl local up`: its code is good once and leaves the address at once. */
async function signInByLink() {
  const code = (location.hash.match(/^#sign-in=([0-9a-f]+)$/) || [])[1];
  if (!code) return;
  history.replaceState(null, '', location.pathname);
  try {
    const r = await fetch('/v1/session/use', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ code }),
    });
    if (!r.ok)
      $('login-error').textContent =
        'This link was used already or is too old: moectl local up prints a new one.';
  } catch (e) {
    $('login-error').textContent = 'The controller does not answer.';
  }
}

$('login-form').addEventListener('submit', async (ev) => {
  ev.preventDefault();
  const token = $('token').value.trim();
  $('token').value = '';
  try {
    const r = await fetch('/v1/session', {
      method: 'POST',
      headers: { Authorization: 'Bearer ' + token },
    });
    $('login-error').textContent = r.ok
      ? ''
      : 'This token is not valid. Ask for one made with: moectl token create --role viewer';
    if (r.ok) start();
  } catch (e) {
    $('login-error').textContent = 'The controller does not answer.';
  }
});
$('jobs-all').addEventListener('click', () => filterJobs(null));
$('curve-other').addEventListener('change', () => due('curve'));
$('curve-log').addEventListener('change', () => state.doc && drawCurves(state.doc));
$('matrix-metric').addEventListener('change', () => due('matrix'));
$('matrix').addEventListener('pointermove', pointAt);
$('matrix-walk').addEventListener('keydown', walk);
$('matrix-stages-box').addEventListener('toggle', () => heat.doc && drawStages(heat.doc));
$('curve-values').addEventListener('toggle', () => curve.doc && drawCurveTable());

function redraw() {
  dropPlots();
  if (state.doc && curve.job === state.job) drawCurves(state.doc);
  if (heat.job === state.job) drawMatrix();
}

let resized = null;
window.addEventListener('resize', () => {
  clearTimeout(resized);
  resized = setTimeout(redraw, SOON_MS);
});
for (const media of ['(prefers-color-scheme: dark)', 'print'])
  matchMedia(media).addEventListener('change', redraw);
window.addEventListener('hashchange', () => {
  if (location.hash.startsWith('#sign-in=')) {
    signInByLink().then(start);
    return;
  }
  const to = address();
  if (to.label !== state.label) filterJobs(to.label);
  if (to.job) select(to.job);
});
document.addEventListener('visibilitychange', () => {
  if (document.hidden) return unfollow();
  dueAll();
});
setInterval(age, 1000);
signInByLink().then(start);
