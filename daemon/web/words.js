/* Numbers, times and tables as people read them. Rows and cells are reused, so that focus and
 * scroll position stay. Server data only ever becomes text (textContent), never markup. */
'use strict';

const $ = (id) => document.getElementById(id);
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

/* A cell is [text, class], or has a function that draws into it as its third; shown(s) is the cell
 * of a state. */
function shown(s) {
  return [s, 'state-' + String(s).replace(/[^a-z]/g, '')];
}

function put(td, [text, cls, draw]) {
  if (draw) return draw(td);
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

/* How many of a table are not there, and what lists them; text empty: none. */
function more(id, text) {
  $(id).hidden = !text;
  setText(id, text);
}
