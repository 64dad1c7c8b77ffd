/* Sections of an engine file that say what a recipe may ask of the engine: features, rules, keys, renamed (docs/engines.md). Private to lib/recipe; rows of engine_file.c. */
#pragma once
#include "lib/recipe/schema.h"

void engine_features_read(struct reader *r, const struct key *k, const struct ynode *v);
void engine_missing_read(struct reader *r, const struct key *k, const struct ynode *v);
void engine_rules_read(struct reader *r, const struct key *k, const struct ynode *v);
void engine_keys_read(struct reader *r, const struct key *k, const struct ynode *v);
void engine_keys_older_read(struct reader *r, const struct key *k, const struct ynode *v);
void engine_layout_flags_read(struct reader *r, const struct key *k, const struct ynode *v);
void engine_data_parallel_read(struct reader *r, const struct key *k, const struct ynode *v);
void engine_keys_source_read(struct reader *r, const struct key *k, const struct ynode *v);
void engine_keys_complete_read(struct reader *r, const struct key *k, const struct ynode *v);
void engine_keys_more_read(struct reader *r, const struct key *k, const struct ynode *v);
void engine_renamed_read(struct reader *r, const struct key *k, const struct ynode *v);
void engine_types_read(struct reader *r, const struct key *k, const struct ynode *v);
void engine_names_read(struct reader *r, const struct key *k, const struct ynode *v);
void engine_last_save_off_read(struct reader *r, const struct key *k, const struct ynode *v);
/* engine_layout.c: where checkpoints lie, and the words by which the engine takes one or none */
void engine_layout_read(struct reader *r, const struct key *k, const struct ynode *v);
void engine_resume_read(struct reader *r, const struct key *k, const struct ynode *v);

/* engine_file.c, for the sections. A pattern compiles as the agent does it (bytes, not UTF-8: ranks print anything), its named groups are known, `needed` is there (NULL = none). */
/* Rules of printed lines, appended: `lines` of an engine file, `metrics.lines` of a recipe. */
void engine_lines_read(struct recipe_errors *errors, const char *what, const struct ynode *v, struct line_rule **ret, size_t *n_ret);
/* engine_version.c */
void engine_versions_read(struct reader *r, const struct key *k, const struct ynode *v);
void engine_forced_read(struct reader *r, const struct key *k, const struct ynode *v);
/* A row's key, of flags and of features. */
void flag_key_check(struct reader *r, const char *what, const struct ynode *key);
void engine_pattern_check(struct reader *r, const struct ynode *v, const char *needed);
/* A mapping of texts, appended. */
struct kv;
void engine_pairs_read(struct reader *r, const char *what, const struct ynode *v, struct kv **ret, size_t *n_ret);
