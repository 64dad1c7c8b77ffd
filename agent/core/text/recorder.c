/* See recorder.h. The dump is a mapping: pg_config and pg_status (by group, mappings of values) and
 * entries (a list of mappings, the oldest first; of these frames and input_sizes are lists). What
 * it is by is how deep it stands and which key came last at each depth.
 *
 * What is over: a collective up to its group's last_completed_collective, or what the watchdog has
 * retired. `state` alone lies: one whose call has not come back from NCCL has no event yet that
 * could say that it is not over. Of what goes from rank to rank the group counts nothing, and of a
 * batch only the last entry is retired: with one that is, all before it are over. */
#include "agent/core/text/recorder.h"

#include <stdlib.h>
#include <string.h>

#include "agent/core/text/pickle.h"
#include "lib/base/buf.h"
#include "lib/base/idset.h"
#include "lib/base/parse.h"

#define GROUPS_MAX 1024
#define ENTRIES_MAX 100000
#define FRAMES_MAX 100000
#define CALLS_MAX 32 /* of one entry, the innermost */
#define DIMS_MAX 6
#define P2P_MAX 8 /* of one group */
#define NAME_MAX_BYTES 128
#define MEMBERS_BYTES 1000
#define RANK_MAX 65535

struct piece {
	const char *s;
	size_t n;
};
struct frame {
	size_t at;
	struct piece name, file;
	int64_t line;
};
struct entry {
	struct piece group, desc, op, dtype, state;
	int64_t seq, p2p_seq, created_ns;
	int64_t dims[DIMS_MAX];
	size_t n_dims, n_tensors;
	size_t calls[CALLS_MAX], n_calls;
	bool p2p, retired;
};
struct group {
	struct piece name, desc, ranks;
	int64_t enqueued, completed; /* MO_NONE: it does not say */
	size_t first;                /* index + 1 of the collective that it waits in */
	size_t p2p[P2P_MAX], n_p2p;  /* indexes */
};

enum key {
	K_OTHER,
	K_CONFIG,
	K_STATUS,
	K_ENTRIES,
	K_NAME,
	K_DESC,
	K_RANKS,
	K_ENQUEUED,
	K_COMPLETED,
	K_FRAMES,
	K_FILE,
	K_LINE,
	K_GROUP,
	K_SEQ,
	K_P2P_SEQ,
	K_OP,
	K_CREATED,
	K_SIZES,
	K_DTYPES,
	K_STATE,
	K_RETIRED,
	K_P2P,
	_K_N
};
static const char *const keys[_K_N] = {
	[K_OTHER] = "",
	[K_CONFIG] = "pg_config",
	[K_STATUS] = "pg_status",
	[K_ENTRIES] = "entries",
	[K_NAME] = "name",
	[K_DESC] = "desc",
	[K_RANKS] = "ranks",
	[K_ENQUEUED] = "last_enqueued_collective",
	[K_COMPLETED] = "last_completed_collective",
	[K_FRAMES] = "frames",
	[K_FILE] = "filename",
	[K_LINE] = "line",
	[K_GROUP] = "process_group",
	[K_SEQ] = "collective_seq_id",
	[K_P2P_SEQ] = "p2p_seq_id",
	[K_OP] = "profiling_name",
	[K_CREATED] = "time_created_ns",
	[K_SIZES] = "input_sizes",
	[K_DTYPES] = "input_dtypes",
	[K_STATE] = "state",
	[K_RETIRED] = "retired",
	[K_P2P] = "is_p2p",
};

/* Of a mapping: the key that came last, and how many of its values are still to come. */
struct level {
	enum key key;
	int left;
};
#define DEPTHS 6
struct dump {
	struct level levels[DEPTHS];
	struct group *groups;
	size_t n_groups;
	struct entry *entries;
	size_t n_entries;
	struct frame *frames;
	size_t n_frames;
	struct group *group; /* of pg_config and pg_status, which one it is about; NULL */
	bool is_one, broken;
};

static bool is(struct piece p, const char *word)
{
	return p.n == strlen(word) && memcmp(p.s, word, p.n) == 0;
}

static bool same(struct piece a, struct piece b)
{
	return a.n == b.n && (a.n == 0 || memcmp(a.s, b.s, a.n) == 0);
}

static struct piece piece_of(const struct pickle_item *item)
{
	return (struct piece){ item->kind == PICKLE_TEXT ? item->text : "",
			       item->kind == PICKLE_TEXT ? item->n : 0 };
}

