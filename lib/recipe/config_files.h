/* Configurations of engines that have no experiment (experiment.h): the files that their command
 * names, and above them the words of the command itself. Which flag names a file, how it is
 * written and how words are keys is data of the engine file (`config:`). Defaults that live in
 * the engine's Python are nobody's here: a key that no file and no word gives is not in the
 * result. */
#pragma once
#include "lib/model/engine.h"
#include "lib/recipe/experiment.h"

/* The result as that of an experiment. unread, appended: "FILE: why" of files that the command
 * names and that cannot be read here. entry: the word of the command that engine.entry is.
 * -EINVAL with err: FILE:LINE and what is wrong there. */
int config_files_resolve(const struct engine *e, const char *entry,
			 const struct experiment_world *world, char *const *words, size_t n_words,
			 struct experiment *ret, struct mo_error *err);
/* As experiment_command(). */
int config_files_command(const struct engine *e, struct experiment *x, char *const *words,
			 size_t n_words, struct mo_error *err);
