/* All ranks of a job as a picture: a cell each, a block of rows for each pipeline stage, in the
 * order of ranks (tp, then cp, then dp). Numbers are coloured by their distance from the median of
 * the stage in units of its spread, states by letter and colour. What the picture says is said in
 * words and a table too: it is not the only way to know it. */
'use strict';

const CELL_MAX = 22,
  CELL_LETTER = 11,
  CELL_MIN = 2,
  PICTURE_MAX = 520,
  STAGE_LABEL = 48;
const MAD_SIGMA = 1.4826,
  SIGMA_MIN = 0.02;
/* by letter: [colour of the cell, word is for whom to look at] */
const LETTERS = {
  r: '--cell-good',
  t: '--cell-good',
  s: '--cell-busy',
  e: '--cell-busy',
  i: '--cell-busy',
  c: '--cell-busy',
  l: '--cell-busy',
  w: '--cell-busy',
  x: '--cell-none',
  C: '--cell-bad',
  H: '--cell-bad',
  G: '--cell-bad',
  '-': '--cell-bad',
  '?': '--cell-none',
};
/* doc: the newest, of that job; cells: what is drawn, and of which doc; rank: where the keys are */
const heat = { job: null, doc: null, cells: null, rank: null };

/* All pages of it, one after the other: none keeps the controller long. */
async function loadMatrix(job) {
  const metric = $('matrix-metric').value,
    base = `/v1/jobs/${encodeURIComponent(job.id)}/matrix?metric=${metric}`;
  let doc = null,
    after = null;
  do {
    const page = await get(after === null ? base : `${base}&after=${after}`, after === null);
    if (!doc) doc = { ...page, legend: page.legend ? page.legend.map((l) => ({ ...l })) : null };
    else {
      if (doc.letters !== undefined) doc.letters += page.letters;
      if (doc.values) doc.values = doc.values.concat(page.values);
      page.legend?.forEach((l, i) => (doc.legend[i].ranks += l.ranks));
      doc.worst = doc.worst.concat(page.worst);
    }
    after = page.next;
  } while (after !== null);
  doc.worst.sort((a, b) => Math.abs(b.score ?? 0) - Math.abs(a.score ?? 0));
  doc.worst.splice(10);
  if (heat.job !== job.id) heat.rank = null;
  heat.job = job.id;
  heat.doc = doc;
}

function stages(doc) {
  const n = doc.ranks,
    pp = doc.sizes ? doc.sizes.pp : 1,
    each = Math.ceil(n / pp) || 1;
  return Array.from({ length: pp }, (_, k) => [k * each, Math.min(n, (k + 1) * each)]);
}

/* [x, y] of each rank for cells of that size. */
function layOut(doc, width, size) {
  const tp = doc.sizes ? doc.sizes.tp : 1,
    room = Math.max(1, Math.floor((width - STAGE_LABEL) / size)),
    across = room > tp ? room - (room % tp) : room,
    gap = doc.sizes && doc.sizes.pp > 1 ? 4 : 0;
  let y = 0;
  const blocks = stages(doc).map(([from, to]) => {
    const block = { from, to, y, rows: Math.ceil((to - from) / across) };
    y += block.rows * size + gap;
    return block;
  });
  return { size, across, blocks, height: y };
}

function fit(doc, width) {
  for (let size = CELL_MAX; ; size--) {
    const at = layOut(doc, width, size);
    if (at.height <= PICTURE_MAX || size === CELL_MIN) return at;
  }
}

const middle = (sorted) => sorted[sorted.length >> 1];

/* Of each rank how many deviations it is from its stage; null: not known. */
function scores(doc) {
  const z = Array(doc.values.length).fill(null);
  for (const [from, to] of stages(doc)) {
    const known = doc.values.slice(from, to).filter((v) => typeof v === 'number');
    if (!known.length) continue;
    const median = middle(known.slice().sort((a, b) => a - b)),
      spread = middle(known.map((v) => Math.abs(v - median)).sort((a, b) => a - b)),
      sigma = Math.max(MAD_SIGMA * spread, SIGMA_MIN * Math.abs(median)) || 1;
    for (let i = from; i < to; i++)
      if (typeof doc.values[i] === 'number') z[i] = (doc.values[i] - median) / sigma;
  }
  return z;
}