static struct group *group_get(struct dump *d, struct piece name)
{
	for (size_t i = 0; i < d->n_groups; i++)
		if (same(d->groups[i].name, name))
			return &d->groups[i];
	if (d->n_groups == GROUPS_MAX || name.n == 0 || name.n > NAME_MAX_BYTES)
		return NULL;
	*MO_GROW(d->groups, d->n_groups) =
		(struct group){ .name = name, .enqueued = MO_NONE, .completed = MO_NONE };
	return &d->groups[d->n_groups - 1];
}

/* In a mapping keys and values take turns; a group is named by two values. True: it is a value. */
static bool is_value(struct dump *d, size_t depth, const struct pickle_item *item)
{
	struct level *l = &d->levels[depth];

	if (l->left > 0) {
		l->left--;
		return true;
	}
	d->broken |= item->kind != PICKLE_TEXT;
	l->key = K_OTHER;
	for (int k = K_OTHER + 1; k < _K_N; k++)
		if (is(piece_of(item), keys[k]))
			l->key = (enum key)k;
	l->left = l->key == K_GROUP ? 2 : 1;
	return false;
}

static void group_value(struct group *g, enum key key, const struct pickle_item *item)
{
	int64_t number = item->kind == PICKLE_INT ? item->number : MO_NONE;

	switch (key) {
	case K_DESC: g->desc = piece_of(item); break;
	case K_RANKS: g->ranks = piece_of(item); break;
	case K_ENQUEUED: g->enqueued = number; break;
	case K_COMPLETED: g->completed = number; break;
	default: break;
	}
}

static void entry_value(struct entry *e, const struct level *l, const struct pickle_item *item)
{
	int64_t number = item->kind == PICKLE_INT ? item->number : MO_NONE;

	switch (l->key) {
	case K_GROUP: *(l->left ? &e->group : &e->desc) = piece_of(item); break;
	case K_SEQ: e->seq = number; break;
	case K_P2P_SEQ: e->p2p_seq = number; break;
	case K_OP: e->op = piece_of(item); break;
	case K_CREATED: e->created_ns = number; break;
	case K_STATE: e->state = piece_of(item); break;
	case K_RETIRED: e->retired = number == 1; break;
	case K_P2P: e->p2p = number == 1; break;
	default: break;
	}
}

/* The last frame that begins before there; n_frames: none does. */
static size_t frame_before(const struct dump *d, size_t at)
{
	size_t low = 0, high = d->n_frames;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (d->frames[mid].at <= at)
			low = mid + 1;
		else
			high = mid;
	}
	return low ? low - 1 : d->n_frames;
}

/* A frame stands where it is named first, and is repeated by reference. */
static void call(struct dump *d, struct entry *e, const struct pickle_item *item)
{
	size_t at = item->again ? frame_before(d, item->at) : d->n_frames;

	d->levels[5] = (struct level){ 0 };
	if (!item->again && d->n_frames < FRAMES_MAX)
		*MO_GROW(d->frames, d->n_frames) = (struct frame){ .at = item->at };
	if (e->n_calls < CALLS_MAX && at < d->n_frames)
		e->calls[e->n_calls++] = at;
}

static void frame_value(struct dump *d, const struct pickle_item *item)
{
	struct frame *f = d->n_frames ? &d->frames[d->n_frames - 1] : NULL;

	if (!f || d->n_frames == FRAMES_MAX)
		return;
	switch (d->levels[5].key) {
	case K_NAME: f->name = piece_of(item); break;
	case K_FILE: f->file = piece_of(item); break;
	case K_LINE: f->line = item->kind == PICKLE_INT ? item->number : 0; break;
	default: break;
	}
}

