/* The dashboard: one page, REST documents as they are, one event stream. Here documents are asked
 * for, and jobs, streams and signing in are followed; draw.js, which is loaded before, draws them.
 * A refresh runs every 2 s and soon after an event, never two at once. Server data only ever
 * becomes text (textContent), never markup. */
'use strict';

const POLL_MS = 2000,
  SOON_MS = 250,
  ANSWER_MS = 10000,
  STALE_MS = 6000,
  EVENTS_KEPT = 200;
/* What runs comes first, then what waits, then what is over; of each the newest, and what is not
 * shown is counted. */
const KINDS = [
  ['running,recovering,starting,stopping', 1000],
  ['queued,paused', 200],
  ['completed,failed,cancelled', 100],
];
const RANKS = 256,
  NODES = 1000,
  SAMPLES = 1000,
  CHECKPOINTS = 1000;
const state = {
  job: null,
  charts: {},
  charted: null,
  lastSeq: 0,
  events: 0,
  lastData: 0,
  failed: null,
  refreshing: false,
  again: false,
  timer: null,
  stream: null,
  signedOut: false,
};
class HttpError extends Error {
  constructor(path, status) {
    super(`${path}: HTTP ${status}`);
    this.status = status;
  }
}

async function get(path) {
  const r = await fetch(path, {
    credentials: 'same-origin',
    headers: { Accept: 'application/json' },
    signal: AbortSignal.timeout(ANSWER_MS),
  });
  if (!r.ok) throw new HttpError(path, r.status);
  return r.json();
}

function signedOut(on) {
  state.signedOut = on;
  $('login').hidden = !on;
  document.body.classList.toggle('signed-out', on);
}

async function drawJob(id) {
  const base = '/v1/jobs/' + encodeURIComponent(id);
  const [job, why, metrics, ranks, checkpoints, report] = await Promise.all([
    get(base),
    get(base + '/why'),
    get(base + `/metrics?limit=${SAMPLES}&last=1`),
    get(base + `/ranks?limit=${RANKS}`),
    get(base + `/checkpoints?limit=${CHECKPOINTS}&last=1`),
    get(base + '/report'),
  ]);
  if (id !== state.job) return;
  $('job').hidden = false;
  setText('job-title', `${job.id} ${job.name}`);
  setText(
    'job-line',
    `${job.state}, attempt ${job.attempt}, iteration ${number(job.iteration)}` +
      `${job.steps ? ' of ' + number(job.steps) : ''}, loss ${number(job.loss, 4)}, ` +
      (job.tokens_per_s_per_gpu === null
        ? ''
        : `${number(job.tokens_per_s_per_gpu)} tokens/s/GPU, `) +
      (job.mfu === null ? '' : `MFU ${number(job.mfu * 100, 1)} %, `) +
      (job.nodes.length
        ? `on ${job.nodes.slice(0, 8).join(' ')}` +
          (job.nodes.length > 8 ? ` and ${job.nodes.length - 8} more` : '')
        : 'on no node'),
  );
  drawPlan(job.plan);
  drawWhy(job, why);
  drawCharts(job, metrics.items, metrics.earlier);
  drawLedger(report);
  fill(
    'ranks',
    ranks.items.map((r) => [
      r.rank,
      [
        [r.rank, 'num'],
        [r.node],
        [r.pid, 'num'],
        shown(r.state),
        [number(r.iteration), 'num'],
        [number(r.step_ms, 1), 'num'],
        [r.cpus, 'wrap'],
        bound(r),
      ],
    ]),
  );
  more(
    'ranks-more',
    job.ranks > ranks.items.length && ranks.next
      ? `${number(job.ranks - ranks.items.length)} more ranks are not shown ` +
          `(moectl ranks ${job.id})`
      : '',
  );
  more(
    'checkpoints-more',
    checkpoints.earlier > 0
      ? `${number(checkpoints.earlier)} earlier checkpoints are not shown ` +
          `(moectl checkpoints ${job.id})`
      : '',
  );
  fill(
    'checkpoints',
    checkpoints.items
      .slice()
      .reverse()
      .map((c) => [
        c.iteration,
        [[number(c.iteration), 'num'], shown(c.state), [clock(c.saved_at)], [c.reason, 'wrap']],
      ]),
  );
}

