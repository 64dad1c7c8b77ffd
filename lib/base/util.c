/* Allocation that aborts, owned strings, array growth. Called by everybody; no I/O. */
#include "lib/base/util.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/assert.h"

void *mo_alloc(size_t size)
{
	void *p = calloc(1, size ? size : 1);

	if (!p)
		abort();
	return p;
}

void *mo_alloc_array(size_t n, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(n, size, &bytes))
		abort();
	return mo_alloc(bytes);
}

void *mo_realloc_array(void *p, size_t n, size_t size)
{
	size_t bytes;
	void *q;

	if (__builtin_mul_overflow(n, size, &bytes))
		abort();
	q = realloc(p, bytes ? bytes : 1);
	if (!q)
		abort();
	return q;
}

char *mo_strndup(const char *s, size_t n)
{
	size_t len;
	char *copy;

	mo_assert(s || n == 0);
	if (!s)
		return NULL;
	len = strnlen(s, n);
	copy = mo_alloc(len + 1);
	memcpy(copy, s, len);
	return copy;
}

char *mo_strdup(const char *s)
{
	char *copy = s ? strdup(s) : NULL;

	if (s && !copy)
		abort();
	return copy;
}

char *mo_vprintf(const char *fmt, va_list ap)
{
	char *s = NULL;

	if (vasprintf(&s, fmt, ap) < 0)
		abort();
	return s;
}

char *mo_printf(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	char *s = mo_vprintf(fmt, ap);
	va_end(ap);
	return s;
}

void mo_str_set(char **s, const char *value)
{
	char *copy = mo_strdup(value); /* before the free: value may lie within *s */

	assert(s);
	free(*s);
	*s = copy;
}

bool mo_streq(const char *a, const char *b)
{
	if (!a || !b)
		return a == b;
	return strcmp(a, b) == 0;
}

bool mo_starts_with(const char *s, const char *prefix)
{
	return s && strncmp(s, prefix, strlen(prefix)) == 0;
}

void *mo_grow_raw(void **array, size_t *n, size_t size)
{
	char *element;

	assert(size > 0 && (*array || *n == 0));
	if ((*n & (*n - 1)) == 0)
		*array = mo_realloc_array(*array, *n ? *n * 2 : 1, size);
	element = (char *)*array + *n * size;
	memset(element, 0, size);
	*n += 1;
	mo_assert(*array && *n > 0);
	return element;
}

char *mo_part(const char **at, const char *separators)
{
	const char *begin = *at;
	size_t n = strcspn(begin, separators);

	*at = begin + n + (begin[n] != '\0');
	return mo_strndup(begin, n);
}

char *mo_path_clean(const char *path)
{
	char *out;
	size_t n = 0;

	if (!path || path[0] != '/')
		return mo_strdup(path);
	out = mo_alloc(strlen(path) + 1);
	while (*path) {
		size_t len;

		path += strspn(path, "/");
		len = strcspn(path, "/");
		if (len == 2 && path[0] == '.' && path[1] == '.') {
			while (n > 0 && out[--n] != '/')
				continue;
		} else if (len && !(len == 1 && path[0] == '.')) {
			out[n++] = '/';
			memcpy(out + n, path, len);
			n += len;
		}
		path += len;
	}
	if (n == 0)
		out[n++] = '/';
	out[n] = 0;
	return out;
}
