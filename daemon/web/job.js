/* What is said of the job that is looked at: its line, plan, reasons and evidence, and where its
 * GPU time went. */
'use strict';

/* Each stands out of both themes' background, 3 to 1 (WCAG 1.4.11). */
const CATEGORIES = [
  ['productive', '#2e7d4f'],
  ['recompute', '#c77f12'],
  ['load', '#5b7fb5'],
  ['init', '#8a6fb0'],
  ['save', '#3c9aa8'],
  ['image', '#4d6b8a'],
  ['launch', '#7f8b2f'],
  ['detect', '#b5473c'],
  ['hang', '#b03a8c'],
  ['drain', '#776a52'],
  ['idle', '#68737f'],
];

/* What moves: of the job's document, or of the stream. */
function drawJobLine(job) {
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
  drawEvidence(job, why);
}

/* What a job that failed left behind, in place of curves that it may have none of. */
function drawEvidence(job, why) {
  const lines =
    job.state === 'failed' || job.state === 'recovering'
      ? why.reasons.flatMap((r) => r.evidence)
      : [];
  $('job-evidence-box').hidden = lines.length === 0;
  setText('job-evidence', lines.join('\n'));
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
