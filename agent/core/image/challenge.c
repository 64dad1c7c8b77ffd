/* See challenge.h. */
#include "agent/core/image/challenge.h"

#include <string.h>
#include <strings.h>

#include "lib/base/buf.h"

#define BETWEEN " \t,"
#define NO_WORD " \t,=\""

void challenge_done(struct challenge *c)
{
	free(c->realm);
	free(c->service);
	free(c->scope);
	*c = (struct challenge){ 0 };
}

/* A word, or what is between quotes; *s is behind it afterwards. */
static char *read_value(const char **s)
{
	struct mo_buf b = { 0 };
	const char *at = *s;

	if (*at != '"') {
		mo_buf_add(&b, at, strcspn(at, BETWEEN));
		*s = at + strcspn(at, BETWEEN);
		return mo_buf_take(&b);
	}
	for (at++; *at && *at != '"'; at++) {
		if (*at == '\\' && at[1])
			at++;
		mo_buf_add(&b, at, 1);
	}
	*s = *at ? at + 1 : at;
	return mo_buf_take(&b);
}

static void keep(struct challenge *c, const char *name, size_t n, char *value)
{
	const struct {
		const char *name;
		char **to;
	} rows[] = { { "realm", &c->realm }, { "service", &c->service }, { "scope", &c->scope } };

	for (size_t i = 0; i < ELEMENTSOF(rows); i++)
		if (strlen(rows[i].name) == n && strncasecmp(rows[i].name, name, n) == 0)
			mo_str_set(rows[i].to, value);
}

bool challenge_read(const char *header, struct challenge *ret)
{
	bool wanted = false, basic = false;

	*ret = (struct challenge){ 0 };
	for (const char *s = header; *(s += strspn(s, BETWEEN));) {
		size_t n = strcspn(s, NO_WORD);
		const char *word = s;

		if (n == 0) { /* no header's beginning */
			s++;
			continue;
		}
		s += n;
		s += strspn(s, " \t");
		if (*s != '=') { /* the next scheme */
			wanted = n == strlen("Bearer") && strncasecmp(word, "Bearer", n) == 0;
			ret->bearer |= wanted;
			basic |= n == strlen("Basic") && strncasecmp(word, "Basic", n) == 0;
			continue;
		}
		s++;
		s += strspn(s, " \t");
		_cleanup_(mo_freep) char *value = read_value(&s);

		if (wanted)
			keep(ret, word, n, value);
	}
	return ret->bearer ? ret->realm != NULL : basic;
}
