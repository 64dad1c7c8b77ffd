/* The tables of the page: jobs, nodes, and of the job that is looked at its ranks and
 * checkpoints. */
'use strict';

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

const labelText = (l) => `${l.key}=${l.value}`;

/* Its name, and below it its labels: a click shows the jobs that have one, another all again. */
function nameCell(td, j) {
  const labels = (j.labels || []).map(labelText),
    key = JSON.stringify([j.name, labels]);
  if (td.dataset.drawn !== key) {
    const buttons = labels.map((text) => {
      const b = document.createElement('button');
      b.className = 'label';
      b.textContent = text;
      b.title = 'Only jobs with this label';
      b.addEventListener('click', () => filterJobs(state.label === text ? null : text));
      return b;
    });
    td.dataset.drawn = key;
    td.className = 'name';
    td.replaceChildren(j.name, ...buttons);
  }
  for (const b of td.querySelectorAll('button'))
    b.setAttribute('aria-pressed', String(b.textContent === state.label));
}

/* All but its button. */
function jobCells(j) {
  return [
    ['', '', (td) => nameCell(td, j)],
    shown(j.state),
    [number(j.attempt), 'num'],
    [number(j.restarts), 'num'],
    [number(j.iteration) + (j.steps ? ' / ' + number(j.steps) : ''), 'num'],
    lossCell(j.loss),
    [number(j.tokens_per_s_per_gpu), 'num'],
    [j.checkpoint ? number(j.checkpoint.iteration) : '-', 'num'],
    [duration(j.eta_s), 'num'],
    [j.reason, 'wrap'],
  ];
}

/* Of the jobs of one label the lists say how many they leave out, of all jobs the cluster does. */
function jobsLeftOut(items, counts, earlier) {
  const left = Object.entries(counts)
      .map(([s, n]) => [s, n - items.filter((j) => j.state === s).length])
      .filter(([, n]) => n > 0),
    n = state.label === null ? left.reduce((sum, [, n]) => sum + n, 0) : earlier,
    states = left.map(([s, n]) => `${number(n)} ${s}`).join(', ');
  if (!(n > 0)) return '';
  return state.label === null
    ? `${number(n)} more are not shown: ${states} (moectl list --all)`
    : `${number(n)} more are not shown (moectl list --all --label ${state.label})`;
}

function drawJobs(items, counts, earlier) {
  $('jobs-empty').hidden = items.length > 0 || state.label !== null;
  $('jobs-label').hidden = state.label === null;
  setText('jobs-label-text', `${state.label}: ${number(items.length + earlier)}`);
  if (!state.job) state.job = address().job || items[0]?.id || null;
  more('jobs-more', jobsLeftOut(items, counts, earlier));
  fill(
    'jobs',
    items.map((j) => [
      j.id,
      jobCells(j),
      jobButton(j),
    ]),
  );
}

/* What somebody should look at comes first; node-2 before node-10. */
const natural = new Intl.Collator('en', { numeric: true }),
  STATES = ['down', 'suspect', 'drained', 'draining'],
  HEALTH = ['crit', 'warn'];

function oddness(n) {
  const state = STATES.indexOf(n.state),
    health = HEALTH.indexOf(n.health);
  return state >= 0 ? state : health >= 0 ? STATES.length + health : STATES.length + HEALTH.length;
}

function drawNodes(items, counts) {
  const n = Object.values(counts).reduce((sum, k) => sum + k, 0) - items.length;
  more('nodes-more', n > 0 ? `${number(n)} more nodes are not shown (moectl nodes)` : '');
  fill(
    'nodes',
    items
      .slice()
      .sort((a, b) => oddness(a) - oddness(b) || natural.compare(a.name, b.name))
      .map((n) => [
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

function bound(r) {
  if (r.bind_verified === true) return ['verified', 'state-verified'];
  return r.bind_verified === false
    ? ['NOT bound: ' + (r.bind_note || ''), 'wrap state-failed']
    : [r.bind_note || 'unknown', 'wrap'];
}

function drawRanks(job, ranks) {
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
}

function drawCheckpoints(job, checkpoints) {
  const none = checkpoints.items.length === 0;
  $('checkpoints-empty').hidden = !none;
  $('checkpoints').parentElement.hidden = none;
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
