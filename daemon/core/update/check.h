/* What holds of every state after every turn, as one sentence when it does not. It recounts what
 * update keeps counted, so it costs a pass over everything: unit tests, the simulator and moed of
 * `make CHECK=1` (and of sanitized builds) ask it after each turn, a release never. It decides
 * nothing and changes nothing. A rule about what may follow what is no business of it: it sees one
 * state, not two. */
#pragma once

struct core;

/* What is broken, with whose it is (the caller frees); NULL = everything holds. */
char *state_check(const struct core *c);
/* The same of what was placed by the last turn, in which placing comes last; the next one may hear
 * that a GPU is gone. */
char *state_check_placed(const struct core *c);
