/* A resolved experiment as text, and back: what a job's record keeps of the configuration that
 * it was launched with. One line of JSON,
 *   {"read": [FILE ..], "framework", "module", "names": {..}, "named": {NAME: [FILE, LINE]},
 *   "keys": [[KEY, [VALUE, FILE, LINE, VARIABLE], ..], ..]}
 * where the first setter of a key counts and the others are what it replaced; FILE is an index
 * into read, or -1 and LINE is the word of the command; VARIABLE is left out where none was
 * taken. */
#pragma once
#include "lib/recipe/experiment.h"

struct ynode;
/* bytes that a record keeps: Primus' largest are 50 kB */
#define EXPERIMENT_RESULT_MAX (128 * 1024)

char *experiment_pack(const struct experiment *x); /* caller frees */
/* -EINVAL with err: it is none that experiment_pack() writes. ret is empty then. */
int experiment_unpack(const struct ynode *result, struct experiment *ret, struct mo_error *err);
/* What the result of a recipe's document says of a key: the value's node, borrowed; NULL:
 * nothing. */
const struct ynode *experiment_key(const struct ynode *root, const char *key);
/* What a recipe's document (NULL: none) or its text carries of its experiment
 * (`experiment.result`). -ENOENT: nothing. */
int experiment_of_tree(const struct ynode *root, struct experiment *ret, struct mo_error *err);
int experiment_of_text(const char *text, size_t n, struct experiment *ret, struct mo_error *err);
