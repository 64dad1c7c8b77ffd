/* See init_saves.h. */
#include "cli/init_saves.h"

#include <string.h>

#include "lib/base/parse.h"

#define EVERY 500 /* iterations between saves where the original has none */

/* Saves that a run of so few steps gets at all. */
static int64_t every_for(const struct draft *d)
{
	const char *text = draft_value(d, "steps");
	int64_t steps;

	if (!text || mo_parse_i64(text, 1, INT64_MAX, &steps) < 0 || steps > EVERY)
		return EVERY;
	return MO_MAX(steps / 5, 1);
}

void init_saves_none(struct init *i)
{
	init_note(i,
		  "the original saves no checkpoints, so after a failure it begins again: add "
		  "checkpoint: {dir: /ckpt/%s/checkpoints, every: %lld}",
		  i->draft.name ? i->draft.name : "NAME", (long long)every_for(&i->draft));
}

void init_saves_drop(struct draft *d)
{
	for (size_t k = d->n_values; k > 0; k--)
		if (mo_starts_with(d->values[k - 1].key, "checkpoint."))
			mo_vec_remove(&kv_desc, d->values, &d->n_values, k - 1);
}

/* The words that say where and how often. */
static void lose_saves(struct draft *d, const char *why)
{
	for (size_t k = 0; k < d->n_said; k++)
		if (mo_starts_with(d->said[k].key, "checkpoint."))
			draft_lose(d, "%s: %s", d->said[k].value, why);
}

void init_saves_dir(struct init *i, const char *dump)
{
	const char *dir = draft_value(&i->draft, "checkpoint.dir");
	_cleanup_(mo_freep) char *whole = NULL, *clean = NULL;

	if (dir && (strpbrk(dir, "$`") || strstr(dir, "://"))) { /* no recipe may hold it */
		lose_saves(&i->draft, strstr(dir, "://")
					      ? "it is no directory that the nodes mount, of which "
						"moectl can read what was saved"
					      : "where it saves is not known: write it in, as "
						"checkpoint: {dir: DIR, every: N}");
		i->saves_unknown = true;
		init_saves_drop(&i->draft);
		return;
	}
	if (!dir || dir[0] == '/')
		return;
	whole = dump && dump[0] == '/' ? mo_printf("%s/%s", dump, dir)
				       : mo_printf("%s/%s%s%s", i->draft.workdir, dump ? dump : "",
						   dump ? "/" : "", dir);
	clean = mo_path_clean(whole);
	init_note(i,
		  "checkpoint.dir: %s of the original, from where it is started; every node must "
		  "see it there",
		  dir);
	draft_set(&i->draft, "checkpoint.dir", clean);
}

void init_saves_of_line(struct init *i, const struct engine *e)
{
	bool known = false;

	for (size_t k = 0; k < e->n_flags; k++)
		known |= mo_starts_with(e->flags[k].key, "checkpoint.dir");
	if (!known)
		init_note(i,
			  "nothing is known of its checkpoints, so after a failure it begins "
			  "again: checkpoint.dir, layout and resume_args are in docs/scripts.md");
	else if (!draft_value(&i->draft, "checkpoint.dir") && !i->saves_unknown)
		init_saves_none(i);
}
