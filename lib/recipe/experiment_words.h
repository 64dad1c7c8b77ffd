/* The words of an experiment's command. */
#pragma once
#include "lib/recipe/experiment.h"

/* The command: what Primus' main takes for itself, and the rest as one map. */
struct experiment_words {
	const char *file, *module;
	struct config_value *given;
};
/* 0, or -EINVAL with err: words that end Primus before it trains. given is the caller's. */
int experiment_words_read(char *const *words, size_t n, struct experiment_words *ret,
			  struct experiment *out, struct mo_error *err);
/* The file that the words name by --config, borrowed from them; NULL when they do not. */
const char *experiment_file(char *const *words, size_t n_words);
