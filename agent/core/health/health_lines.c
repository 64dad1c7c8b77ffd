/* What a program says of each GPU, a line for each: "ADDRESS STATE TEXT". Only a line is evidence:
 * a program that breaks, or is late, says nothing of the GPUs that it did not come to. Called by
 * health_answers.c. */
#include <string.h>

#include "agent/core/health/health_finding.h"
#include "agent/core/health/health_state.h"
#include "lib/base/utf8.h"
#include "lib/model/limits.h"

#define LINE_SHOWN 1000

struct said {
	struct verdict *v;
	struct finding f;
};

/* The first line that begins with these words; caller frees, NULL: none. */
static char *line_of(const char *out, size_t n, const char *begin)
{
	size_t len = strlen(begin);

	for (size_t from = 0; from + len <= n;) {
		const char *end = memchr(out + from, '\n', n - from);
		size_t to = end ? (size_t)(end - out) : n;
		size_t rest = MO_MIN(to - from, (size_t)LINE_SHOWN);

		if (to - from >= len && memcmp(out + from, begin, len) == 0 &&
		    mo_utf8_valid(out + from, rest))
			return mo_strndup(out + from + len, rest - len);
		from = to + 1;
	}
	return NULL;
}

/* "crit element (3,7) is 12"; false: no such state. */
static bool take(const struct health_check *c, const char *line, struct finding *ret)
{
	size_t n = strcspn(line, " ");
	_cleanup_(mo_freep) char *word = mo_strndup(line, n);
	const char *text = line[n] ? line + n + 1 : "it said nothing";
	int state = mo_enum_parse(check_state_names, _CHECK_STATE_N, word);

	ret->skipped = mo_streq(word, CHECK_SKIPPED);
	if (state < 0 && !ret->skipped)
		return false;
	ret->state = ret->skipped ? CHECK_UNKNOWN : state;
	ret->text = ret->skipped       ? mo_printf(CHECK_SKIPPED ": %s", text)
		    : state > CHECK_OK ? mo_printf("%s: %s", c->what, text)
				       : NULL;
	return true;
}

static void judge_line(const struct object *o, const struct health_check *c, const char *out,
		       size_t n, const char *why, struct finding *ret)
{
	_cleanup_(mo_freep) char *begin = mo_printf("%s ", o->name);
	_cleanup_(mo_freep) char *line = line_of(out, n, begin);

	*ret = (struct finding){ .state = CHECK_UNKNOWN, .count = MO_NONE };
	if (!line || !take(c, line, ret))
		ret->text = mo_printf("%s says nothing of this GPU: %s", c->argv[0], why);
}

/* A library that computes wrong does so on each GPU, and in the same way. */
static bool all_alike(const struct said *all, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (all[i].f.state != CHECK_CRIT || !mo_streq(all[i].f.text, all[0].f.text))
			return false;
	return n > 1;
}

void health_judge_lines(struct health *h, const struct health_check *c, int code, const char *out,
			size_t n, const char *problem, int64_t now)
{
	_cleanup_(mo_freep) char *why = problem ? mo_strdup(problem)
					: code  ? mo_printf("it ended with status %d", code)
						: mo_strdup("it has no line that begins with it");
	_cleanup_(mo_freep) struct said *all =
		mo_alloc_array(MO_MAX(h->n_objects, (size_t)1), sizeof(*all));
	size_t n_all = 0;

	for (size_t i = 0; i < h->n_objects; i++)
		for (size_t k = 0; k < h->objects[i]->n_verdicts; k++) {
			if (h->objects[i]->verdicts[k].check != c)
				continue;
			all[n_all].v = &h->objects[i]->verdicts[k];
			judge_line(h->objects[i], c, out, n, why, &all[n_all++].f);
		}
	bool alike = all_alike(all, n_all);
	for (size_t i = 0; i < n_all; i++) {
		if (alike) {
			_cleanup_(mo_freep) char *text = all[i].f.text;
			all[i].f.state = CHECK_UNKNOWN;
			all[i].f.text = mo_printf("all %zu GPUs alike, so that it is no GPU but "
						  "what they run: %s",
						  n_all, text);
		}
		verdict_judge(h, all[i].v, &all[i].f, now);
		finding_done(&all[i].f);
	}
}
