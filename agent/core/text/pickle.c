/* See pickle.h. An instruction is a byte and its argument; the table says how long that is and
 * what it takes from and gives to the stack, so that what is cut, or is none, is found by the
 * first instruction that cannot be: an unknown byte, an argument beyond the end, a stack that is
 * too short, a reference to nothing. */
#include "agent/core/text/pickle.h"

#include <string.h>

#include "lib/base/assert.h"
#include "lib/base/parse.h"
#include "lib/base/util.h"

#define MEMO_MAX (16u << 20)
#define MARKS_MAX (1u << 20)

enum argument { NONE, BYTES1, BYTES2, BYTES4, BYTES8, LINE, LINES2, LEN1, LEN4, LEN8 };
enum act { PLAIN, TEXT, NUMBER, TO_MARK, SET_MARK, PUT, GET, MEMOIZE, STOP, SKIP };
/* takes: of TO_MARK those below the mark */
struct op {
	bool known;
	uint8_t argument, act;
	int8_t takes, gives;
};

#define OP(c, arg, a, t, g) [c] = { true, arg, a, t, g }
static const struct op ops[256] = {
	OP('(', NONE, SET_MARK, 0, 0), OP('.', NONE, STOP, 1, 0),
	OP('0', NONE, PLAIN, 1, 0),    OP('1', NONE, TO_MARK, 0, 0),
	OP('2', NONE, PLAIN, 1, 2),    OP('F', LINE, PLAIN, 0, 1),
	OP('I', LINE, NUMBER, 0, 1),   OP('J', BYTES4, NUMBER, 0, 1),
	OP('K', BYTES1, NUMBER, 0, 1), OP('L', LINE, NUMBER, 0, 1),
	OP('M', BYTES2, NUMBER, 0, 1), OP('N', NONE, PLAIN, 0, 1),
	OP('P', LINE, PLAIN, 0, 1),    OP('Q', NONE, PLAIN, 1, 1),
	OP('R', NONE, PLAIN, 2, 1),    OP('S', LINE, TEXT, 0, 1),
	OP('T', LEN4, TEXT, 0, 1),     OP('U', LEN1, TEXT, 0, 1),
	OP('V', LINE, TEXT, 0, 1),     OP('X', LEN4, TEXT, 0, 1),
	OP('a', NONE, PLAIN, 2, 1),    OP('b', NONE, PLAIN, 2, 1),
	OP('c', LINES2, PLAIN, 0, 1),  OP('d', NONE, TO_MARK, 0, 1),
	OP('}', NONE, PLAIN, 0, 1),    OP('e', NONE, TO_MARK, 1, 1),
	OP('g', LINE, GET, 0, 1),      OP('h', BYTES1, GET, 0, 1),
	OP('j', BYTES4, GET, 0, 1),    OP('i', LINES2, TO_MARK, 0, 1),
	OP('l', NONE, TO_MARK, 0, 1),  OP(']', NONE, PLAIN, 0, 1),
	OP('o', NONE, TO_MARK, 0, 1),  OP('p', LINE, PUT, 1, 1),
	OP('q', BYTES1, PUT, 1, 1),    OP('r', BYTES4, PUT, 1, 1),
	OP('s', NONE, PLAIN, 3, 1),    OP('t', NONE, TO_MARK, 0, 1),
	OP(')', NONE, PLAIN, 0, 1),    OP('u', NONE, TO_MARK, 1, 1),
	OP('G', BYTES8, PLAIN, 0, 1),  OP('B', LEN4, PLAIN, 0, 1),
	OP('C', LEN1, PLAIN, 0, 1),    OP(0x80, BYTES1, SKIP, 0, 0),
	OP(0x81, NONE, PLAIN, 2, 1),   OP(0x82, BYTES1, PLAIN, 0, 1),
	OP(0x83, BYTES2, PLAIN, 0, 1), OP(0x84, BYTES4, PLAIN, 0, 1),
	OP(0x85, NONE, PLAIN, 1, 1),   OP(0x86, NONE, PLAIN, 2, 1),
	OP(0x87, NONE, PLAIN, 3, 1),   OP(0x88, NONE, NUMBER, 0, 1),
	OP(0x89, NONE, NUMBER, 0, 1),  OP(0x8a, LEN1, NUMBER, 0, 1),
	OP(0x8b, LEN4, PLAIN, 0, 1),   OP(0x8c, LEN1, TEXT, 0, 1),
	OP(0x8d, LEN8, TEXT, 0, 1),    OP(0x8e, LEN8, PLAIN, 0, 1),
	OP(0x8f, NONE, PLAIN, 0, 1),   OP(0x90, NONE, TO_MARK, 1, 1),
	OP(0x91, NONE, TO_MARK, 0, 1), OP(0x92, NONE, PLAIN, 3, 1),
	OP(0x93, NONE, PLAIN, 2, 1),   OP(0x94, NONE, MEMOIZE, 1, 1),
	OP(0x95, BYTES8, SKIP, 0, 0),  OP(0x96, LEN8, PLAIN, 0, 1),
	OP(0x97, NONE, PLAIN, 0, 1),   OP(0x98, NONE, PLAIN, 1, 1),
};

