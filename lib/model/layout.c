/* Pipeline layouts (see layout.h). */
#include "lib/model/layout.h"

#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/desc.h"
#include "lib/base/parse.h"

/* The number behind '*' at s; 0 = none. */
static size_t repeat(const char *s, int64_t *ret)
{
	size_t n = *s == '*' ? strspn(s + 1, "0123456789") : 0;
	_cleanup_(mo_freep) char *number = n ? mo_strndup(s + 1, n) : NULL;

	*ret = 1;
	return n && mo_parse_i64(number, 0, LAYOUT_LETTERS_MAX, ret) == 0 ? n + 1 : 0;
}

/* Appends what stands in s[0..n) times over; false when it grows too long. */
static bool add_times(struct mo_buf *b, const char *s, size_t n, int64_t times)
{
	for (int64_t i = 0; i < times; i++) {
		if (b->len + n > LAYOUT_LETTERS_MAX)
			return false;
		mo_buf_add(b, s, n);
	}
	return true;
}

/* One pass: groups "(...)*n", or single letters "x*n". */
static bool unroll(const char *s, bool groups, struct mo_buf *b)
{
	while (*s) {
		const char *close = groups && *s == '(' ? strchr(s, ')') : NULL;
		size_t n = close ? (size_t)(close - s) + 1 : 1;
		int64_t times = 1;
		size_t used = !groups || close ? repeat(s + n, &times) : 0;

		if (!add_times(b, close ? s + 1 : s, close ? n - 2 : 1, used ? times : 1))
			return false;
		s += n + used;
	}
	return true;
}

/* Splits the unrolled text at '|' and counts; false with *ret_why. */
static bool split(const char *text, struct layout *ret, char **ret_why)
{
	size_t embeddings = 0, losses = 0;

	for (const char *s = text;; s++) {
		size_t n = strcspn(s, "|");
		_cleanup_(mo_freep) char *stage = mo_strndup(s, n);

		for (size_t i = 0; i < n; i++) {
			if (!strchr("EtmL", s[i])) {
				*ret_why = mo_printf("'%c' is no layer: expected E, t, m, L, a "
						     "number behind '*', '(...)*N' and '|'",
						     s[i]);
				return false;
			}
			embeddings += s[i] == 'E';
			losses += s[i] == 'L';
			ret->decoders += s[i] == 't';
			ret->mtp += s[i] == 'm';
		}
		mo_strs_add(&ret->stages, &ret->n_stages, stage);
		s += n;
		if (!*s)
			break;
	}
	const char *last = ret->stages[ret->n_stages - 1];

	if (embeddings != 1 || ret->stages[0][0] != 'E')
		*ret_why = mo_strdup(
			"the embedding, E, must stand once, as the first layer of the first stage");
	else if (losses != 1 || !*last || last[strlen(last) - 1] != 'L')
		*ret_why = mo_strdup(
			"the loss, L, must stand once, as the last layer of the last stage");
	return !*ret_why;
}

bool layout_given(const char *value)
{
	return value && strcmp(value, "auto") != 0 && strcmp(value, "none") != 0;
}

bool layout_parse(const char *text, struct layout *ret, char **ret_why)
{
	_cleanup_(mo_buf_done) struct mo_buf plain = { 0 }, half = { 0 }, whole = { 0 };

	*ret = (struct layout){ 0 };
	*ret_why = NULL;
	for (const char *s = text; *s; s++)
		if (*s != ',' && *s != ' ')
			mo_buf_add(&plain, s, 1);
	if (!unroll(plain.data ? plain.data : "", true, &half) ||
	    !unroll(half.data ? half.data : "", false, &whole))
		*ret_why = mo_printf("longer than %d layers", LAYOUT_LETTERS_MAX);
	if (!*ret_why && split(whole.data ? whole.data : "", ret, ret_why))
		return true;
	layout_done(ret);
	return false;
}

void layout_done(struct layout *l)
{
	for (size_t i = 0; i < l->n_stages; i++)
		free(l->stages[i]);
	free(l->stages);
	*l = (struct layout){ 0 };
}

char *layout_spread(int64_t layers, int64_t mtp, int64_t stages)
{
	/* so the last stage is never a larger one */
	int64_t each = stages > 0 ? layers / stages : 0, larger = stages > 0 ? layers % stages : 0;
	struct mo_buf b = { 0 };

	if (each < 1)
		return NULL;
	mo_buf_str(&b, "E");
	/* stages that are alike, as (t*2|)*n; the first is told apart by its E */
	for (int64_t i = 0, n; i < stages - 1; i += n) {
		int64_t size = each + (i < larger);

		n = i == 0 ? 1 : (i < larger ? MO_MIN(larger, stages - 1) : stages - 1) - i;
		mo_buf_printf(&b, n > 1 ? "(t*%lld|)*%lld" : "t*%lld|", (long long)size,
			      (long long)n);
	}
	mo_buf_printf(&b, "t*%lld", (long long)each);
	for (int64_t i = 0; i < mtp; i++)
		mo_buf_str(&b, ",m");
	mo_buf_str(&b, ",L");
	return mo_buf_take(&b);
}
