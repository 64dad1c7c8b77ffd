/* State of the agent's core, shared by the files that decide: agent_steps.c (which there are),
 * agent_life.c (a step's life), agent_command.c (what the controller orders), agent_answers.c (what
 * it answers), agent_fence.c, link.c and report.c (what is sent). */
#pragma once
#include "agent/core/agent/agent_step.h"

/* steps a node keeps; launches beyond it wait for the controller to forget some */
#define STEPS_MAX 1024
/* jobs whose highest attempt is remembered; the one launched longest ago goes first */
#define FENCE_JOBS_MAX 4096
#define SCANS_MAX 64
#define BACKOFF_MIN_US 100000 /* from one hello to the next, at first */
#define QUERIES_MAX 64        /* query ids remembered against repetition */

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
	int64_t began;
	struct scan_result result;
};
/* An image that is ordered. going: a helper is at it; urgent: not told yet */
struct pull {
	int64_t id;
	struct image_order order;
	struct image_report report;
	int64_t job; /* the newest that wants it */
	bool going, urgent;
	int64_t retry_at; /* INT64_MAX: none is due */
	/* going: since when it brings nothing worth mentioning more than these bytes */
	int64_t moved_at, moved_bytes;
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
	struct pull *pulls;
	size_t n_pulls;
	int64_t pulls_so_far;
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
	bool recorder; /* the controller reads what flight recorders say */
	int64_t beat_us, beat;
	bool activity;              /* the controller reads it */
	int64_t activity_at;        /* AX_ACTIVITY were last out; 0 never */
	int64_t quick, quick_since; /* syncs since then, at most a second ago */
};
