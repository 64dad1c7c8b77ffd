/* The invariants, by what they are of; a violation ends the run. */
#pragma once
#include "tests/sim/sim.h"

/* check.c */
void check_records(struct sim *s, const struct core_out *out);
void check_promises(struct sim *s);
void check_equal(struct sim *s);
void check_state(struct sim *s);

/* check_attempt.c: of a record before it is applied to the shadow, where it has one */
void check_place(struct sim *s, const struct record *r);
void check_final(struct sim *s, const struct record *r);
void check_fork(struct sim *s, const struct proc *p);
/* for a person, and says so: nothing that it may resume is whole */
bool check_waits(struct sim *s, const struct job *j);

/* check_verdict.c */
void check_fail(struct sim *s, const struct record *r);
void check_loss(struct sim *s, const struct record *r);
void check_verdict(struct sim *s, const struct record *r);
void check_hang(struct sim *s, const struct record *r);
void check_straggler(struct sim *s, const struct record *r);

/* check_clock.c: of an incident */
void check_deaths(struct sim *s, const struct record *r);

/* check_health.c: before the record is applied to the shadow */
void check_health(struct sim *s, const struct record *r);

/* check_time.c */
void check_samples(struct sim *s, const struct job *j);
void check_time(struct sim *s);
void check_disowned(struct sim *s);
void check_end(struct sim *s);

/* history.c */
void check_history(struct sim *s, const struct record *r);
