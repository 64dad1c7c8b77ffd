/* See tail.h. */
#include "agent/core/text/tail.h"

#include <string.h>

#include "lib/base/desc.h"

static bool ends_with(const char *line, size_t n, const char *end)
{
	return n >= strlen(end) && memcmp(line + n - strlen(end), end, strlen(end)) == 0;
}

static bool begins_with(const char *line, size_t n, const char *begin)
{
	return n >= strlen(begin) && memcmp(line, begin, strlen(begin)) == 0;
}

/* A thread's first line, "Thread 0x00007f (most recent call first):", takes the place of the
 * thread before it. False: nothing of the line is kept. */
static bool fold(struct tail *t, const char *line, size_t n)
{
	if (ends_with(line, n, "(most recent call first):") &&
	    (begins_with(line, n, "Thread 0x") || begins_with(line, n, "Current thread 0x"))) {
		t->next = (t->next + MO_TAIL_LINES - t->n_thread) % MO_TAIL_LINES;
		t->n -= t->n_thread;
		t->n_thread = 1;
		t->in_thread = true;
		return true;
	}
	t->in_thread = t->in_thread && (n == 0 || begins_with(line, n, "  "));
	if (!t->in_thread) {
		t->n_thread = 0;
		return true;
	}
	if (n == 0 || t->n_thread > TAIL_CALLS) /* a blank line is between two threads */
		return false;
	t->n_thread++;
	return true;
}

void tail_add(struct tail *t, const char *line, size_t n)
{
	if (!fold(t, line, n))
		return;
	t->len[t->next] = (uint16_t)MO_MIN(n, (size_t)TAIL_BYTES);
	memcpy(t->text[t->next], line, t->len[t->next]);
	t->next = (t->next + 1) % MO_TAIL_LINES;
	t->n = MO_MIN(t->n + 1, (size_t)MO_TAIL_LINES);
}

static bool has(const struct tail *t, const char *line, size_t n)
{
	for (size_t i = 0; i < t->n; i++) {
		size_t at = (t->next + MO_TAIL_LINES - 1 - i) % MO_TAIL_LINES;

		if (t->len[at] >= n && memcmp(t->text[at] + t->len[at] - n, line, n) == 0)
			return true;
	}
	return false;
}

static void add_once(struct tail *t, const char *line, size_t n)
{
	n = MO_MIN(n, (size_t)TAIL_BYTES);
	t->in_thread = false;
	if (n > 0 && !has(t, line, n))
		tail_add(t, line, n);
}

void tail_error(struct tail *t, const char *text)
{
	size_t n = strlen(text), first, last;

	while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == ' '))
		n--;
	first = MO_MIN(strcspn(text, "\n"), n);
	for (last = n; last > first && text[last - 1] != '\n';)
		last--;
	add_once(t, text, first);
	add_once(t, text + last, last > first ? n - last : 0);
}

void tail_lines(const struct tail *t, char ***ret, size_t *n_ret)
{
	for (size_t i = 0; i < t->n; i++) {
		size_t at = (t->next + MO_TAIL_LINES - t->n + i) % MO_TAIL_LINES;
		_cleanup_(mo_freep) char *line = mo_strndup(t->text[at], t->len[at]);

		mo_strs_add(ret, n_ret, line);
	}
}
