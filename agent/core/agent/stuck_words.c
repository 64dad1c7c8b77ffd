/* See stuck_words.h. */
#include "agent/core/agent/stuck_words.h"

#include <string.h>

#include "lib/base/desc.h"
#include "lib/base/parse.h"

static uint64_t hex(const char *s)
{
	static const char digits[] = "0123456789abcdef";
	uint64_t v = 0;
	const char *d;

	for (s += mo_starts_with(s, "0x") ? 2 : 0; *s && (d = strchr(digits, *s)); s++)
		v = v << 4 | (uint64_t)(d - digits);
	return v;
}

bool stuck_call_read(const char *line, const struct stuck_number *calls, size_t n_calls,
		     struct stuck_call *ret)
{
	size_t n = strcspn(line, " ");
	_cleanup_(mo_freep) char *call = mo_strndup(line, n);
	int64_t number;

	if (!line[n] || mo_parse_i64(call, 0, INT32_MAX, &number) < 0)
		return false;
	const char *first = line + n + 1, *second = strchr(first, ' ');
	for (size_t i = 0; second && i < n_calls; i++)
		if (calls[i].number == number) {
			*ret = (struct stuck_call){ .has_path = calls[i].has_path,
						    .fd = (int)(uint32_t)hex(first),
						    .path_address = hex(second + 1) };
			return true;
		}
	return false;
}

void helper_words_read(const char *line, size_t n, struct helper_words *ret)
{
	static const char *const areas[] = { "gpu", "nic", "host", "klog", "stack" };

	*ret = (struct helper_words){ 0 };
	for (size_t at = strlen(line) + 1; at < n; at += strlen(line + at) + 1) {
		const char *word = line + at, *after = word + strlen(word) + 1;
		const char *next = (size_t)(after - line) < n ? after : NULL;

		if (next && mo_streq(word, "--at"))
			ret->at = next;
		else if (next && mo_streq(word, "--root"))
			ret->root = next;
		else if (!ret->area && mo_enum_parse(areas, ELEMENTSOF(areas), word) >= 0)
			ret->area = word;
		else if (ret->area && !ret->object && *word != '-' &&
			 (mo_streq(ret->area, "gpu") || mo_streq(ret->area, "nic")))
			ret->object = word;
	}
}

bool helper_is_orphan(const char *name, const char *parent, const struct helper_words *w,
		      const char *root)
{
	bool discovers = mo_streq(name, "moe-discover"), probes = mo_streq(name, "moe-probe");

	if (mo_streq(parent, "moe-agent") || mo_streq(parent, "moectl"))
		return false;
	return ((discovers && w->at) || (probes && w->area)) && mo_streq(w->root, root);
}