/* What a memo entry holds: a text by its place, or something else and where it was put. */
struct memo {
	const char *text;
	size_t n, at;
	bool set;
};
struct walk {
	const unsigned char *data;
	size_t n, at, from; /* from: where the instruction begins */
	/* put: how many were put, which names the next one of MEMOIZE */
	struct memo *memo;
	size_t n_memo, memo_room, put;
	size_t *marks, n_marks, marks_room;
	size_t depth;
	/* the text that was pushed last, as long as nothing else was */
	struct memo top;
	pickle_fn *fn;
	void *arg;
};

static const char cut[] = "it is cut short", garbage[] = "it is no whole pickle";

static void walk_done(struct walk *w)
{
	free(w->memo);
	free(w->marks);
}

static uint64_t little(const unsigned char *p, size_t n)
{
	uint64_t v = 0;

	mo_assert(n <= 8);
	for (size_t i = n; i > 0; i--)
		v = v << 8 | p[i - 1];
	return v;
}

/* Bytes of the argument proper: *ret_n of them at *ret; moves behind it. */
static bool take_argument(struct walk *w, enum argument kind, const unsigned char **ret,
			  size_t *ret_n)
{
	static const size_t sizes[] = { [BYTES1] = 1, [BYTES2] = 2, [BYTES4] = 4, [BYTES8] = 8,
					[LEN1] = 1,   [LEN4] = 4,   [LEN8] = 8 };
	size_t left = w->n - w->at, n = 0;

	*ret = w->data + w->at;
	if (kind == LINE || kind == LINES2) {
		for (int lines = kind == LINES2 ? 2 : 1; lines > 0; lines--) {
			const unsigned char *end =
				left > n ? memchr(*ret + n, '\n', left - n) : NULL;
			if (!end)
				return false;
			n = (size_t)(end - *ret) + 1;
		}
		*ret_n = n - 1;
		w->at += n;
		return true;
	}
	n = kind == NONE ? 0 : sizes[kind];
	if (left < n)
		return false;
	*ret_n = n;
	if (kind >= LEN1) {
		uint64_t bytes = little(*ret, n);
		if (bytes > left - n)
			return false;
		*ret += n;
		*ret_n = (size_t)bytes;
		n += (size_t)bytes;
	}
	w->at += n;
	return true;
}

static void tell(const struct walk *w, enum pickle_kind kind, const struct memo *what,
		 int64_t number)
{
	struct pickle_item item = {
		.kind = kind, .number = number, .at = w->from, .depth = w->n_marks
	};

	if (what) {
		item.again = what->set;
		item.at = what->at;
	}
	if (kind == PICKLE_TEXT) {
		item.text = what->text;
		item.n = what->n;
		item.at = (size_t)(what->text - (const char *)w->data);
	}
	if (w->fn)
		w->fn(w->arg, &item);
}