static void entry_item(struct dump *d, const struct pickle_item *item)
{
	struct entry *e = d->n_entries ? &d->entries[d->n_entries - 1] : NULL;
	enum key key = d->levels[3].key;

	if (item->depth == 2) {
		d->broken |= item->kind != PICKLE_OTHER || d->n_entries == ENTRIES_MAX;
		if (!d->broken)
			*MO_GROW(d->entries, d->n_entries) =
				(struct entry){ .seq = MO_NONE, .p2p_seq = MO_NONE };
		d->levels[3] = (struct level){ 0 };
	} else if (!e) {
		return;
	} else if (item->depth == 3 && is_value(d, 3, item)) {
		entry_value(e, &d->levels[3], item);
	} else if (item->depth == 4 && key == K_FRAMES && item->kind == PICKLE_OTHER) {
		call(d, e, item);
	} else if (item->depth == 4 && key == K_SIZES) {
		e->n_tensors++;
	} else if (item->depth == 4 && key == K_DTYPES && !e->dtype.s) {
		e->dtype = piece_of(item);
	} else if (item->depth == 5 && key == K_FRAMES && is_value(d, 5, item)) {
		frame_value(d, item);
	} else if (item->depth == 5 && key == K_SIZES && item->kind == PICKLE_INT &&
		   e->n_tensors == 1 && e->n_dims < DIMS_MAX) {
		e->dims[e->n_dims++] = item->number;
	}
}

static void on_item(void *arg, const struct pickle_item *item)
{
	struct dump *d = arg;
	enum key section = d->levels[1].key;

	if (d->broken)
		return;
	if (item->depth == 1) {
		(void)is_value(d, 1, item);
		d->is_one |= d->levels[1].key == K_ENTRIES;
		d->levels[2] = (struct level){ 0 };
	} else if (section == K_ENTRIES && item->depth > 1) {
		entry_item(d, item);
	} else if ((section == K_CONFIG || section == K_STATUS) && item->depth == 2) {
		if (!is_value(d, 2, item))
			d->group = group_get(d, piece_of(item));
		d->levels[3] = (struct level){ 0 };
	} else if ((section == K_CONFIG || section == K_STATUS) && item->depth == 3) {
		if (is_value(d, 3, item) && d->group)
			group_value(d->group, d->levels[3].key, item);
	}
}

/* ---- what is not over ---- */

static void sort_out(struct dump *d)
{
	for (size_t i = 0; i < d->n_entries; i++) {
		const struct entry *e = &d->entries[i];
		struct group *g = group_get(d, e->group);

		if (!g)
			continue;
		if (!g->desc.s)
			g->desc = e->desc;
		if (e->retired)
			g->n_p2p = 0;
		else if (e->p2p && g->n_p2p < P2P_MAX)
			g->p2p[g->n_p2p++] = i;
		else if (!e->p2p && e->seq >= 0 &&
			 (g->completed != MO_NONE ? e->seq > g->completed
						  : !is(e->state, "completed")) &&
			 (!g->first || e->seq < d->entries[g->first - 1].seq))
			g->first = i + 1;
		if (!e->p2p && e->seq >= 0)
			g->enqueued = MO_MAX(g->enqueued, e->seq);
	}
}

/* ---- in words ---- */

/* As it may be shown: users name functions and files. NULL: it is empty. */
static char *shown(struct piece p, size_t most)
{
	char *text = p.n ? mo_strndup(p.s, MO_MIN(p.n, most)) : NULL;

	for (size_t i = 0; text && i < MO_MIN(p.n, most); i++)
		if (text[i] < ' ' || text[i] > '~')
			text[i] = '?';
	return text;
}

/* "[0, 1]" as "0-1"; NULL: it is none, or long. */
static char *members(struct piece p)
{
	_cleanup_(mo_idset_done) struct mo_idset set = { 0 };
	_cleanup_(mo_freep) char *text = mo_strndup(p.s, p.n), *list = NULL;
	const char *at = text;

	if (!text || p.n < 3 || text[0] != '[' || text[p.n - 1] != ']')
		return NULL;
	text[p.n - 1] = '\0';
	for (at++; *at;) {
		_cleanup_(mo_freep) char *word = mo_part(&at, ",");
		int64_t rank;

		if (mo_parse_i64(word + strspn(word, " "), 0, RANK_MAX, &rank) < 0)
			return NULL;
		mo_idset_add(&set, (size_t)rank);
	}
	list = mo_idset_format(&set);
	return *list && strlen(list) <= MEMBERS_BYTES ? TAKE_PTR(list) : NULL;
}

/* "nccl:all_reduce" */
static struct piece without_library(struct piece op)
{
	const char *colon = op.n ? memchr(op.s, ':', op.n) : NULL;
	size_t skip = colon ? (size_t)(colon - op.s) + 1 : 0;

	return (struct piece){ op.s + skip, op.n - skip };
}

