/* The shell of the controller: what its files share.
 *
 * One thread on one loop. Sources (http, timers, children) make inputs and queue them (input.h);
 * the turn (turn.c) gives them to the core, stores the records and carries the effects out
 * (effects.c). Parts of their own (auth, links, streams, helpers ...) are made and ended here and
 * known to others by their headers.
 *
 * What never happens: something here is touched by another thread; a decision about jobs or nodes
 * is made outside of core/; anything is sent after the store failed (`fatal`). */
#pragma once
#include <systemd/sd-event.h>
#include "daemon/core/core.h"
#include "daemon/options.h"
#include "daemon/timing.h"
#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/coretime.h"
#include "lib/base/log.h"
#include "lib/http/server.h"
#include "lib/store/store.h"

struct manager {
	const struct options *options;
	sd_event *loop;
	struct store *store;
	struct core *core;
	struct classifier *signatures; /* of failures; the core's too */
	struct journal *journal;
	struct mo_coretime time;
	char *boot_id;
	/* that the wall clock is off and not synchronised: once */
	bool clock_reported;
	struct http_server *http;
	struct mo_turn *turn;
	struct mo_timer *deadline; /* core_deadline() */
	struct mo_timer *pulse;    /* PULSE_US: lateness, watchdog, housekeeping */
	int64_t pulse_due;         /* CLOCK_BOOTTIME */
	struct input **inputs;
	size_t n_inputs; /* queued for the next turn */
	struct auth *auth;
	struct audit *audit;
	struct links *links;
	struct execs *execs;
	struct image_questions *image_questions;
	struct streams *streams;
	struct queries *queries;
	struct helpers *helpers;
	struct fences *fences;
	struct webhooks *webhooks;
	struct specs *specs;
	struct signins *signins;
	struct quotas *quotas;
	struct anchor_texts *anchor_texts;
	struct mo_buf openapi, recipe_schema; /* of api_openapi.c; empty: nobody asked yet */
	struct snapshots *snapshots;
	struct sample_files *sample_files;
	struct forks *forks;
	struct node_configs *node_configs;
	struct timing turn_time, sync_time, lag_time;
	int64_t sync_us;                 /* what the newest synced transaction took */
	int64_t n_events[_EVENT_TYPE_N]; /* since the start */
	int64_t longest_callback_ns;     /* CPU time */
	int64_t n_records, n_snapshots, n_snapshot_failures;
	int64_t slow_reported_at; /* store.slow was reported: boot us */
	int64_t notified_at;      /* the watchdog was fed: boot us */
	bool store_full;          /* submits get 507 */
	bool fatal;               /* the store failed: nothing may be sent any more */
	char *url;                /* as in STATE/address */
	bool address_due;         /* the disk had no room for that file */
	struct http_route *routes;
	char **host_names; /* NULL-terminated, or NULL */
};
/* Opens the store, replays it, and makes the first turn: whoever carries messages may begin. 0, or
 * a negative errno with err; manager_done() in any case. */
int manager_open(struct manager *m, sd_event *loop, const struct options *o, struct mo_error *err);
/* That, and listens. */
int manager_start(struct manager *m, sd_event *loop, const struct options *o, struct mo_error *err);
void manager_done(struct manager *m);
static inline int64_t manager_now(struct manager *m)
{
	return mo_coretime_now(&m->time);
}
static inline const struct state *manager_state(const struct manager *m)
{
	return core_state(m->core);
}