function scoreColour(z) {
  if (z === null) return '--cell-none';
  if (z >= 6) return '--cell-bad';
  if (z >= 3) return '--cell-high';
  if (z <= -6) return '--cell-lowest';
  if (z <= -3) return '--cell-low';
  return '--cell-good';
}

function paint(canvas, doc, width) {
  const at = fit(doc, width),
    ratio = window.devicePixelRatio || 1,
    ctx = canvas.getContext('2d'),
    z = doc.values ? scores(doc) : null,
    inks = {},
    ink = (name) => inks[name] || (inks[name] = colour(name));
  canvas.width = width * ratio;
  canvas.height = Math.max(1, at.height) * ratio;
  canvas.style.setProperty('height', `${Math.max(1, at.height)}px`);
  ctx.scale(ratio, ratio);
  ctx.textBaseline = 'middle';
  ctx.font = `${Math.min(13, at.size - 2)}px system-ui, sans-serif`;
  const inset = at.size >= 6 ? 1 : 0;
  for (const b of at.blocks) {
    ctx.fillStyle = ink('--dim');
    ctx.textAlign = 'left';
    if (at.blocks.length > 1 && b.rows * at.size >= 10) {
      ctx.font = '12px system-ui, sans-serif';
      ctx.fillText(`pp ${at.blocks.indexOf(b)}`, 0, b.y + Math.min(8, (b.rows * at.size) / 2));
      ctx.font = `${Math.min(13, at.size - 2)}px system-ui, sans-serif`;
    }
    ctx.textAlign = 'center';
    for (let r = b.from; r < b.to; r++) {
      const k = r - b.from,
        x = STAGE_LABEL + (k % at.across) * at.size,
        y = b.y + Math.floor(k / at.across) * at.size,
        letter = z ? null : doc.letters[r];
      ctx.fillStyle = ink(z ? scoreColour(z[r]) : LETTERS[letter] || '--cell-none');
      ctx.fillRect(x, y, at.size - inset, at.size - inset);
      if (letter && at.size >= CELL_LETTER) {
        ctx.fillStyle = ink(LETTERS[letter] === '--cell-bad' ? '--cell-bad-ink' : '--cell-ink');
        ctx.fillText(letter, x + (at.size - inset) / 2, y + at.size / 2);
      }
    }
  }
  heat.cells = { ...at, doc };
  if (heat.rank >= doc.ranks) heat.rank = null;
}

function coordsText(rank, sizes) {
  if (!sizes) return '';
  const { tp, cp, dp, ep, pp } = sizes,
    c = Math.floor(rank / tp) % cp,
    d = Math.floor(rank / (tp * cp)) % dp;
  return (
    ` (pp ${Math.floor(rank / (tp * cp * dp)) % pp} dp ${d} cp ${c} ` +
    `ep ${(d * cp + c) % ep} tp ${rank % tp})`
  );
}

const valueOf = (doc, v) => (doc.unit ? `${number(v, 1)} ${doc.unit}` : number(v));

function valueText(doc, rank) {
  if (!doc.values) return doc.legend.find((l) => l.letter === doc.letters[rank])?.name || '-';
  return valueOf(doc, doc.values[rank]);
}

function tellRank(rank) {
  const { doc } = heat.cells;
  setText('matrix-point', `rank ${rank}${coordsText(rank, doc.sizes)}: ${valueText(doc, rank)}`);
}

/* The rank below the pointer. */
function pointAt(ev) {
  const at = heat.cells,
    b = at && at.blocks.find((b) => ev.offsetY >= b.y && ev.offsetY < b.y + b.rows * at.size);
  if (!b) return;
  const column = Math.floor((ev.offsetX - STAGE_LABEL) / at.size),
    rank = b.from + Math.floor((ev.offsetY - b.y) / at.size) * at.across + column;
  if (column < 0 || column >= at.across || rank >= b.to) return;
  heat.rank = null;
  drawMark();
  tellRank(rank);
}