async function refreshOnce() {
  const [cluster, nodes, events, ...kinds] = await Promise.all([
    get('/v1/cluster'),
    get(`/v1/nodes?limit=${NODES}`),
    get('/v1/events?last=1'),
    ...KINDS.map(([states, n]) => get(`/v1/jobs?state=${states}&limit=${n}&last=1`)),
  ]);
  signedOut(false);
  state.events = events.items.length + events.earlier;
  countEvents();
  drawCluster(cluster);
  drawJobs(
    kinds.flatMap((k) => k.items.slice().reverse()),
    cluster.jobs,
  );
  drawNodes(nodes.items, cluster.nodes);
  if (state.job) {
    await drawJob(state.job).catch((e) => {
      if (e.status !== 404) throw e;
      state.job = null;
      $('job').hidden = true;
    });
  }
  if (!state.stream) follow();
}

async function refresh() {
  if (state.refreshing) {
    state.again = true;
    return;
  }
  clearTimeout(state.timer);
  state.timer = null;
  state.refreshing = true;
  state.again = false;
  try {
    await refreshOnce();
    state.failed = null;
    state.lastData = Date.now();
  } catch (e) {
    if (e.status === 401) signedOut(true);
    else
      state.failed = e.status
        ? e.message
        : e.name === 'TimeoutError'
          ? 'too slow'
          : 'no connection';
  }
  state.refreshing = false;
  age();
  if (state.again) soon(SOON_MS);
}

function soon(ms) {
  if (!state.timer) state.timer = setTimeout(refresh, ms);
}

/* The stream begins with the newest ones, and the list keeps as many as fit. */
function countEvents() {
  const shown = $('events').childElementCount,
    n = shown ? state.events - shown : 0;
  more('events-more', n > 0 ? `${number(n)} earlier events are not shown (moectl events)` : '');
}

function addEvent(e) {
  if (e.seq <= state.lastSeq && e.type !== 'events.gone') return;
  state.lastSeq = Math.max(state.lastSeq, e.seq);
  state.events++;
  const li = document.createElement('li'),
    t = document.createElement('time'),
    type = document.createElement('b'),
    list = $('events');
  li.dataset.seq = e.seq;
  t.dateTime = t.title = e.time;
  t.textContent = clock(e.time);
  type.textContent = e.type;
  li.append(
    t,
    ' ',
    type,
    `${e.job ? ' ' + e.job : ''}${e.node ? ' ' + e.node : ''}` +
      `${e.rank === null ? '' : ' rank ' + e.rank}: ${e.message || ''}`,
  );
  list.prepend(li);
  while (list.childElementCount > EVENTS_KEPT) list.lastElementChild.remove();
  countEvents();
  soon(SOON_MS);
}

/* One stream. The browser connects again by itself after a cut and says the last event it saw; an
 * answer that is no stream ends it, and the next refresh opens another. */
function follow() {
  state.stream = new EventSource('/v1/events?follow=1&last=100');
  state.stream.onmessage = (m) => addEvent(JSON.parse(m.data));
  state.stream.onerror = () => {
    if (state.stream && state.stream.readyState === EventSource.CLOSED) state.stream = null;
  };
}

function age() {
  const ms = Date.now() - state.lastData,
    bad =
      !state.signedOut && (state.failed || (state.lastData && ms > STALE_MS && !document.hidden));
  setText(
    'fresh',
    state.signedOut
      ? 'not signed in'
      : state.lastData
        ? `data ${Math.floor(ms / 1000)} s old`
        : 'connecting',
  );
  $('banner').hidden = !bad;
  if (!bad) return;
  const how = state.failed ? ` (${state.failed})` : '',
    since = state.lastData
      ? ` since ${new Date(state.lastData).toLocaleTimeString('en-GB')}; what you see is old`
      : '';
  setText(
    'banner',
    `The controller does not answer${how}${since}. Trying again; jobs keep training meanwhile.`,
  );
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
    if (r.ok) refresh();
  } catch (e) {
    $('login-error').textContent = 'The controller does not answer.';
  }
});
window.addEventListener('hashchange', () => {
  if (location.hash.startsWith('#sign-in=')) {
    signInByLink().then(refresh);
    return;
  }
  const m = location.hash.match(/^#(j-\d+)$/);
  if (m) {
    state.job = m[1];
    refresh();
  }
});
window.addEventListener('resize', () => soon(SOON_MS));
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
  dropCharts();
  refresh();
});
document.addEventListener('visibilitychange', () => {
  if (!document.hidden) refresh();
});
setInterval(age, 1000);
signInByLink().then(() => {
  setInterval(() => {
    if (!document.hidden && !state.signedOut) refresh();
  }, POLL_MS);
  refresh();
});
