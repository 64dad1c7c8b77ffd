/* A node as moed knows it. Stored by its description, as all of state.h. */
#pragma once
#include "lib/base/desc.h"
#include "lib/model/job.h"
#include "lib/model/message.h"

/* Its machine since it was started. */
struct node_boot {
	char *id;
	/* ids that were replaced, newest last: they cannot come back */
	char **past;
	size_t n_past;
	/* going down in order; until the next boot, or it does not after all */
	bool leaving;
};
/* The agent there, as its hello and its beats say. */
struct node_agent {
	char *instance;
	/* instances that were replaced: a late copy of an old hello must not count */
	char **past;
	size_t n_past;
	char *version, *address;
	int64_t protocol;
	int64_t obeys;   /* epoch above this controller's that it obeyed; MO_NONE */
	bool reconciled; /* said hello since this controller started */
	/* it speaks with a token that has expired: its node gets no new work, everything else
	 * goes on */
	bool token_expired;
	bool tells_health;    /* it tells node_health */
	int64_t min_uid;      /* as in its hello; MO_NONE: it did not say */
	int64_t metrics_port; /* likewise; MO_NONE: it has none */
};
struct node_drain {
	bool asked;
	char *when; /* idle | checkpoint | now */
	int64_t at; /* when it was asked for */
	bool done;  /* no rank is left */
	char *reason;
	/* "gpu.ras_ue 0000:9f:00.0": made by this finding; NULL = by an operator */
	char *cordon;
	bool hardware; /* the finding of `cordon` proves broken hardware */
	/* it is to come back when its GPUs were tried: id of that order, and how long it is waited
	 * for; MO_NONE none */
	int64_t back, back_until;
	char *held; /* why it did not come back when that was tried last; NULL */
	/* it was given back then after a cordon by failures: those before count no more; MO_NONE:
	 * it never was */
	int64_t forgiven_at;
};
/* What the site's fence_command was asked to do about its silence (rules/power.c); until it is
 * heard again. */
enum power_step {
	POWER_ASKED,  /* the command runs, or is run again by the next start */
	POWER_FAILED, /* it said that the machine is not off; `text` */
	POWER_HELD,   /* it was not asked: too many are silent at once */
	POWER_OFF,    /* it said that the machine is off */
	_POWER_N
};
extern const char *const power_step_names[_POWER_N];
struct node_power {
	int step;          /* -1 none */
	int64_t tries, at; /* at: of the newest step; MO_NONE none */
	char *text;
};
/* Kept for a job beside its ranks (rules/spares.h). */
struct node_spare {
	int64_t job;         /* MO_NONE: none */
	int64_t gpus, since; /* charged to the job from then on */
	int64_t asked;       /* id of the order of its checks */
	bool passed;         /* they were made, and it serves */
};
/* Steps there that moed never stored. */
struct node_strays {
	bool any; /* it gets no work */
	/* "j-7.a3"; none in records of earlier versions */
	char **steps;
	size_t n_steps;
	char **discard;
	size_t n_discard; /* those that an operator wants ended */
};
/* What operators, and the node's newness, make of the findings of its health. */
struct node_findings {
	/* those of unproven checks are only reported until then (health.h); MO_NONE = over, or a
	 * node of 0.1 */
	int64_t learn_until;
	/* in spite of which an operator gave the node back; until they are OK, or the next
	 * boot */
	char **waived;
	size_t n_waived;
	/* of each: check_result.count then; MO_NONE = none, or an earlier version */
	int64_t *waived_counts;
	size_t n_waived_counts;
	/* since the boot, that an operator knows of: they keep no job away; until they are OK, or
	 * the next boot */
	char **acked;
	size_t n_acked;
	int64_t *acked_counts;
	size_t n_acked_counts; /* of each, as above */
};
/* Of health.stack, and of what stack.same compares; derived, not stored; 0 = not made. */
struct node_stack {
	uint64_t hash, same;
};
struct node {
	char *name;
	struct nodeinfo info;
	/* UP SUSPECT DOWN; shown as draining or drained with drain.asked */
	int state;
	char *reason; /* of the state */
	int64_t registered_at;
	/* not heard since the state was restored: may hold what the backup does not know */
	bool unseen;
	struct node_boot boot;
	struct node_agent agent;
	struct node_drain drain;
	struct node_power power;
	struct node_spare spare;
	struct node_strays strays;
	struct node_health *health; /* newest word of the agent in this boot; NULL = none yet */
	struct node_findings findings;
	struct node_stack stack;
	/* events about this node that the ring does not hold any more; MO_NONE none */
	int64_t events_gone;
};
extern const struct mo_desc node_desc;
struct recipe;
/* enum node_state with drain taken in. */
int node_shown_state(const struct node *n);
/* The recipe has no image, or this node can run one; it cannot when its agent is of before. */
bool node_runs_image(const struct node *n, const struct recipe *r);
