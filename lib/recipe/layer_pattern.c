/* See layer_pattern.h. */
#include "lib/recipe/layer_pattern.h"

#include <stddef.h>
#include <string.h>

#define LAYERS_MAX 10000

/* The digits at *s; false without any. */
static bool number(const char **s, int64_t *ret)
{
	size_t n = strspn(*s, "0123456789");

	*ret = 0;
	for (size_t i = 0; i < n && *ret <= LAYERS_MAX; i++)
		*ret = *ret * 10 + ((*s)[i] - '0');
	*s += n;
	return n > 0 && *ret <= LAYERS_MAX;
}

struct run {
	int64_t zeros, ones;
};

/* "[0, 1]" and, behind it, "*26". Counted, not built: a ".. * 10000" costs nothing. */
static bool piece(const char **s, struct run *all)
{
	struct run one = { 0, 0 };
	int64_t n, times = 1;

	if (*(*s)++ != '[')
		return false;
	do {
		*s += strspn(*s, " ");
		if (!number(s, &n) || n > 1 || (n == 0 && (one.ones || all->ones)))
			return false;
		*(n ? &one.ones : &one.zeros) += 1;
		*s += strspn(*s, " ");
	} while (*(*s)++ == ',');
	if ((*s)[-1] != ']')
		return false;
	*s += strspn(*s, " ");
	if (**s == '*') {
		*s += 1 + strspn(*s + 1, " ");
		if (!number(s, &times) || (times > 1 && one.zeros && one.ones))
			return false;
	}
	all->zeros += one.zeros * times;
	all->ones += one.ones * times;
	return all->zeros + all->ones <= LAYERS_MAX;
}

bool layer_pattern(const char *text, int64_t *ret_zeros)
{
	struct run all = { 0, 0 };
	const char *s = text;
	size_t open = 0;

	for (; *s == ' ' || *s == '('; s++)
		open += *s == '(';
	do {
		s += strspn(s, " ");
		if (!piece(&s, &all))
			return false;
		s += strspn(s, " ");
	} while (*s == '+' && s++);
	for (; *s == ' ' || (*s == ')' && open > 0); s++)
		open -= *s == ')';
	*ret_zeros = all.zeros;
	return !*s && !open && all.ones > 0;
}