static bool line_number(const unsigned char *p, size_t n, int64_t *ret)
{
	_cleanup_(mo_freep) char *text =
		mo_strndup((const char *)p, n > 0 && p[n - 1] == 'L' ? n - 1 : n);

	return mo_parse_i64(text, INT64_MIN + 1, INT64_MAX, ret) == 0;
}

static void push_number(struct walk *w, unsigned char op, const unsigned char *p, size_t n)
{
	int64_t v = 0;
	bool known = true;

	if (op == 0x88 || op == 0x89)
		v = op == 0x88;
	else if (op == 'I' || op == 'L')
		known = line_number(p, n, &v);
	else if (op == 0x8a) /* two's complement of any length */
		v = n > 0 && n <= 8 ? (int64_t)(little(p, n) << (64 - 8 * n)) >> (64 - 8 * n) : 0,
		known = n <= 8;
	else
		v = op == 'J' ? (int32_t)little(p, 4) : (int64_t)little(p, n);
	tell(w, known ? PICKLE_INT : PICKLE_OTHER, NULL, v);
}

static bool put(struct walk *w, uint64_t index)
{
	if (index >= MEMO_MAX || index > w->n)
		return false;
	if (index >= w->memo_room) {
		size_t room = MO_MAX((size_t)index + 1, 2 * w->memo_room + 64);
		w->memo = mo_realloc_array(w->memo, room, sizeof(*w->memo));
		memset(w->memo + w->memo_room, 0, (room - w->memo_room) * sizeof(*w->memo));
		w->memo_room = room;
	}
	w->put += !w->memo[index].set;
	w->memo[index] = w->top;
	w->memo[index].at = w->from;
	w->memo[index].set = true;
	return true;
}

static bool get(struct walk *w, uint64_t index)
{
	if (index >= w->memo_room || !w->memo[index].set)
		return false;
	w->top = w->memo[index];
	tell(w, w->top.text ? PICKLE_TEXT : PICKLE_OTHER, &w->top, 0);
	return true;
}

static bool mark(struct walk *w)
{
	if (w->n_marks >= MARKS_MAX)
		return false;
	if (w->n_marks == w->marks_room) {
		w->marks_room = 2 * w->marks_room + 16;
		w->marks = mo_realloc_array(w->marks, w->marks_room, sizeof(*w->marks));
	}
	w->marks[w->n_marks++] = w->depth;
	return true;
}

/* The number of PUT and GET; UINT64_MAX = none. */
static uint64_t index_of(const struct op *op, const unsigned char *p, size_t n)
{
	int64_t v;

	if (op->argument != LINE)
		return little(p, n);
	return line_number(p, n, &v) && v >= 0 ? (uint64_t)v : UINT64_MAX;
}

static bool stack_moves(struct walk *w, const struct op *op)
{
	size_t floor = w->n_marks ? w->marks[w->n_marks - 1] : 0;

	if (op->act == TO_MARK) {
		if (w->n_marks == 0 || w->depth < floor)
			return false;
		w->depth = floor;
		w->n_marks--;
		floor = w->n_marks ? w->marks[w->n_marks - 1] : 0;
	}
	if (w->depth - floor < (size_t)op->takes)
		return false;
	w->depth = w->depth - (size_t)op->takes + (size_t)op->gives;
	return true;
}

static bool step(struct walk *w, unsigned char c, const struct op *op, const unsigned char *p,
		 size_t n)
{
	struct memo text = { 0 };

	if (op->act == MEMOIZE)
		return w->depth > 0 && put(w, w->put);
	if (op->act == PUT)
		return w->depth > 0 && put(w, index_of(op, p, n));
	if (op->act == SKIP)
		return true;
	if (!stack_moves(w, op))
		return false;
	w->top = text;
	switch (op->act) {
	case SET_MARK: return mark(w);
	case GET: return get(w, index_of(op, p, n));
	case TEXT:
		text = (struct memo){ (const char *)p, n, 0, false };
		tell(w, PICKLE_TEXT, &text, 0);
		w->top = text;
		return true;
	case NUMBER: push_number(w, c, p, n); return true;
	default:
		if (op->gives > 0 && op->takes == 0 && op->act == PLAIN)
			tell(w, PICKLE_OTHER, NULL, 0);
		return true;
	}
}

