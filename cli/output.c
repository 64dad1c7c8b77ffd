/* Human output (see output.h). */
#include "cli/output.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/text.h"
#include "cli/value.h"
#include "lib/base/buf.h"

#define LAST_MIN 12 /* fewer letters of a last column tell nothing */

void table_done(struct table *t)
{
	for (size_t i = 0; i < t->n_cells; i++)
		free(t->cells[i]);
	free(t->cells);
	*t = (struct table){ 0 };
}

void table_head(struct table *t, const struct column *columns, size_t n)
{
	t->columns = columns;
	t->n_columns = n;
	for (size_t i = 0; i < n; i++)
		mo_strs_add(&t->cells, &t->n_cells, columns[i].title);
}

/* Terminals must not be steered by names, paths or reasons that somebody else wrote. */
static void defuse(char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			*s = ' ';
}

void table_cell(struct table *t, const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;
	va_start(ap, fmt);
	text = mo_vprintf(fmt, ap);
	va_end(ap);
	defuse(text);
	*MO_GROW(t->cells, t->n_cells) = text;
}

static const char *member_text(struct json_object *o, const struct column *c)
{
	switch (c->kind) {
	case CELL_TEXT: return text_or(js_str(o, c->path));
	case CELL_INT: return text_int(js_int(o, c->path));
	case CELL_REAL: return text_real(js_real(o, c->path), c->digits);
	case CELL_SI: return text_si(js_real(o, c->path));
	case CELL_BYTES: return text_bytes(js_int(o, c->path));
	case CELL_SECONDS: return text_seconds(js_real(o, c->path));
	case CELL_PERCENT: return text_percent(js_real(o, c->path));
	}
	return "-";
}

void table_row(struct table *t, struct json_object *o)
{
	for (const struct column *c = t->columns; c < t->columns + t->n_columns; c++)
		if (c->cell)
			c->cell(t, o);
		else
			table_cell(t, "%s", member_text(o, c));
}

