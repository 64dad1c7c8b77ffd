/* Reads labels: a job's words of its user. */
#pragma once
#include "lib/recipe/schema.h"

void labels_read(struct reader *r, const struct key *k, const struct ynode *v);
