/* Sections of an engine file that say what a recipe may ask of the engine: features, rules,
 * keys, renamed (docs/engines.md). Private to lib/recipe; rows of engine_file.c. */
#pragma once
#include "lib/model/engine.h"
#include "lib/recipe/schema.h"

void engine_features_read(struct reader *r, const struct key *k, const struct ynode *v);
void engine_missing_read(struct reader *r, const struct key *k, const struct ynode *v);
void engine_keys_read(struct reader *r, const struct key *k, const struct ynode *v);
void engine_keys_older_read(struct reader *r, const struct key *k, const struct ynode *v);
void engine_layout_flags_read(struct reader *r, const struct key *k, const struct ynode *v);
void engine_outputs_read(struct reader *r, const struct key *k, const struct ynode *v);
void engine_data_parallel_read(struct reader *r, const struct key *k, const struct ynode *v);
void engine_keys_source_read(struct reader *r, const struct key *k, const struct ynode *v);
void engine_keys_complete_read(struct reader *r, const struct key *k, const struct ynode *v);
void engine_keys_more_read(struct reader *r, const struct key *k, const struct ynode *v);
void engine_renamed_read(struct reader *r, const struct key *k, const struct ynode *v);
void engine_untold_read(struct reader *r, const struct key *k, const struct ynode *v);
void engine_module_names_read(struct reader *r, const struct key *k, const struct ynode *v);
void engine_types_read(struct reader *r, const struct key *k, const struct ynode *v);
void engine_names_read(struct reader *r, const struct key *k, const struct ynode *v);
void engine_last_save_off_read(struct reader *r, const struct key *k, const struct ynode *v);
void engine_forced_read(struct reader *r, const struct key *k, const struct ynode *v);
/* Kinds of other versions (engine_version.c). */
void engine_versions_read(struct reader *r, const struct key *k, const struct ynode *v);
/* Those of the engine, made when there are none yet. */
struct engine_checks *engine_checks_of(struct engine *e);