/* Columns on screen: code points (wide glyphs do not occur in our data). */
static size_t columns_of(const char *s)
{
	size_t n = 0;
	for (; *s; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

static void print_cut(const char *s, size_t max)
{
	size_t n = 0;
	for (; *s && (n < max || ((unsigned char)*s & 0xc0) == 0x80); s++) {
		n += ((unsigned char)*s & 0xc0) != 0x80;
		putchar(*s);
	}
}

static const char *state_code(const char *s)
{
	static const struct {
		const char *state, *code;
	} codes[] = {
		{ "running", "32" },    { "completed", "32" }, { "up", "32" },
		{ "verified", "32" },   { "complete", "32" },  { "queued", "36" },
		{ "starting", "36" },   { "saving", "36" },    { "waiting", "36" },
		{ "recovering", "33" }, { "stopping", "33" },  { "paused", "33" },
		{ "suspect", "33" },    { "draining", "33" },  { "drained", "33" },
		{ "superseded", "2" },  { "deleted", "2" },    { "cancelled", "2" },
		{ "failed", "31" },     { "down", "31" },      { "torn", "31" },
		{ "lost", "31" },       { "ok", "32" },        { "warn", "33" },
		{ "crit", "31" },       { "unknown", "36" },   { "tainted", "33" },
	};
	for (size_t i = 0; i < ELEMENTSOF(codes); i++)
		if (!strcmp(codes[i].state, s))
			return codes[i].code;
	return NULL;
}

static void print_cell(const struct cli *cli, const char *s, size_t width, bool right, bool last,
		       bool heading, size_t room)
{
	size_t n = columns_of(s);
	const char *code = !cli->colour ? NULL : heading ? "1" : state_code(s);
	for (; right && n < width; width--)
		putchar(' ');
	if (code)
		printf("\033[%sm", code);
	if (last && cli->width && n > room)
		print_cut(s, MO_MAX(room, 8u));
	else
		fputs(s, stdout);
	if (code)
		fputs("\033[0m", stdout);
	for (; !right && !last && n < width; n++)
		putchar(' ');
}

/* What the terminal has to have for those that are shown. */
static size_t width_of(const struct table *t, const bool *shown, const size_t *width)
{
	size_t used = 0, last = t->n_columns - 1;

	for (size_t k = 0; k <= last; k++)
		if (shown[k])
			used += (used ? 2 : 0) +
				(k == last ? MO_MIN(t->last_min, width[k]) : width[k]);
	return used;
}

static bool says_nothing(const struct table *t, size_t column)
{
	for (size_t i = t->n_columns + column; i < t->n_cells; i += t->n_columns)
		if (strcmp(t->cells[i], "-") != 0)
			return false;
	return true;
}

/* Of those that were not tried the one that would be missed most; n_columns: none. */
static size_t most_missed(const struct table *t, const bool *tried)
{
	size_t found = t->n_columns;
	int least = 0;

	for (size_t k = 0; k < t->n_columns; k++) {
		int less = k == 0 ? -1 : says_nothing(t, k) ? INT_MAX : t->columns[k].less;

		if (!tried[k] && (found == t->n_columns || less < least)) {
			found = k;
			least = less;
		}
	}
	return found;
}

/* Marks those that are printed; returns the last of them. */
static size_t choose_columns(const struct cli *cli, const struct table *t, const size_t *width,
			     bool *shown)
{
	_cleanup_(mo_freep) bool *tried = mo_alloc_array(t->n_columns, sizeof(*tried));
	bool bounded = cli->width && t->last_min;
	size_t last = t->n_columns - 1;

	for (size_t k; (k = most_missed(t, tried)) < t->n_columns;) {
		tried[k] = shown[k] = true;
		if (k > 0 && bounded && width_of(t, shown, width) > (size_t)cli->width)
			shown[k] = false;
	}
	while (!shown[last])
		last--;
	return last;
}

bool table_print(const struct cli *cli, const struct table *t)
{
	if (t->n_columns == 0)
		return true;
	_cleanup_(mo_freep) size_t *width = mo_alloc_array(t->n_columns, sizeof(*width));
	_cleanup_(mo_freep) bool *shown = mo_alloc_array(t->n_columns, sizeof(*shown));
	for (size_t i = 0; i < t->n_cells; i++) {
		const char *s = t->cells[i];
		size_t n = columns_of(i < t->n_columns && *s == '>' ? s + 1 : s);
		width[i % t->n_columns] = MO_MAX(width[i % t->n_columns], n);
	}
	size_t end = choose_columns(cli, t, width, shown), used = 0;
	for (size_t i = 0; i < t->n_cells; i++) {
		size_t c = i % t->n_columns;
		bool right = t->cells[c][0] == '>', last = c == end;
		const char *s = i < t->n_columns && right ? t->cells[i] + 1 : t->cells[i];

		used = c == 0 ? 0 : used;
		if (!shown[c])
			continue;
		print_cell(cli, s, width[c], right, last,
			   i<t->n_columns, cli->width>(int) used ? (size_t)cli->width - used : 0);
		fputs(last ? "\n" : "  ", stdout);
		used += width[c] + 2;
	}
	return !memchr(shown, 0, t->n_columns);
}

void print_table(const struct cli *cli, const struct column *columns, size_t n,
		 struct json_object *items)
{
	_cleanup_(table_done) struct table t = { 0 };
	table_head(&t, columns, n);
	t.last_min = LAST_MIN;
	for (size_t i = 0; i < js_len(items); i++)
		table_row(&t, js_at(items, i));
	if (!table_print(cli, &t))
		puts("more columns on a wider terminal");
}

const char *paint_state(const struct cli *cli, const char *state)
{
	return paint(cli, state ? state_code(state) : NULL, text_or(state));
}

void print_clipped(const char *s, int width)
{
	for (int n = 0; *s && n < width;) {
		if (*s == '\033') {
			while (*s && *s != 'm')
				putchar(*s++);
			if (*s)
				putchar(*s++);
			continue;
		}
		do
			putchar(*s++);
		while (((unsigned char)*s & 0xc0) == 0x80);
		n++;
	}
	if (strchr(s, '\033'))
		fputs("\033[0m", stdout);
}

size_t text_fold(const char *s, size_t width)
{
	size_t at = 0, space = 0, columns = 0;

	while (s[at] && columns <= width) {
		if (s[at] == ' ')
			space = at;
		if (columns == width && s[at] != '\033')
			return space ? space : MO_MAX(at, (size_t)1);
		if (s[at] == '\033') {
			at += strcspn(s + at, "m");
			at += s[at] == 'm';
			continue;
		}
		do
			at++;
		while (((unsigned char)s[at] & 0xc0) == 0x80);
		columns++;
	}
	return at;
}

double job_fraction(struct json_object *job)
{
	int64_t i = js_int(job, "iteration"), n = js_int(job, "steps");
	if (n == MO_NONE || n <= 0)
		return MO_NONE_F;
	return i == MO_NONE || i < 0 ? 0 : MO_MIN((double)i / (double)n, 1.0);
}

/* What is left out first where it does not fit: loss, tokens/s and eta are what people look for. */
enum less {
	LESS_NOTHING,
	LESS_LONG_BAR,
	LESS_BAR,
	LESS_MFU,
	LESS_PERCENT,
	LESS_WORD,
	LESS_RESTARTS
};

static void add_part(struct mo_buf *b, const char *fmt, ...) _printf_(2, 3);
static void add_part(struct mo_buf *b, const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;
	va_start(ap, fmt);
	text = mo_vprintf(fmt, ap);
	va_end(ap);
	mo_buf_printf(b, "%s%s", b->len ? "  " : "", text);
	free(text);
}

static char *numbers_without(const struct cli *cli, struct json_object *job, enum less less)
{
	struct mo_buf b = { 0 };
	double f = job_fraction(job), eta = js_real(job, "eta_s"),
	       speed = js_real(job, "tokens_per_s_per_gpu"), loss = js_real(job, "loss"),
	       mfu = js_real(job, "mfu");
	int64_t restarts = js_int(job, "restarts");
	const char *state = js_str(job, "state");
	int bar = !cli->live || f == MO_NONE_F || less >= LESS_BAR ? 0
		  : less >= LESS_LONG_BAR                          ? 10
								   : 20;
	if (js_int(job, "iteration") != MO_NONE || f != MO_NONE_F)
		mo_buf_printf(&b, "%s%s", less < LESS_WORD ? "iteration " : "",
			      text_span(js_int(job, "iteration"), js_int(job, "steps")));
	for (int i = 0; i < bar; i++)
		mo_buf_printf(&b, "%s%s", i ? "" : " ", i < (int)(f * bar + 0.5) ? "#" : ".");
	if (f != MO_NONE_F && less < LESS_PERCENT)
		mo_buf_printf(&b, " %3.0f %%", f * 100);
	if (loss != MO_NONE_F)
		add_part(&b, "loss %s", text_real(loss, 4));
	if (speed != MO_NONE_F)
		add_part(&b, "%s tok/s/GPU", text_si(speed));
	if (mfu != MO_NONE_F && less < LESS_MFU)
		add_part(&b, "MFU %s", text_percent(mfu));
	if (restarts > 0 && less < LESS_RESTARTS)
		add_part(&b, "restarts %s", text_int(restarts));
	if (eta != MO_NONE_F && state && !strcmp(state, "running"))
		add_part(&b, "eta %s", text_seconds(eta));
	return mo_buf_take(&b);
}

char *progress_numbers(const struct cli *cli, struct json_object *job, int room)
{
	char *text = numbers_without(cli, job, LESS_NOTHING);
	for (int less = LESS_NOTHING + 1;
	     text && room > 0 && (int)strlen(text) > room && less <= LESS_RESTARTS; less++) {
		free(text);
		text = numbers_without(cli, job, (enum less)less);
	}
	return text;
}

char *progress_line(const struct cli *cli, struct json_object *job, int room)
{
	struct mo_buf b = { 0 };
	const char *state = js_str(job, "state"), *reason = js_str(job, "reason"),
		   *id = text_or(js_str(job, "id"));
	int before = (int)(strlen(id) + strlen(text_or(state))) + 4;
	_cleanup_(mo_freep) char *numbers =
		progress_numbers(cli, job, room > 0 ? MO_MAX(room - before, 1) : 0);
	mo_buf_printf(&b, "%s  %s", id, paint_state(cli, state));
	if (numbers && *numbers)
		mo_buf_printf(&b, "  %s", numbers);
	if (reason && *reason && state && strcmp(state, "running"))
		mo_buf_printf(&b, "  (%s)", reason);
	return mo_buf_take(&b);
}