static const char *walk(struct walk *w)
{
	while (w->at < w->n) {
		unsigned char c = w->data[w->at];
		const struct op *op = &ops[c];
		const unsigned char *p;
		size_t n;

		w->from = w->at++;
		if (!op->known)
			return garbage;
		if (!take_argument(w, (enum argument)op->argument, &p, &n))
			return cut;
		if (!step(w, c, op, p, n))
			return garbage;
		if (op->act == STOP)
			return w->depth == 0 && w->n_marks == 0
				       ? w->at == w->n ? NULL : "something lies behind its end"
				       : garbage;
	}
	return cut;
}

const char *pickle_walk(const void *data, size_t n, pickle_fn *fn, void *arg)
{
	struct walk w = { .data = data, .n = n, .fn = fn, .arg = arg };
	const char *damage = walk(&w);

	assert(data || n == 0);
	walk_done(&w);
	return damage;
}

/* ---- numbers by name ---- */

/* due: index + 1 of the name that came last */
struct numbers {
	char *const *names;
	size_t n;
	int64_t *values;
	size_t due;
};

static void number_item(void *arg, const struct pickle_item *item)
{
	struct numbers *s = arg;

	if (s->due > 0 && item->kind == PICKLE_INT && s->values[s->due - 1] < 0)
		s->values[s->due - 1] = item->number;
	s->due = 0;
	for (size_t i = 0; item->kind == PICKLE_TEXT && i < s->n; i++)
		if (strlen(s->names[i]) == item->n && memcmp(s->names[i], item->text, item->n) == 0)
			s->due = i + 1;
}

bool pickle_numbers(const void *data, size_t n, char *const *names, size_t n_names, int64_t *ret)
{
	struct numbers s = { .names = names, .n = n_names, .values = ret };

	for (size_t i = 0; i < n_names; i++)
		ret[i] = -1;
	return !pickle_walk(data, n, number_item, &s);
}

/* ---- a number behind words ---- */

/* words: those still to be seen; due: the last one just was */
struct behind {
	const char *words;
	bool due;
	int64_t number;
};

static void behind_item(void *arg, const struct pickle_item *item)
{
	struct behind *b = arg;
	size_t n = strcspn(b->words, " ");

	if (b->due && b->number < 0 && item->kind == PICKLE_INT)
		b->number = item->number;
	b->due = false;
	if (b->number >= 0 || item->kind != PICKLE_TEXT || n == 0 || item->n != n ||
	    memcmp(b->words, item->text, n) != 0)
		return;
	b->due = b->words[n] == 0;
	b->words += b->due ? 0 : n + 1;
}

int64_t pickle_number_behind(const void *data, size_t n, const char *words)
{
	struct behind b = { .words = words, .number = -1 };

	return pickle_walk(data, n, behind_item, &b) ? -1 : b.number;
}

#define SUMMED_MAX (1LL << 40)
struct summing {
	const char *word;
	bool open;
	int64_t sum;
};

static void summing_item(void *arg, const struct pickle_item *item)
{
	struct summing *s = arg;

	if (item->kind == PICKLE_TEXT)
		s->open = s->sum < 0 && item->n == strlen(s->word) &&
			  memcmp(s->word, item->text, item->n) == 0;
	else if (s->open && item->kind == PICKLE_INT && item->number >= 0 &&
		 item->number < SUMMED_MAX && s->sum < SUMMED_MAX)
		s->sum = MO_MAX(s->sum, 0) + item->number;
}

int64_t pickle_sum_behind(const void *data, size_t n, const char *word)
{
	struct summing s = { .word = word, .sum = -1 };

	return pickle_walk(data, n, summing_item, &s) ? -1 : s.sum;
}
