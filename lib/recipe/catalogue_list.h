/* The files of a catalogue directory, listed once and again when a directory has changed. */
#pragma once
#include <stddef.h>

struct catalogue_list {
	char **names, **paths; /* of each the file that counts */
	size_t n;
};
/* dir: "env". Borrowed until the next call for it. A submit asked 20 files for their places, in up
 * to three directories each. */
const struct catalogue_list *catalogue_list(const char *dir);
