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

/* All but its button. */
function jobCells(j) {
  return [
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
  ];
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
