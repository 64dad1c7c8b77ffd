/* Measured runs that calibrate later plans (struct anchor): which of them are of one stack. Pure
 * readers, called by update/measured.c and by the shell's plans. */
#pragma once
#include "daemon/core/state/promise.h"
#include "lib/base/desc.h"
#include "lib/model/recipe.h"

struct state;
/* A measured run that calibrates later plans; it stays when its job is forgotten. Stack:
 * software (engine), version (ROCm of its nodes, NULL = not reported), gpu, precision, model. */
struct anchor {
	char *software, *version, *gpu, *precision, *model;
	int64_t job;
	struct measured measured;
	char *recipe_text;    /* as submitted */
	struct recipe recipe; /* with what the planner chose */
};
extern const struct mo_desc anchor_desc;

/* Software, GPU, precision and model are the same; versions may differ. */
bool anchor_same_stack(const struct anchor *a, const struct anchor *b);
/* The newest anchor of a's stack is of the same version: an upgrade retires what was
 * measured before. */
bool anchor_current(const struct state *s, const struct anchor *a);
