/* A layout with its patterns compiled. Private to agent/core/ckpt*.c. */
#pragma once
#ifndef PCRE2_CODE_UNIT_WIDTH
#define PCRE2_CODE_UNIT_WIDTH 8
#endif
#include <pcre2.h>

#include "agent/core/ckpt/ckpt.h"

struct ckpt_rules {
	struct ckpt_layout layout;
	pcre2_code *entry, *unfinished, *shard, *leftover, *listed, *contains, *by_tracker, *beside;
	pcre2_code *grids[CKPT_GRIDS_MAX], *each[CKPT_NEEDS_MAX], *unless[CKPT_NEEDS_MAX],
		*unless_said[CKPT_NEEDS_MAX], *told_by[CKPT_GRIDS_MAX];
	pcre2_code **formats, **iterations;
	pcre2_match_data *data;
};
bool ckpt_found(const struct ckpt_rules *r, const pcre2_code *code, const char *text, size_t n);
/* An entry under judgement; its files by name. */
struct judging {
	const struct ckpt_rules *r;
	const struct ckpt_entry *e;
	const struct ckpt_question *q;
	const struct ckpt_file **sorted;
};
/* ckpt_grid.c. Whether it has files of any grid; NULL or why grids are not full (caller frees). */
bool ckpt_has_cells(const struct ckpt_rules *r, const struct ckpt_entry *e);
char *ckpt_judge_grids(const struct judging *j);
