/* What moectl tells of an experiment that it has read; see experiment_notes.c. */
#pragma once
#include "cli/experiment.h"

void experiment_tell_shell(const struct recipe_input *in, const char *note);
struct config_given experiment_given_of(const struct recipe_input *in,
					const struct rank_command *c);
void experiment_notes(const struct recipe_input *in, const struct experiment *x,
		      const struct rank_command *c);
