/* sd-event in one thread: the loop of the daemons and of whatever waits in them.
 *
 * moed and moe-agent run mo_loop_run(); their sources' callbacks read, decode, queue and return.
 * The manager's turn (struct mo_turn) runs when everything readable was read, or when it was armed
 * for MO_TURN_WAIT_US: many messages cost one synced transaction, and a flood delays nobody for
 * long. Timers are on CLOCK_BOOTTIME, which counts while a machine sleeps and which nobody sets.
 *
 * What never happens: a callback that blocks (files that may hang, name look-ups and children are
 * somebody else's process); a callback after its source was freed; two turns at once. Everything
 * here belongs to the thread of the loop. What it waits for is in ready.h (descriptors) and
 * http_client.h (answers). */
#pragma once
#include <stdint.h>
#include <systemd/sd-event.h>

/* sd-event accuracy 0 means 250 ms (measured); always name the slack */
#define MO_TIMER_SLACK_US 100

/* sd_event_loop(), which keeps in *longest_ns the CPU time of the longest callback so far: what one
 * peer's message can make all others wait, whatever else this machine does. */
int mo_loop_run(sd_event *loop, int64_t *longest_ns);

/* Ends it, with that code, once what is being dispatched has returned. */
void mo_loop_end(sd_event *loop, int code);
/* To the service manager, where there is one: "READY=1" and so on. */
void mo_loop_notify(const char *state);

/* One-shot timer on CLOCK_BOOTTIME that can be moved. It rings before anything that is read: beats
 * are answered and deadlines seen however much comes in. */
struct mo_timer;
int mo_timer_new(sd_event *loop, void (*fn)(void *arg), void *arg, struct mo_timer **ret);
/* absolute CLOCK_BOOTTIME; INT64_MAX = off */
void mo_timer_at(struct mo_timer *t, int64_t boot_us);
void mo_timer_in(struct mo_timer *t, int64_t us);
struct mo_timer *mo_timer_free(struct mo_timer *t);
#define MO_TURN_WAIT_US 2000
/* fn runs once per turn after all readable sources were dispatched (priority lowest), or when it
 * was armed for MO_TURN_WAIT_US; arm it from any callback. */
struct mo_turn;
int mo_turn_new(sd_event *loop, void (*fn)(void *arg), void *arg, struct mo_turn **ret);
/* another limit than MO_TURN_WAIT_US; INT64_MAX = none */
void mo_turn_wait(struct mo_turn *t, int64_t us);
void mo_turn_arm(struct mo_turn *t);
/* runs it: a source that has very much to queue lets it be dealt with piece by piece */
void mo_turn_now(struct mo_turn *t);
struct mo_turn *mo_turn_free(struct mo_turn *t);
