/* The list of events. Neighbours of one kind, of ranks of one attempt, are one line, so that the
 * end of a large job pushes nothing out; data-from and data-seq say which events a line is. Server
 * data only ever becomes text. */
'use strict';

const EVENTS_KEPT = 200,
  RANKS_NAMED = 8;
/* asOf: what was asked for since then knows of the events up to this one */
const log = { lastSeq: 0, total: 0, folded: 0, asOf: 0 };

function ranksText(ranks) {
  const sorted = [...new Set(ranks)].sort((a, b) => a - b),
    parts = [];
  for (let i = 0, k; i < sorted.length; i = k + 1) {
    for (k = i; sorted[k + 1] === sorted[k] + 1; ) k++;
    parts.push(k > i ? `${sorted[i]}-${sorted[k]}` : `${sorted[i]}`);
  }
  return parts.slice(0, RANKS_NAMED).join(', ') + (parts.length > RANKS_NAMED ? ', ...' : '');
}

function eventLine(e) {
  const li = document.createElement('li'),
    t = document.createElement('time'),
    type = document.createElement('b'),
    text = document.createElement('span');
  t.dateTime = t.title = e.time;
  t.textContent = clock(e.time);
  type.textContent = e.type;
  text.textContent =
    `${e.job ? ' ' + e.job : ''}${e.node ? ' ' + e.node : ''}` +
    `${e.rank === null ? '' : ' rank ' + e.rank}: ${e.message || ''}`;
  li.append(t, ' ', type, text);
  li.dataset.from = li.dataset.seq = e.seq;
  if (e.rank !== null) {
    li.dataset.kind = `${e.type} ${e.job} ${e.attempt}`;
    li.ranks = [e.rank];
    li.first = e.message || '';
  }
  return li;
}

/* True: the newest line tells of it too now. */
function fold(e, li) {
  if (!li || e.rank === null || li.dataset.kind !== `${e.type} ${e.job} ${e.attempt}`) return false;
  li.ranks.push(e.rank);
  li.dataset.seq = e.seq;
  li.lastElementChild.textContent =
    ` ${e.job} \u00d7 ${number(new Set(li.ranks).size)} ranks (${ranksText(li.ranks)}); ` +
    `the first: ${li.first}`;
  log.folded++;
  return true;
}

/* False: it was there already. */
function addEvent(e) {
  const list = $('events');
  if (e.seq <= log.lastSeq && e.type !== 'events.gone') return false;
  log.lastSeq = Math.max(log.lastSeq, e.seq);
  log.total++;
  if (!fold(e, list.firstElementChild)) list.prepend(eventLine(e));
  while (list.childElementCount > EVENTS_KEPT) {
    log.folded -= (list.lastElementChild.ranks || [0]).length - 1;
    list.lastElementChild.remove();
  }
  return true;
}

/* The stream begins with the newest ones, and the list keeps as many as fit. */
function countEvents() {
  const shown = $('events').childElementCount + log.folded,
    n = shown ? log.total - shown : 0;
  more('events-more', n > 0 ? `${number(n)} earlier events are not shown (moectl events)` : '');
}
