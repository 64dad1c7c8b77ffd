/* Documents of /v1, and when they are asked for. Each is a topic: it is loaded soon after an event
 * that may have changed it, and slowly beside that. Of one that changes all the time a few loads
 * are quick and the others SLOW_MS apart; while the page is hidden there are none. What the server
 * still has as it was (304) is not sent again. */
'use strict';

const SOON_MS = 100,
  SLOW_MS = 5000,
  RETRY_MS = 2000,
  ANSWER_MS = 10000,
  QUICK = 10, // loads in a row; one more of them every QUICK_MS
  QUICK_MS = 10000;

class HttpError extends Error {
  constructor(path, status) {
    super(`${path}: HTTP ${status}`);
    this.status = status;
  }
}

const kept = new Map(), // path -> {tag, doc}
  asked = new Map(); // path -> promise of it

/* Whoever asks while it is asked for gets the same answer. */
function get(path, keep = true) {
  if (!asked.has(path)) asked.set(path, ask(path, keep).finally(() => asked.delete(path)));
  return asked.get(path);
}

async function ask(path, keep) {
  const have = kept.get(path),
    headers = { Accept: 'application/json' };
  if (have) headers['If-None-Match'] = have.tag;
  const r = await fetch(path, {
    credentials: 'same-origin',
    cache: 'no-store',
    headers,
    signal: AbortSignal.timeout(ANSWER_MS),
  });
  if (r.status === 304 && have) return have.doc;
  kept.delete(path);
  if (!r.ok) throw new HttpError(path, r.status);
  const doc = await r.json(),
    tag = r.headers.get('ETag');
  if (keep && tag) kept.set(path, { tag, doc });
  return doc;
}

/* name -> {every: milliseconds, load: async function, at: when it is to be loaded, first: before
 * all others that are due} */
const topics = {};
const loading = {
  now: false,
  stopped: false, // nobody is signed in
  timer: null,
  failed: null,
  lastData: 0,
  after: null,
};

function topic(name, seconds, load, first = false) {
  topics[name] = { every: seconds * 1000, load, first, at: 0, last: 0, quick: QUICK };
}

function plan() {
  clearTimeout(loading.timer);
  if (document.hidden || loading.now || loading.stopped) return;
  const at = Math.min(...Object.values(topics).map((t) => t.at));
  loading.timer = setTimeout(loadDue, Math.max(0, at - Date.now()));
}

/* It may have changed. */
function due(...names) {
  const now = Date.now();
  for (const name of names) {
    const t = topics[name];
    t.quick = Math.min(QUICK, t.quick + (now - t.last) / QUICK_MS);
    t.at = Math.min(t.at, t.quick >= 1 ? now + SOON_MS : Math.max(now, t.last + SLOW_MS));
  }
  plan();
}

function dueAll() {
  for (const t of Object.values(topics)) t.at = 0;
  plan();
}

async function loadDue() {
  if (document.hidden || loading.stopped) return;
  const now = Date.now(),
    all = Object.values(topics).filter((t) => t.at <= now),
    list = all.some((t) => t.first) ? all.filter((t) => t.first) : all;
  loading.now = true;
  for (const t of list) {
    t.quick = Math.max(0, Math.min(QUICK, t.quick + (now - t.last) / QUICK_MS) - 1);
    t.last = now;
    t.at = now + t.every;
  }
  try {
    await Promise.all(list.map((t) => t.load()));
    loading.failed = null;
    loading.lastData = Date.now();
  } catch (e) {
    loading.failed = e;
    for (const t of list) t.at = now + RETRY_MS;
  }
  loading.now = false;
  loading.after(loading.failed);
  plan();
}
