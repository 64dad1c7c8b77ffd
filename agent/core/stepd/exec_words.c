/* See exec_words.h. */
#include "agent/core/stepd/exec_words.h"

#include <string.h>

#include "lib/base/assert.h"
#include "lib/model/mask.h"

char *exec_refusal(const struct exec_ask *ask, const struct exec_step *step)
{
	_cleanup_(mo_freep) char *words = exec_words_problem(ask->argv, ask->n_argv);

	if (words)
		return TAKE_PTR(words);
	if (ask->deadline_ms < 1 || ask->deadline_ms > EXEC_DEADLINE_MAX_MS)
		return mo_printf("its deadline must be 1 to %d ms", EXEC_DEADLINE_MAX_MS);
	if (ask->rank < step->first_rank || ask->rank - step->first_rank >= step->n_local)
		return mo_printf("rank %lld is not on %s", (long long)ask->rank, step->node);
	if (step->ending)
		return mo_printf("the step on %s is ending", step->node);
	if (!step->started)
		return mo_printf("rank %lld on %s has not started yet", (long long)ask->rank,
				 step->node);
	if (step->exited)
		return mo_printf("rank %lld on %s has ended", (long long)ask->rank, step->node);
	return NULL;
}

/* A socket and a file by which a rank tells of itself. */
static bool speaks_for_rank(const char *name)
{
	return mo_streq(name, "MOE_NOTIFY_SOCKET") || mo_streq(name, "TORCHELASTIC_ERROR_FILE");
}

char **exec_environment(const struct env_record *record, int64_t rank)
{
	struct env_item *items = NULL;
	size_t n_items = 0, n = 0;
	char **env = NULL;

	if (env_record_of(record, rank, &items, &n_items)) {
		env = mo_alloc_array(n_items + 1, sizeof(*env));
		for (size_t i = 0; i < n_items; i++)
			if (items[i].value && !mo_streq(items[i].value, MO_MASKED) &&
			    !speaks_for_rank(items[i].name))
				env[n++] = mo_printf("%s=%s", items[i].name, items[i].value);
	}
	mo_vec_clear(&env_item_desc, (void **)&items, &n_items);
	return env;
}

void exec_output_add(struct exec_output *o, const char *data, size_t n)
{
	size_t room = EXEC_OUT_MAX - o->kept.len;

	mo_assert(o->kept.len <= EXEC_OUT_MAX);
	mo_buf_add(&o->kept, data, MO_MIN(n, room));
	o->cut = o->cut || n > room;
}

char *exec_output_text(const struct exec_output *o)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	for (size_t at = 0; at < o->kept.len; at++) {
		size_t n = strnlen(o->kept.data + at, o->kept.len - at);

		mo_buf_add(&b, o->kept.data + at, n);
		at += n;
		if (at < o->kept.len)
			mo_buf_str(&b, "\xef\xbf\xbd");
	}
	return b.data ? mo_buf_take(&b) : mo_strdup("");
}
