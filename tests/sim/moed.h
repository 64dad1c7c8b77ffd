/* The controller as it is, in the simulator's world: its shell (daemon), its store on a disk that
 * loses what was not synced (tests/unit/seams), and in place of the other seams what seams.c
 * and moed.c have: clocks, chance, timers, turn, the child that writes snapshots, messages. */
#pragma once
#include "tests/sim/sim.h"

#define MOED_HOST "/var" /* its machine's files */
#define MOED_DIR MOED_HOST "/lib/moe"

struct manager;
/* seams.c */
void seams_begin(struct sim *s);           /* a process */
bool seams_ended(void);                    /* its loop was told to end */
int64_t moed_boot_us(const struct sim *s); /* its CLOCK_BOOTTIME */
/* A timer of its that is due (an event K_TIMER), its turn (K_TURN). */
void moed_timer(struct sim *s, const struct queued *e);
void moed_turn(struct sim *s);

/* moed.c */
/* NULL: there is none. */
struct manager *moed(void);
/* A process begins on what is stored; false: it ends at once (and is over). */
bool moed_open(struct sim *s);
/* It ended by itself, or was killed within what it did. */
bool moed_ended(void);
void moed_done(void); /* with all that it stored */
/* It is gone without a word; power: its machine too. */
void moed_close(struct sim *s, bool power);
/* One bit of its state's directory is another from now on; false: there is none. */
bool moed_flip(struct sim *s);
/* The directory of its state is as --init makes it, or as --restore makes it of that state. */
void moed_begin(struct sim *s, const struct core *restored);
/* A message of an agent or a person reaches it; what it says is sent by moed_said(). */
void moed_message(struct sim *s, struct message *m);
/* fn of each answer that left since, in their order. job: of a submit */
struct said {
	int64_t request;
	int status;
	int64_t after_s; /* MO_NONE: it does not say when to try again */
	char *text;
	size_t n;
};
size_t moed_said(struct said **ret); /* caller frees each text, and the list */
