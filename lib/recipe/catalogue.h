/* Data files of the catalogue: config/models/NAME.yaml (model_file.h), config/gpus/NAME.yaml. */
#pragma once
#include "lib/model/gpu.h"
#include "lib/recipe/errors.h"

/* A GPU type. ret must be initialised. 0, or -EINVAL with err (near miss as hint). */
int gpu_type_load(const char *name, struct gpu_type *ret, struct mo_error *err);

/* Reads a data file found by mo_data_file() and loads its YAML. NULL with err: "what 'name':
 * why", near miss as hint. dir: "models"; ext is .yaml. The tree is kept for the next time and
 * borrowed until the next call: a file whose text has not changed is not parsed again, which was
 * half of what a submit cost the controller. */
struct ynode;
/* of a file that was found */
const struct ynode *catalogue_tree(const char *path, const char *what, struct mo_error *err);
const struct ynode *catalogue_open(const char *dir, const char *what, const char *name,
				   char **ret_path, struct mo_error *err);
/* What was read from a tree that was just borrowed, kept as long as the tree is; NULL: nothing
 * yet. Once for each tree. */
void *catalogue_read(const struct ynode *root);
void *catalogue_keep_read(const struct ynode *root, void *read, void (*read_free)(void *read));
/* Another number for each tree that was read, as an address may come again; 0: none of ours. */
int64_t catalogue_serial(const struct ynode *root);
/* Of a file or directory: it has not changed for so long that its times tell the next change;
 * these are the times of the same one, unchanged. */
struct stat;
bool catalogue_rested(const struct stat *s);
bool catalogue_same_file(const struct stat *a, const struct stat *b);
/* First error of e with the file's path into err; -EINVAL. */
int catalogue_fail(struct recipe_errors *e, const char *path, struct mo_error *err);
/* "there are: a, b, c": the names in a catalogue directory; NULL for a long catalogue (caller
 * frees). */
char *catalogue_names(const char *dir);
/* Nearest of the names in a catalogue directory, or one that begins so, as a hint ("did you mean
 * 'x'?"), NULL if none (caller frees). */
char *catalogue_near(const char *dir, const char *name);