/* A frame round the rank where the keys are. */
function drawMark() {
  const at = heat.cells,
    mark = $('matrix-mark');
  mark.hidden = heat.rank === null;
  if (mark.hidden) return;
  const b = at.blocks.find((b) => heat.rank < b.to),
    k = heat.rank - b.from,
    px = {
      left: STAGE_LABEL + (k % at.across) * at.size,
      top: b.y + Math.floor(k / at.across) * at.size,
      width: at.size,
      height: at.size,
    };
  for (const name in px) mark.style.setProperty(name, `${px[name]}px`);
}

/* What the pointer does, by keys; the first of them shows where they are. With a modifier they are
 * the browser's. */
function walk(ev) {
  const at = heat.cells,
    step = {
      ArrowLeft: -1,
      ArrowRight: 1,
      ArrowUp: -at?.across,
      ArrowDown: at?.across,
      Home: -Infinity,
      End: Infinity,
    }[ev.key];
  if (!at || step === undefined || ev.altKey || ev.ctrlKey || ev.metaKey) return;
  ev.preventDefault();
  const to = heat.rank === null && ev.key !== 'End' ? 0 : heat.rank + step;
  heat.rank = Math.min(Math.max(to, 0), at.doc.ranks - 1);
  drawMark();
  $('matrix-mark').scrollIntoView({ block: 'nearest' });
  tellRank(heat.rank);
}

function summary(doc) {
  if (doc.legend)
    return doc.legend
      .filter((l) => l.ranks > 0)
      .map((l) => `${l.letter} ${l.name}: ${number(l.ranks)}`)
      .join(', ');
  const known = doc.values.filter((v) => typeof v === 'number').sort((a, b) => a - b);
  if (!known.length) return 'No rank has told of it.';
  return (
    `${number(known.length)} of ${number(doc.ranks)} ranks: least ${valueOf(doc, known[0])}, ` +
    `median ${valueOf(doc, middle(known))}, ` +
    `greatest ${valueOf(doc, known[known.length - 1])}. ` +
    'Coloured from 3 and from 6 deviations off the median of the pipeline stage.'
  );
}

/* The picture as numbers: a row for each pipeline stage, where somebody opened it. */
function drawStages(doc) {
  if (!$('matrix-stages-box').open) return;
  const z = doc.values ? scores(doc) : null;
  const told = (from, to) => {
    if (!z)
      return doc.legend
        .map((l) => [l.name, doc.letters.slice(from, to).split(l.letter).length - 1])
        .filter(([, n]) => n > 0)
        .map(([name, n]) => `${name}: ${number(n)}`)
        .join(', ');
    const known = doc.values.slice(from, to).filter((v) => typeof v === 'number'),
      off = (least) => z.slice(from, to).filter((s) => s !== null && Math.abs(s) >= least).length;
    if (!known.length) return 'not known';
    known.sort((a, b) => a - b);
    return (
      `least ${valueOf(doc, known[0])}, median ${valueOf(doc, middle(known))}, greatest ` +
      `${valueOf(doc, known[known.length - 1])}; from 3 deviations ${off(3)}, from 6 ${off(6)}`
    );
  };
  fill(
    'matrix-stages',
    stages(doc).map(([from, to], k) => [
      k,
      [[`pp ${k}`], [to - from > 1 ? `${from}-${to - 1}` : String(from)], [told(from, to), 'wrap']],
    ]),
  );
}

function drawMatrix() {
  const doc = heat.doc,
    none = !doc || doc.ranks === 0;
  $('matrix-box').hidden = none;
  const width = none ? 0 : $('matrix').parentElement.clientWidth; // 0 while hidden
  if (width <= STAGE_LABEL) return;
  paint($('matrix'), doc, width);
  setText('matrix-text', summary(doc));
  $('matrix').setAttribute('aria-label', `Ranks by ${doc.metric}: ${summary(doc)}`);
  drawStages(doc);
  drawMark();
  $('matrix-worst-box').hidden = doc.worst.length === 0;
  fill(
    'matrix-worst',
    doc.worst.map((w) => [
      w.rank,
      [
        [w.rank, 'num'],
        [w.node],
        [number(w.gpu), 'num'],
        [coordsText(w.rank, doc.sizes).trim()],
        w.word ? [w.word] : [valueOf(doc, w.value), 'num'],
        [number(w.median, 1), 'num'],
        [number(w.score, 1), 'num'],
      ],
    ]),
  );
}
