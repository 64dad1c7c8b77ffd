/* See trouble.h. */
#include "agent/core/agent/trouble.h"

#include <string.h>

#include "lib/base/buf.h"

/* Without how long it took. */
static char *kind_of(const char *text)
{
	static const char after[] = " after ";
	struct mo_buf b = { 0 };

	while (*text) {
		const char *at = strstr(text, after);
		size_t n = at ? (size_t)(at - text) + strlen(after) : strlen(text);

		mo_buf_add(&b, text, n);
		text += n;
		text += at ? strspn(text, "0123456789") : 0;
	}
	mo_buf_add(&b, "", 1);
	return b.data;
}

bool trouble_say(struct trouble *t, const char *text, int64_t now)
{
	_cleanup_(mo_freep) char *kind = kind_of(text);

	if (mo_streq(t->last, kind) ||
	    (t->said[t->next].text && now < t->said[t->next].at + TROUBLE_AGAIN_US))
		return false;
	for (size_t i = 0; i < TROUBLES; i++)
		if (mo_streq(t->said[i].text, kind) && now < t->said[i].at + TROUBLE_AGAIN_US)
			return false;
	mo_str_set(&t->last, kind);
	mo_str_set(&t->said[t->next].text, kind);
	t->said[t->next].at = now;
	t->next = (t->next + 1) % TROUBLES;
	return true;
}

void trouble_over(struct trouble *t)
{
	for (size_t i = 0; i < TROUBLES; i++)
		free(t->said[i].text);
	free(t->last);
	*t = (struct trouble){ 0 };
}
