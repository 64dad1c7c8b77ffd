/* A controller core in virtual time with toy agents: the bed of tests/unit/dcore.
 *
 * A test makes a world, adds toys (nodes), submits jobs and says what happens (world_note, ...);
 * the toys start and end what they are ordered to, unless the test says otherwise. world_step() is
 * one turn.
 *
 * Every record goes through JSON into a second core, which must stay equal; after each turn
 * state_check() holds: ledgers close, no GPU is in two jobs. So each test is one of replay too. */
#pragma once
#include "tests/unit/unit.h"

#include "daemon/core/core.h"
#include "tests/core_inside.h"
#include "daemon/core/view/view.h"
#include "lib/base/buf.h"

#define S 1000000LL
#define MAX_NODES 24
struct toy_step {
	int64_t job, attempt, first_rank, n_ranks, through, written, resume;
	bool gone, hold, hung;
	const char *waits; /* spooled: for which GPU */
	struct note *notes;
	size_t n_notes;
};
/* When a rank last did what: MO_NONE cannot be read, INT64_MAX does it all the time. */
struct toy_motion {
	int64_t log_at, io_at, cpu_at, net_at;
	int state; /* enum process_state */
	/* whether its GPU can be read, when that computed last, since when it spins; 0: it does
	 * not */
	bool gpu;
	int64_t worked_at, spins_since;
};
struct toy {
	char name[32], boot[32], instance[32];
	bool deaf;          /* sends nothing */
	bool addresses;     /* its GPUs have PCI addresses: 0000:90:00.0, 0000:91:00.0 ... */
	bool leaving;       /* its machine is going down */
	bool token_expired; /* it speaks with a token that has expired */
	bool images;        /* it can run images */
	bool image_root;    /* as root in them */
	/* it brings images: what it says of each that it is ordered, and which these are */
	bool brings;
	struct image_report image;
	struct image_report *ordered;
	size_t n_ordered;
	const char *holds; /* this runtime may start containers of them */
	/* it tells what moves of its ranks when it is asked, as it is since then; 0: nobody asks */
	bool tells_motion;
	bool doubts; /* it has programs for a check that is thorough; the last check was one */
	bool thorough;
	int64_t watched_since;
	struct toy_motion moves[8]; /* of its ranks, in their order */
	/* what their flight recorders say from now on, when they are asked what moves */
	const struct rank_recorder *recorders;
	size_t n_recorders;
	/* where its ranks are, of its last step; goes out with each beat */
	struct rank_progress progress[8];
	size_t n_progress;
	int64_t clock_us; /* when the clock of its boot began; 0: it does not tell what that says */
	/* what they did in their newest minute; the same */
	struct rank_activity activity[8];
	size_t n_activity;
	int64_t beat, gpus;
	struct toy_step *steps;
	size_t n_steps;
	struct command *log;
	size_t n_log; /* every command obeyed */
	/* NULL: it reports nothing; sent until health_acked says its version */
	struct node_health *health;
	int64_t health_acked;
	struct gpu_sensors *sensors;
	size_t n_sensors;
};
struct record_log {
	struct record *items;
	size_t n_items;
};
struct world {
	struct core *core, *shadow;
	int64_t now;
	struct toy toys[MAX_NODES];
	size_t n_toys;
	struct core_out out; /* of the last step */
	int reply_status;
	int64_t reply_job;
	int64_t reply_after_s; /* MO_NONE: it does not say when to try again */
	char *reply_text;
	bool no_launch;          /* toys do not start what they are told to */
	bool no_kill;            /* toys do not end what they are told to */
	struct scan_result scan; /* what every scan finds */
	bool no_scan;
	int64_t rotten;     /* iteration whose content is not what was verified; 0 = none */
	bool prune_fails;   /* what an order removes stays there */
	bool verify;        /* orders to verify after a save are answered too */
	int64_t n_verified; /* how many were; by node and part: */
	/* marker: no more was asked for */
	struct {
		size_t toy;
		int64_t part, parts;
		bool marker;
	} verified[64];
	/* toys are of before orders had names: they know an order by its number */
	bool old_agents;
	bool no_check;  /* toys do not make their on-failure checks */
	bool unwatched; /* its steps are not checked: other tests take the same ones */
	int64_t n_records;
	int64_t n_powers;       /* how often a node was to be powered off */
	struct record_log *log; /* every record from here on; NULL: nobody asks */
};
void world_init(struct world *w, size_t n_nodes, int64_t gpus);
void world_done(struct world *w);
/* written as JSON and read again first */
void world_step(struct world *w, const struct core_input *in);
void world_tick(struct world *w, int64_t us); /* time passes; deadlines fire; nobody beats */
/* time passes with beats of all toys that are not deaf */
void world_run(struct world *w, int64_t us);
void world_beat(struct world *w, size_t toy); /* one sync, obeying what is answered */
void world_hello(struct world *w, size_t toy);
/* the steps are gone, another boot id; says hello when it is not refused any more */
void world_reboot(struct world *w, size_t toy);
void world_lose_spool(struct world *w, size_t toy); /* the agent forgets its steps */
void world_crash(struct world *w);                  /* the controller restarts from its records */
/* what moed --restore appends; then the first start */
void world_restored(struct world *w);
const struct job *world_job(const struct world *w, int64_t id);
struct node *world_node(const struct world *w, size_t toy);

/* recipe of n GPUs in *ret, initialised */
void world_recipe(struct submit *ret, int64_t gpus);
int64_t world_submit(struct world *w, const struct submit *spec); /* job id, or -status */
int64_t world_submit_gpus(struct world *w, int64_t gpus);
/* it runs and has trained so far on n0 */
int64_t world_submit_running(struct world *w, int64_t gpus, int64_t iterations);
void world_verb(struct world *w, int type, int64_t job); /* acting as operator */
void world_node_verb(struct world *w, int type, size_t toy, const char *when);

struct toy_step *world_toy_step(struct world *w, size_t toy, int64_t job);
/* appended to the step's journal; goes out with the next beat */
struct note *world_note(struct world *w, size_t toy, int64_t job, int kind);
void world_iteration(struct world *w, size_t toy, int64_t job, int64_t iteration);
void world_exit(struct world *w, size_t toy, int64_t job, int64_t rank, int64_t code,
		int64_t signal);
size_t world_count(const struct world *w, size_t toy, int command_kind);
bool world_event_seen(const struct world *w, const char *type);
void world_found(struct world *w, int64_t iteration, bool complete);

/* health (world_health.c) */
/* a world whose agents tell of their health */
void world_init_telling(struct world *w, size_t nodes, int64_t gpus);
/* from now on it tells of its health: everything ok; says hello */
void world_tells(struct world *w, size_t toy);
/* CHECK_OK: it is gone */
void world_finding(struct world *w, size_t toy, const char *check, int state, int action);
size_t world_events(const struct world *w, const char *type); /* how many there were */
size_t world_cordoned(const struct world *w);
void world_next_has(const struct world *w, int64_t id, const char *text); /* what it advises */
/* moectl why says it somewhere */
bool world_why_says(const struct world *w, int64_t id, const char *text);
void world_why_has(const struct world *w, int64_t id, const char *text);
/* The recorded reason is `recorded` (NULL: what happened before it stays there), and the queue,
 * `why` and the Job document say code and sentence alike. */
void world_waits(const struct world *w, int64_t id, int code, const char *recorded,
		 const char *sentence);
