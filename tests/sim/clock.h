/* Clocks of a node, one set for each of its boots: how long it is up is nobody else's time, and
 * runs faster or slower; its wall clock may be set. A node that is suspended stands; where its
 * hypervisor stopped it, its clocks do too. All in us; "true time" is sim.now. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct sim;
struct queued;
struct attempt;
struct sim_clock {
	int64_t boot_at; /* true time at which CLOCK_BOOTTIME was 0, had it never stood */
	int64_t ppm;     /* it runs so much faster than true time */
	int64_t frozen;  /* so long of its boot its hypervisor stopped it */
	int64_t wall_ahead;
	/* nothing happens there until then; since then, its clocks tell what they did before */
	int64_t stands_until, frozen_until;
};
void clock_begin(struct sim *s, int node); /* of a boot */
int64_t clock_boot_us(const struct sim *s, int node);
int64_t clock_wall_us(const struct sim *s, int node);
/* The true time from which on CLOCK_BOOTTIME is no less. */
int64_t clock_true(const struct sim *s, int node, int64_t boot_us);
/* Nothing happens there for so long, frozen: of which its clocks know nothing. */
void clock_stand(struct sim *s, int node, int64_t us, bool frozen);
void clock_wake(struct sim *s, int node); /* now, when it stands */
bool clock_stands(const struct sim *s, int node);
/* True time until which that has to wait, for a node that stands; 0: it has not. */
int64_t clock_waits(const struct sim *s, const struct queued *e);
/* A node of its ranks stands, or did less than `since` ago. */
bool clock_stood(const struct sim *s, const struct attempt *a, int64_t since);
