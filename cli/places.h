/* Where the paths that a recipe names lead on this machine. It may be a login node without the
 * file systems of the cluster, so only what is certain is reported: a directory that is here and
 * lacks the file. What no machine could train with, such as a file in the place of a directory,
 * is an error; all else is a warning, because the nodes may have another tree at that place. */
#pragma once
#include "cli/recipe.h"

/* what only a checkout of Primus has; what lies there is the engine's, not the user's */
#define PLACES_PRESETS "primus/configs"

/* The path, below the directory unless it is absolute. Caller frees. */
char *places_below(const char *dir, const char *path);
/* Where this machine would have what a rank sees at an absolute path: in an image on a mount of it,
 * or in the directory of the image. Caller frees. */
char *places_seen(const struct recipe_input *in, const char *path);
/* False only of a path that is surely not here: of one below a directory that is not here,
 * nothing can be said. */
bool places_may_have(const struct recipe_input *in, const char *path);
/* The path with another name in place of the first that is not there; NULL: none is like it.
 * Caller frees. */
char *places_meant(const char *workdir, const char *path);
/* Looks at the directories and programs of a recipe that passed its checks. 0, or CLI_USAGE
 * (printed); warnings go to stderr. */
int places_check(struct cli *cli, const struct recipe_input *in);
