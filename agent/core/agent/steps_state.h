/* State of the agent's core, shared by steps.c (a step's life, answers), steps_command.c (what the
 * controller orders), steps_fence.c and report.c (what is sent). */
#pragma once
#include "agent/core/agent/entry.h"

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
/* told: once in news; syncs carry it until it is acknowledged */
struct scan {
	int64_t job;
	int order; /* enum scan_order */
	int64_t id;
	bool wanted, done, told;
	struct scan_result result;
};
struct query {
	int64_t id, at;
};

struct steps {
	char *node, *boot_id, *instance;
	int64_t epoch;
	struct highest *fence;
	size_t n_fence;
	struct entry **entries;
	size_t n_entries;
	struct scan *scans;
	size_t n_scans;
	struct query queries[QUERIES_MAX];
	size_t next_query;
	enum link link;
	/* WAIT: when to say hello; HELLO: when to give it up. hello_us: patience with it, 0
	 * after any answer */
	int64_t link_at, backoff_us, hello_us;
	uint32_t jitter;
	bool sync_out, news_out, news_again;
	/* health is to be told now; once in news, syncs carry it until it is acknowledged */
	bool checked;
	/* sync_due: when the next sync may leave, INT64_MAX none is due */
	int64_t sync_sent, sync_due, news_sent;
	int64_t beat_us, beat;
	int64_t quick, quick_since; /* syncs since then, at most a second ago */
};

/* appends */
struct steps_effect *steps_effect(struct steps_out *out, int type, int64_t job, int64_t attempt);
void steps_send_news(struct steps *s, int64_t now, struct steps_out *out);
void steps_send_sync(struct steps *s, int64_t now, struct steps_out *out);
void steps_say_hello(struct steps *s, int64_t now, struct steps_out *out);
void steps_hello_late(struct steps *s, int64_t now);
void steps_lose_link(struct steps *s, int64_t now);

struct entry *steps_find(const struct steps *s, int64_t job, int64_t attempt);
struct entry *steps_add(struct steps *s, int64_t job, int64_t attempt, const struct launch *l,
			enum entry_phase phase);
void steps_drop(struct steps *s, struct entry *e);
/* Started when the fence is on disk: a full disk refuses the launch instead of starting what a
 * restarted agent would not remember. */
void steps_start_fenced(struct steps *s, struct entry *e, struct steps_out *out);
/* Carries a wanted stop or kill to where the step is. */
void steps_tell(struct entry *e, int64_t now, struct steps_out *out);
/* Answers an order that must not or cannot be carried out: proof, from memory, that no process of
 * this attempt is here. */
void steps_refuse(struct steps *s, int64_t job, int64_t attempt, const char *cause,
		  const char *text);

void steps_command(struct steps *s, const struct command *c, int64_t now, struct steps_out *out);
void steps_scanned(struct steps *s, const struct scan_result *result, int64_t now,
		   struct steps_out *out);
void steps_checked(struct steps *s, int64_t now, struct steps_out *out);
void steps_drop_scan(struct steps *s, size_t i);

/* the highest attempt of it, 0: none */
int64_t steps_highest(const struct steps *s, int64_t job);
void steps_raise_fence(struct steps *s, int64_t job, int64_t attempt);
/* job 0: the epoch */
void steps_save_fence(const struct steps *s, int64_t job, struct steps_out *out);
void steps_learn_epoch(struct steps *s, int64_t epoch, struct steps_out *out);
