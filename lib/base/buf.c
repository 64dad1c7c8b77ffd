/* A growable byte string. Invariant: whenever data is not NULL, len < cap and data[len] is 0.
 * Out of memory aborts. */
#include "lib/base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/assert.h"

/* Who wrote into it by himself left it so that more can be added. */
static bool whole(const struct mo_buf *b)
{
	return b->data ? b->len < b->cap : b->len == 0 && b->cap == 0;
}

/* Room for n more bytes and the final NUL. */
static void reserve(struct mo_buf *b, size_t n)
{
	size_t need, cap;

	assert(whole(b));
	if (__builtin_add_overflow(b->len, n, &need) || __builtin_add_overflow(need, 1, &need))
		abort();
	if (need <= b->cap)
		return;
	cap = b->cap ? b->cap : 64;
	while (cap < need)
		if (__builtin_mul_overflow(cap, 2, &cap))
			abort();
	b->data = mo_realloc_array(b->data, cap, 1);
	b->cap = cap;
	mo_assert(b->cap > need - 1 && whole(b)); /* the final NUL fits */
}

void mo_buf_done(struct mo_buf *b)
{
	mo_assert(whole(b));
	free(b->data);
	*b = (struct mo_buf){ 0 };
}

void mo_buf_reset(struct mo_buf *b)
{
	assert(whole(b));
	b->len = 0;
	if (b->data)
		b->data[0] = 0;
}

void mo_buf_add(struct mo_buf *b, const void *data, size_t n)
{
	assert(data || n == 0);
	reserve(b, n);
	if (n)
		memcpy(b->data + b->len, data, n);
	b->len += n;
	b->data[b->len] = 0;
	mo_assert(whole(b) && !b->data[b->len]);
}

void mo_buf_str(struct mo_buf *b, const char *s)
{
	assert(s);
	mo_buf_add(b, s, strlen(s));
}

void mo_buf_printf(struct mo_buf *b, const char *fmt, ...)
{
	va_list ap, again;
	int n;

	reserve(b, 64);
	va_start(ap, fmt);
	va_copy(again, ap);
	n = vsnprintf(b->data + b->len, b->cap - b->len, fmt, ap);
	va_end(ap);
	if (n < 0)
		abort();
	if ((size_t)n >= b->cap - b->len) {
		reserve(b, (size_t)n);
		vsnprintf(b->data + b->len, b->cap - b->len, fmt, again);
	}
	va_end(again);
	b->len += (size_t)n;
	mo_assert(whole(b));
}

void mo_buf_consume(struct mo_buf *b, size_t n)
{
	assert(whole(b));
	if (n >= b->len) {
		mo_buf_reset(b);
		return;
	}
	memmove(b->data, b->data + n, b->len - n + 1);
	b->len -= n;
}

char *mo_buf_take(struct mo_buf *b)
{
	assert(whole(b));
	char *s = b->data ? TAKE_PTR(b->data) : mo_strdup("");

	*b = (struct mo_buf){ 0 };
	return s;
	mo_assert(whole(b) && b->len == 0);
}