static char *sizes(const struct entry *e)
{
	_cleanup_(mo_freep) char *dtype = shown(e->dtype, 32);
	struct mo_buf b = { 0 };

	if (e->n_tensors == 0)
		return NULL;
	for (size_t i = 0; i < e->n_dims; i++)
		mo_buf_printf(&b, "%s%lld", i ? "x" : "", (long long)e->dims[i]);
	mo_buf_printf(&b, "%s%s", e->n_dims ? " " : "", dtype ? dtype : "");
	return mo_buf_take(&b);
}

/* Installed packages and Python's own files say how it waits, not what for. */
static bool of_others(const struct frame *f)
{
	static const char *const parts[] = { "/site-packages/", "/dist-packages/", "/lib/python3" };

	for (size_t i = 0; i < ELEMENTSOF(parts); i++)
		if (f->file.n && memmem(f->file.s, f->file.n, parts[i], strlen(parts[i])))
			return true;
	return false;
}

/* "train_step (train.py:120)"; NULL: nothing is known of it. */
static char *place(const struct dump *d, const struct entry *e)
{
	const struct frame *f = e->n_calls ? &d->frames[e->calls[0]] : NULL;
	_cleanup_(mo_freep) char *file = NULL, *name = NULL;

	for (size_t i = 0; i < e->n_calls; i++)
		if (!of_others(&d->frames[e->calls[i]])) {
			f = &d->frames[e->calls[i]];
			break;
		}
	if (!f || !f->file.n)
		return NULL;
	const char *slash = memrchr(f->file.s, '/', f->file.n);
	size_t skip = slash ? (size_t)(slash - f->file.s) + 1 : 0;

	file = shown((struct piece){ f->file.s + skip, f->file.n - skip }, 96);
	name = shown(f->name, 96);
	return mo_printf("%s (%s:%lld)", name ? name : "?", file ? file : "?", (long long)f->line);
}

static void add_wait(const struct dump *d, const struct group *g, const struct entry *e,
		     int64_t now_ns, struct rank_recorder *ret)
{
	struct recorder_wait *w;

	if (ret->n_waits == RECORDER_WAITS_MAX)
		return;
	w = MO_ADD(ret, waits, &recorder_wait_desc);
	w->group = shown(g->name, NAME_MAX_BYTES);
	w->desc = shown(g->desc, NAME_MAX_BYTES);
	w->members = members(g->ranks);
	w->seq = g->completed + 1; /* which is known where there is no entry */
	w->age_ms = MO_NONE;
	if (!e)
		return;
	w->p2p = e->p2p;
	w->seq = e->p2p ? e->p2p_seq : e->seq;
	w->op = shown(without_library(e->op), NAME_MAX_BYTES);
	w->sizes = sizes(e);
	w->at = place(d, e);
	w->started = is(e->state, "started");
	if (e->created_ns > 0 && e->created_ns <= now_ns)
		w->age_ms = (now_ns - e->created_ns) / 1000000;
}

static void tell(struct dump *d, int64_t now_ns, struct rank_recorder *ret)
{
	struct mo_buf list = { 0 };

	for (size_t i = 0; i < d->n_groups; i++) {
		const struct group *g = &d->groups[i];
		_cleanup_(mo_freep) char *name = shown(g->name, NAME_MAX_BYTES);

		if (g->first)
			add_wait(d, g, &d->entries[g->first - 1], now_ns, ret);
		else if (g->completed >= 0 && g->enqueued > g->completed)
			add_wait(d, g, NULL, now_ns, ret);
		for (size_t k = 0; k < g->n_p2p; k++)
			add_wait(d, g, &d->entries[g->p2p[k]], now_ns, ret);
		if (!strpbrk(name, " =") && list.len + strlen(name) + 24 < RECORDER_GROUPS_MAX)
			mo_buf_printf(&list, "%s%s=%lld", list.len ? " " : "", name,
				      (long long)MO_MAX(g->enqueued, 0));
	}
	ret->enqueued = mo_buf_take(&list);
}

const char *recorder_read(const void *data, size_t n, int64_t now_ns, struct rank_recorder *ret)
{
	struct dump d = { .groups = NULL };
	const char *why = pickle_walk(data, n, on_item, &d);

	if (!why && (d.broken || !d.is_one))
		why = "it is no dump of a flight recorder";
	if (!why) {
		sort_out(&d);
		tell(&d, now_ns, ret);
	}
	free(d.groups);
	free(d.entries);
	free(d.frames);
	return why;
}
