/* See words.h. Called for the engine layer of a rank's environment (env.c) and for
 * engine.prepare. */
#include "agent/core/text/words.h"

#include <string.h>

#include "lib/base/buf.h"

#define WORDS 12

static void number(struct mo_buf *b, int64_t v)
{
	mo_buf_printf(b, "%lld", (long long)v);
}

/* Appends the value of a word; false when it is none of ours. */
static bool add_word(const struct launch *l, int64_t local_rank, const char *home, const char *word,
		     size_t n, struct mo_buf *b)
{
	static const char *const names[WORDS] = {
		"master_addr", "master_port", "nnodes",     "node_rank",
		"rank",        "local_rank",  "world_size", "local_world_size",
		"local_gpus",  "job",         "attempt",    "workdir"
	};
	size_t i = 0;

	while (i < WORDS && !(strlen(names[i]) == n && memcmp(names[i], word, n) == 0))
		i++;
	switch (i) {
	case 0: mo_buf_str(b, l->master_addr ? l->master_addr : "127.0.0.1"); break;
	case 1: number(b, l->master_port); break;
	case 2: number(b, l->n_nodes); break;
	case 3: number(b, l->node_rank); break;
	case 4: number(b, l->first_rank + local_rank); break;
	case 5: number(b, local_rank); break;
	case 6: number(b, l->world); break;
	case 7: number(b, l->n_local); break;
	case 8: number(b, (int64_t)l->n_gpus); break;
	case 9: number(b, l->job); break;
	case 10: number(b, l->attempt); break;
	case 11: mo_buf_str(b, l->workdir ? l->workdir : home ? home : "/"); break;
	default: return false;
	}
	return true;
}

char *words_expand(const struct launch *l, int64_t local_rank, const char *home, const char *text)
{
	struct mo_buf b = { 0 };

	if (!text)
		return NULL;
	while (*text) {
		size_t n = *text == '{' ? strcspn(text, "}") : 0;

		if (n && text[n] == '}' && add_word(l, local_rank, home, text + 1, n - 1, &b)) {
			text += n + 1;
			continue;
		}
		mo_buf_add(&b, text++, 1);
	}
	return b.data ? mo_buf_take(&b) : mo_strdup("");
}

bool words_name_rank(const char *text)
{
	return text && (strstr(text, "{rank}") || strstr(text, "{local_rank}"));
}
