/* Cordons that end by themselves. Called by cordon.c with each word of a node's health. */
#pragma once

struct turn;

/* What a full disk cordoned needs no person when there is room again: the finding is gone, so that
 * there is more than what warns, not just than what is critical. Whatever else would have cordoned
 * the node meanwhile does so now. */
void cordon_lift(struct turn *t, const char *node);
