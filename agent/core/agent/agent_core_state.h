/* State of the agent's core, shared by agent_core.c (a step's life, answers), agent_command.c (what
 * the controller orders), agent_fence.c and report.c (what is sent). */
#pragma once
#include "agent/core/agent/agent_step.h"

/* steps a node keeps; launches beyond it wait for the controller to forget some */
#define STEPS_MAX 1024
/* jobs whose highest attempt is remembered; the one launched longest ago goes first */
#define FENCE_JOBS_MAX 4096
#define SCANS_MAX 64
#define QUERIES_MAX 64 /* query ids remembered against repetition */

/* OFF: start-up; WAIT: hello again at link_at; HELLO: sent */
enum link { LINK_OFF, LINK_WAIT, LINK_HELLO, LINK_UP };
struct highest {
	int64_t job, attempt;
};
/* sent: once as urgent; syncs carry it until it is acknowledged */
struct scan {
	int64_t job;
	int order; /* enum scan_order */
	int64_t id;
	bool wanted, done, sent;
	struct scan_result result;
};
struct query {
	int64_t id, at;
};

struct agent_core {
	char *node, *boot_id, *instance;
	int64_t epoch;
	struct highest *fence;
	size_t n_fence;
	struct agent_step **steps;
	size_t n_steps;
	struct scan *scans;
	size_t n_scans;
	struct query queries[QUERIES_MAX];
	size_t next_query;
	enum link link;
	/* WAIT: when to say hello; HELLO: when to give it up. hello_us: patience with it, 0
	 * after any answer */
	int64_t link_at, backoff_us, hello_us;
	uint32_t jitter;
	bool sync_out, urgent_out, urgent_again;
	/* health is to be sent now; once in an urgent message, syncs carry it until it is
	 * acknowledged */
	bool checked;
	/* sync_due: when the next sync may leave, INT64_MAX none is due */
	int64_t sync_sent, sync_due, urgent_sent;
	int64_t beat_us, beat;
	int64_t quick, quick_since; /* syncs since then, at most a second ago */
};

/* appends */
struct agent_effect *agent_effect(struct agent_out *out, int type, int64_t job, int64_t attempt);
void agent_core_send_urgent(struct agent_core *s, int64_t now, struct agent_out *out);
void agent_core_send_sync(struct agent_core *s, int64_t now, struct agent_out *out);
void agent_core_say_hello(struct agent_core *s, int64_t now, struct agent_out *out);
void agent_core_hello_late(struct agent_core *s, int64_t now);
void agent_core_lose_link(struct agent_core *s, int64_t now);

struct agent_step *agent_core_find(const struct agent_core *s, int64_t job, int64_t attempt);
struct agent_step *agent_core_add(struct agent_core *s, int64_t job, int64_t attempt,
				  const struct launch *l, enum agent_step_phase phase);
void agent_core_drop(struct agent_core *s, struct agent_step *e);
/* Started when the fence is on disk: a full disk refuses the launch instead of starting what a
 * restarted agent would not remember. */
void agent_core_start_fenced(struct agent_core *s, struct agent_step *e, struct agent_out *out);
/* Carries a wanted stop or kill to where the step is. */
void agent_step_order(struct agent_step *e, int64_t now, struct agent_out *out);
/* Answers an order that must not or cannot be carried out: proof, from memory, that no process of
 * this attempt is here. */
void agent_core_refuse(struct agent_core *s, int64_t job, int64_t attempt, const char *cause,
		       const char *text);

void agent_core_command(struct agent_core *s, const struct command *c, int64_t now,
			struct agent_out *out);
void agent_core_scanned(struct agent_core *s, const struct scan_result *result, int64_t now,
			struct agent_out *out);
void agent_core_checked(struct agent_core *s, int64_t now, struct agent_out *out);
void agent_core_drop_scan(struct agent_core *s, size_t i);

/* the highest attempt of it, 0: none */
int64_t agent_core_highest(const struct agent_core *s, int64_t job);
void agent_core_raise_fence(struct agent_core *s, int64_t job, int64_t attempt);
/* job 0: the epoch */
void agent_core_save_fence(const struct agent_core *s, int64_t job, struct agent_out *out);
void agent_core_learn_epoch(struct agent_core *s, int64_t epoch, struct agent_out *out);
