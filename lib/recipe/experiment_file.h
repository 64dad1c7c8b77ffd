/* The files of an experiment: each with all that it extends. Private to
 * lib/recipe/experiment*.c. */
#pragma once
#include "lib/recipe/experiment.h"

struct experiment_reader {
	const struct experiment_world *world;
	struct experiment *out;
	struct mo_error *err;
	const char *format; /* NULL: as Primus reads YAML; else yaml, json or toml as they are */
	const char *stack[CONFIG_DEPTH_MAX];
	size_t depth; /* files that extend each other */
	size_t reads, values, bytes;
};
/* Reads a file with everything that it extends. by: what asks for it, in words; from: where that
 * is said. NULL with err; a file that is not there gives its errno in *ret_errno, which may be
 * NULL. */
struct config_value *experiment_load(struct experiment_reader *r, const char *path, const char *by,
				     struct config_place from, int *ret_errno);
/* One file in that format, without anything that it names. */
struct config_value *experiment_load_as(struct experiment_reader *r, const char *path,
					const char *format, struct config_place from,
					int *ret_errno);
/* The directory of `from` and path as one path without . and .. parts where that is known from
 * the text. */
char *experiment_path(const char *from, const char *path);
