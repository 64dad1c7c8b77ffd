/* Primus' experiment file -> the configuration that its loader makes of it
 * (docs/decisions/007-experiments.md). Pure: the caller reads files and knows the environment of
 * a rank. The rules are those of Primus' own yaml_loader.py, parser.py, primus_config.py and
 * arg_utils.py; files are hostile, everything read is bounded. */
#pragma once
#include "lib/base/error.h"
#include "lib/recipe/config_value.h"

#define EXPERIMENT_FILES_MAX 64 /* read for one experiment; those of Primus read 15 */

#define EXPERIMENT_TOP_KEYS 7
/* What parts of Primus read of its top level. */
extern const char *const experiment_top_keys[EXPERIMENT_TOP_KEYS];

struct experiment_world {
	void *arg;
	/* Appends the file; path is as the files say it, relative to the engine's working
	 * directory unless it is absolute. 0, or a negative errno; -EFBIG when it is larger than
	 * most. */
	int (*read)(void *arg, const char *path, size_t most, struct mo_buf *ret);
	const char *(*variable)(
		void *arg, const char *name); /* of a rank's environment; NULL: it is not set */
};
/* A key that a map of a file has twice: the last one counts. */
struct experiment_repeat {
	char *key;
	struct config_place place; /* of the later one */
	int64_t first;             /* line of the earlier one */
};
#define EXPERIMENT_REPEATS_MAX 20 /* that are kept */
struct experiment {
	uint32_t
		/* of the files' paths and contents, in their order: another one is another
		 * configuration */
		crc;
	char **files;
	size_t n_files; /* in the order in which they were first read; places count into it */
	struct config_value *merged; /* a map: what the trainer gets */
	struct config_value *names;  /* a map: work_group, user_name, exp_name, workspace */
	char *framework, *module;    /* megatron; pre_trainer */
	struct config_place framework_place, module_place;
	char **skipped;
	size_t n_skipped; /* words of the command that Primus skips */
	char **idle;
	/* "FILE:LINE: key": keys of the file's top level that no part of Primus reads */
	size_t n_idle;
	struct experiment_repeat *repeats;
	size_t n_repeats;
	char **unread;
	/* "FILE: why": files that are named and could not be read (config_files.h) */
	size_t n_unread;
};
void experiment_done(struct experiment *e);
/* words: the command behind the program, `train pretrain --config FILE ..`. The place of a value
 * that a word gave is the index of the word with its key. -EINVAL with err: FILE:LINE and what
 * Primus would not load; -ENOENT: the experiment itself is not there; any other errno of read()
 * for it likewise. ret is empty then. */
int experiment_resolve(const struct experiment_world *world, char *const *words, size_t n_words,
		       struct experiment *ret, struct mo_error *err);
/* What words of the command said is taken away; what they replaced stands again. */
void experiment_without_words(struct experiment *x);
/* The words of another command instead of those that it was resolved with; its files stay as
 * they were read. -EINVAL with err. */
int experiment_command(struct experiment *x, char *const *words, size_t n_words,
		       struct mo_error *err);
/* "FILE:LINE", "word of the command" (caller frees). */
char *experiment_place(const struct experiment *e, struct config_place place);
