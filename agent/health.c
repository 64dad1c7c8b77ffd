/* The shell of the node's health: starts moe-probe for what the core
 * (agent/core/health/health.h) names as due, and programs of checks; keeps what the core
 * remembers in state_dir/health.json. Every probe is a process with a deadline, at most one for
 * a device. One that SIGKILL does not end is stuck in the kernel: its device is UNKNOWN and not
 * probed again until it is gone. */
#include "agent/health.h"
#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "agent/discovery.h"
#include "agent/helper.h"
#include "agent/queue.h"
#include "agent/release.h"
#include "agent/settings.h"
#include "agent/step_dir.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/base/proc.h"
#include "lib/loop/loop.h"
#include "lib/wire/decode.h"
#include "lib/wire/encode.h"

#define DEVICE_DEADLINE_US 5000000
#define HOST_DEADLINE_US 10000000
#define CHECKS_AGAIN_US 60000000
#define PROBE_WORDS 16 /* of a command line, without the GPUs that are left out */
#define PROBE_OUT_MAX (4 * 1024 * 1024)
#define PROGRAM_OUT_MAX (1024 * 1024)
#define MEMORY_BYTES_MAX (16 * 1024 * 1024)
#define SAVE_US 5000000

struct run {
	struct watch *w;
	struct helper *helper;
	int area;
	char *object, *check;
	bool exclusive;
};
struct watch {
	struct manager *m;
	struct health *core; /* NULL until the checks are known */
	char *checks_text;   /* which checks those are: part of the fingerprint */
	/* the checks cannot be read: nothing is probed, and that is reported */
	bool broken;
	struct helper *checks;
	struct run **runs;
	size_t n_runs;
	struct mo_timer *timer;
	int64_t saved_at;
	int64_t *slots;
	size_t n_slots, n_steps; /* in use, as the core last heard */
};

static void run_free(struct run *r)
{
	helper_free(r->helper);
	free(r->object);
	free(r->check);
	free(r);
}

static void drop(struct run *r)
{
	struct watch *w = r->w;
	for (size_t i = 0; i < w->n_runs; i++)
		if (w->runs[i] == r)
			w->runs[i] = w->runs[--w->n_runs];
	run_free(r);
}

static char *memory_path(const struct watch *w)
{
	return mo_path(w->m->config->state_dir, "health.json");
}

static void save(struct watch *w)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	_cleanup_(mo_freep) char *path = memory_path(w);
	struct health_memory memory;
	mo_desc_init(&health_memory_desc, &memory);
	health_save(w->core, &memory);
	health_keep(w->core, &memory);
	wire_encode(&health_memory_desc, &memory, &b);
	mo_desc_done(&health_memory_desc, &memory);
	int r = mo_write_file(path, b.data, b.len, 0644, false);
	w->saved_at = mo_clock_boot_us();
	if (r < 0)
		mo_log(MO_WARNING, NULL, NULL,
		       "%s: %s; after a restart of the agent counters begin anew", path,
		       strerror(-r));
}

static void load(struct watch *w)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	_cleanup_(mo_freep) char *path = memory_path(w);
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	struct health_memory memory;
	int r = mo_read_file(path, MEMORY_BYTES_MAX, &b);
	if (r == -ENOENT)
		return;
	mo_desc_init(&health_memory_desc, &memory);
	if (r == 0)
		r = wire_decode(&health_memory_desc, b.data ? b.data : "", b.len, false, &memory,
				&err);
	if (r == 0) {
		health_load(w->core, &memory);
		health_restore(w->core, &memory, mo_clock_boot_us());
	} else
		mo_log(MO_WARNING, NULL, NULL, "%s: %s; counters begin anew", path,
		       mo_error_text(&err, r));
	mo_desc_done(&health_memory_desc, &memory);
}

/* ---- what is due */

static void begin_pass(struct watch *w);

static void on_gone(void *arg)
{
	struct run *r = arg;
	struct watch *w = r->w;
	health_unstuck(w->core, r->area, r->object, mo_clock_boot_us());
	drop(r);
	begin_pass(w);
}

static void on_probe(void *arg, int status, const char *out, size_t n, const char *problem)
{
	struct run *r = arg;
	struct watch *w = r->w;
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	int64_t now = mo_clock_boot_us();
	struct helper *helper = TAKE_PTR(r->helper); /* frees itself */
	bool late = helper && helper_is_late(helper);
	struct probe p;
	mo_desc_init(&probe_desc, &p);
	int e = problem ? mo_error_set(&err, -EIO, "%s", problem)
			: wire_decode(&probe_desc, out, n, false, &p, &err);
	if (e == 0 && (p.area != r->area || !mo_streq(p.object, r->object)))
		e = mo_error_set(&err, -EPROTO, "moe-probe answered for something else");
	if (e == 0)
		health_probe(w->core, &p, now);
	else
		health_failed(w->core, r->area, r->object, mo_error_text(&err, e), late, now);
	mo_desc_done(&probe_desc, &p);
	if (late)
		helper_on_end(helper, on_gone, r);
	else
		drop(r);
	begin_pass(w);
}

static void on_program(void *arg, int status, const char *out, size_t n, const char *problem)
{
	struct run *r = arg;
	struct watch *w = r->w;
	bool failed = problem && (WIFSIGNALED(status) || (r->helper && helper_is_late(r->helper)) ||
				  !r->helper);
	r->helper = NULL; /* frees itself */
	health_program(w->core, r->check, WIFEXITED(status) ? WEXITSTATUS(status) : -1, out, n,
		       failed ? problem : NULL, mo_clock_boot_us());
	drop(r);
	begin_pass(w);
}

static const char *fake_root(const struct watch *w)
{
	struct stat st;
	const char *topology = w->m->config->topology;
	return topology && mo_stat(topology, &st) == 0 && S_ISDIR(st.st_mode) ? topology : NULL;
}

static int start_probe(struct watch *w, struct run *r, const struct health_pass *l)
{
	const struct agent_config *c = w->m->config;
	const char *root = fake_root(w);
	_cleanup_(mo_freep) char *since = mo_printf("%lld", (long long)l->since);
	char **silent = NULL;
	size_t n = 1, n_silent = 0;
	if (l->area == PROBE_HOST)
		health_silent(w->core, &silent, &n_silent);
	_cleanup_(mo_freep) char **argv = mo_alloc_array(PROBE_WORDS + 2 * n_silent, sizeof(*argv));
	argv[0] = (char *)"moe-probe";
	if (root) {
		argv[n++] = (char *)"--root";
		argv[n++] = (char *)root;
	}
	argv[n++] = (char *)probe_area_names[l->area];
	if (l->sensors)
		argv[n++] = (char *)"--sensors";
	if (l->area == PROBE_GPU || l->area == PROBE_NIC)
		argv[n++] = r->object;
	const char *const disks[] = { c->state_dir, c->tmpdir };
	for (size_t i = 0; l->area == PROBE_HOST && !root && i < ELEMENTSOF(disks); i++) {
		argv[n++] = (char *)"--disk";
		argv[n++] = (char *)disks[i];
	}
	for (size_t i = 0; i < n_silent; i++) {
		argv[n++] = (char *)"--leave-out";
		argv[n++] = silent[i];
	}
	if (l->area == PROBE_KLOG && l->since >= 0) {
		argv[n++] = (char *)"--since";
		argv[n++] = since;
	}
	int64_t deadline = l->area == PROBE_GPU || l->area == PROBE_NIC ? DEVICE_DEADLINE_US
									: HOST_DEADLINE_US;
	int e = helper_start(w->m->loop, w->m->probe_path, argv, deadline, PROBE_OUT_MAX, on_probe,
			     r, &r->helper);
	for (size_t i = 0; i < n_silent; i++)
		free(silent[i]);
	free(silent);
	return e;
}

/* Where the program is; caller frees, NULL: not installed. */
static char *installed(const char *program)
{
	static const char *const dirs[] = { "/usr/local/sbin", "/usr/local/bin", "/usr/sbin",
					    "/usr/bin",        "/sbin",          "/bin",
					    "/opt/rocm/bin" };
	if (strchr(program, '/'))
		return mo_access(program, X_OK) == 0 ? mo_strdup(program) : NULL;
	for (size_t i = 0; i < ELEMENTSOF(dirs); i++) {
		_cleanup_(mo_freep) char *path = mo_path(dirs[i], "%s", program);
		if (mo_access(path, X_OK) == 0)
			return TAKE_PTR(path);
	}
	return NULL;
}

static int start_program(struct watch *w, struct run *r, const struct health_check *c)
{
	_cleanup_(mo_freep) char *path = installed(c->argv[0]);
	char **gpus = NULL;
	size_t n_gpus = 0;
	if (!path)
		return -ENOENT;
	if (c->area == PROBE_GPU)
		health_gpus(w->core, &gpus, &n_gpus);
	_cleanup_(mo_freep) char **argv = mo_alloc_array(c->n_argv + n_gpus + 1, sizeof(*argv));
	memcpy(argv, c->argv, c->n_argv * sizeof(*argv));
	if (n_gpus)
		memcpy(argv + c->n_argv, gpus, n_gpus * sizeof(*argv));
	int e = helper_start_group(w->m->loop, path, argv, c->deadline_us, PROGRAM_OUT_MAX,
				   on_program, r, &r->helper);
	mo_strs_clear(&gpus, &n_gpus);
	return e;
}

static void arm(struct watch *w)
{
	mo_timer_at(w->timer, MO_MIN(health_deadline(w->core),
				     health_unsaved(w->core) ? w->saved_at + SAVE_US : INT64_MAX));
}

static void tell_awaited(struct watch *w)
{
	struct agent_event e = { .type = AE_CHECKED };
	if (health_awaited(w->core))
		queue_event(w->m, &e);
}

/* Starts what is due and sets the timer. An answer that comes at once (a process that cannot be
 * started) is dealt with by the core like any other. */
static void begin_pass(struct watch *w)
{
	struct health_pass l;
	int64_t now = mo_clock_boot_us();
	health_wall(w->core, mo_clock_wall_us() - now);
	releases_look(w->m->releases);
	while (health_due(w->core, now, &l)) {
		struct run *r = mo_alloc(sizeof(*r));
		*r = (struct run){ .w = w,
				   .area = l.area,
				   .object = mo_strdup(l.object),
				   .check = l.program ? mo_strdup(l.program->id) : NULL,
				   .exclusive = l.exclusive };
		*MO_GROW(w->runs, w->n_runs) = r;
		int e = l.program ? start_program(w, r, l.program) : start_probe(w, r, &l);
		if (e == 0)
			continue;
		if (l.program)
			health_program(w->core, r->check, 0, "", 0, strerror(-e), now);
		else
			health_failed(w->core, r->area, r->object, strerror(-e), false, now);
		drop(r);
	}
	if (health_unsaved(w->core) && now >= w->saved_at + SAVE_US)
		save(w);
	tell_awaited(w);
	arm(w);
}

/* ---- the checks */

static void disable(struct watch *w)
{
	const char *list = w->m->config->health_disable ? w->m->config->health_disable : "";
	for (size_t n; *(list += strspn(list, ", ")); list += n) {
		n = strcspn(list, ", ");
		_cleanup_(mo_freep) char *id = mo_strndup(list, n);
		if (!health_disable(w->core, id))
			mo_log(MO_WARNING, NULL, NULL,
			       "health_disable: there is no check '%s'; `moe-probe checks` lists "
			       "them",
			       id);
	}
	const struct health_check *c;
	for (size_t i = 0; (c = health_check_at(w->core, i)); i++) {
		bool there = true;
		for (size_t k = 0; c->enabled && c->n_argv && k <= c->n_requires; k++) {
			_cleanup_(mo_freep) char *path =
				installed(k < c->n_requires ? c->requires[k] : c->argv[0]);
			there = there && path;
		}
		if (!there)
			health_disable(w->core, c->id);
	}
}

static void tell_settings(struct watch *w)
{
	struct stack_item *items = NULL;
	size_t n = 0;
	settings_items(w->m, w->checks_text, w->core, &items, &n);
	health_settings(w->core, items, n, mo_clock_boot_us());
	mo_vec_clear(&stack_item_desc, (void **)&items, &n);
}

static void open_core(struct watch *w, const struct health_checks *checks)
{
	const struct agent_config *c = w->m->config;
	const struct health_intervals intervals = { .sensors_us = c->probe_sensors_us,
						    .device_us = c->probe_device_us,
						    .host_us = c->probe_host_us,
						    .klog_us = c->probe_klog_us };
	int64_t now = mo_clock_boot_us();
	health_free(w->core);
	free(w->checks_text);
	w->checks_text = settings_checks(checks);
	w->core = health_new(checks, w->m->boot_id, &intervals, mo_clock_wall_us() / 1000000);
	health_wall(w->core, mo_clock_wall_us() - now);
	health_expect(w->core, c->expect_memory, c->expect_partition);
	load(w);
	disable(w);
	watch_devices(w);
	health_busy(w->core, w->slots, w->n_slots, w->n_steps, now);
}

/* Nothing is probed, so that one wrong line of a site's file does not stop training; but it
 * is reported. */
static void open_broken(struct watch *w, const char *why)
{
	static char id[] = "host.checks",
		    what[] = "the health checks cannot be read, nothing is checked",
		    next[] = "correct the file; the agent tries again every minute",
		    reading[] = "problem";
	struct health_check broken;
	mo_desc_init(&health_check_desc, &broken);
	broken.id = id;
	broken.what = what;
	broken.next = next;
	broken.reading = reading;
	broken.area = PROBE_HOST;
	broken.when = WHEN_PERIODIC;
	broken.measure = MEASURE_TEXT;
	broken.otherwise = CHECK_WARN;
	broken.consecutive = 1;
	broken.enabled = true;
	const struct health_checks one = { .checks = &broken, .n_checks = 1 };
	w->broken = true;
	open_core(w, &one);
	health_failed(w->core, PROBE_HOST, "host", why, false, mo_clock_boot_us());
}

static void on_checks(void *arg, int status, const char *out, size_t n, const char *problem)
{
	struct watch *w = arg;
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	struct health_checks checks;
	w->checks = NULL; /* frees itself */
	mo_desc_init(&health_checks_desc, &checks);
	int r = problem ? mo_error_set(&err, -EIO, "%s", problem)
			: wire_decode(&health_checks_desc, out, n, false, &checks, &err);
	if (r == 0) {
		w->broken = false;
		open_core(w, &checks);
		begin_pass(w);
	} else {
		if (!w->broken)
			mo_log(MO_ERR, NULL, NULL,
			       "health checks: %s; nothing is checked on this node until they can "
			       "be read",
			       mo_error_text(&err, r));
		open_broken(w, mo_error_text(&err, r));
		releases_look(w->m->releases);
		tell_awaited(w);
		mo_timer_in(w->timer, CHECKS_AGAIN_US);
	}
	mo_desc_done(&health_checks_desc, &checks);
}

static void ask_for_checks(struct watch *w)
{
	char *argv[] = { (char *)"moe-probe", (char *)"checks", NULL };
	int r = helper_start(w->m->loop, w->m->probe_path, argv, HOST_DEADLINE_US, PROBE_OUT_MAX,
			     on_checks, w, &w->checks);
	if (r < 0)
		on_checks(w, 0, "", 0, strerror(-r));
}

static void on_timer(void *arg)
{
	struct watch *w = arg;
	if (!w->core || w->broken) {
		if (!w->checks)
			ask_for_checks(w);
		return;
	}
	health_wall(w->core, mo_clock_wall_us() - mo_clock_boot_us());
	health_tick(w->core, mo_clock_boot_us());
	begin_pass(w);
}

/* ---- manager */

void watch_devices(struct watch *w)
{
	struct nodeinfo nothing;
	if (!w)
		return;
	if (!w->core) {
		mo_timer_in(w->timer, 0);
		return;
	}
	bool unknown;
	char **held = NULL;
	size_t n_held = 0;
	const char *lacks = discovery_lacks(w->m->discovery, &unknown);
	mo_desc_init(&nodeinfo_desc, &nothing);
	/* The devices of a topology file are on another machine. */
	bool here = !w->m->config->topology || fake_root(w);
	health_devices(w->core, here ? &w->m->info : &nothing, w->m->config->expect_gpus,
		       mo_clock_boot_us());
	mo_desc_done(&nodeinfo_desc, &nothing);
	health_discovery(w->core, lacks, unknown, mo_clock_boot_us());
	discovery_held(w->m->discovery, &held, &n_held);
	health_held(w->core, held, n_held, mo_clock_boot_us());
	while (n_held > 0)
		free(held[--n_held]);
	free(held);
	tell_settings(w);
	mo_timer_in(w->timer, 0);
}

static bool same_slots(const struct watch *w, const int64_t *slots, size_t n)
{
	return n == w->n_slots && (n == 0 || memcmp(slots, w->slots, n * sizeof(*slots)) == 0);
}

/* A job goes before a program that loads the node. */
static void make_way(struct watch *w)
{
	for (size_t i = w->n_runs; i-- > 0;) {
		struct run *r = w->runs[i];
		if (!r->exclusive || !r->check)
			continue;
		health_cancel(w->core, r->check, mo_clock_boot_us());
		drop(r);
	}
}

void watch_steps(struct watch *w)
{
	int64_t *slots = NULL;
	size_t n = 0, n_steps = 0;
	if (!w)
		return;
	for (size_t i = 0; i < w->m->n_steps; i++) {
		const struct step_dir *d = w->m->steps[i];
		if (d->gone || d->forgotten)
			continue;
		n_steps++;
		for (size_t k = 0; !d->held && k < d->spool.launch.n_gpus; k++)
			mo_ints_add(&slots, &n, d->spool.launch.gpus[k]);
	}
	if (n_steps == w->n_steps && same_slots(w, slots, n)) {
		free(slots);
		return;
	}
	free(w->slots);
	w->slots = slots;
	w->n_slots = n;
	w->n_steps = n_steps;
	if (!w->core)
		return;
	if (n_steps)
		make_way(w);
	health_wall(w->core, mo_clock_wall_us() - mo_clock_boot_us());
	health_busy(w->core, slots, n, n_steps, mo_clock_boot_us());
	if (!w->broken)
		mo_timer_in(w->timer, 0);
}

enum health_release watch_release(struct watch *w, const int64_t *slots, size_t n, int64_t since,
				  char **ret)
{
	*ret = NULL;
	if (!w || w->broken)
		return RELEASE_DONE;
	if (!w->core) { /* on_checks() looks again */
		*ret = mo_strdup("the checks of this node are not read yet");
		return RELEASE_WAITS;
	}
	enum health_release r = health_release(w->core, slots, n, since, mo_clock_boot_us(), ret);
	if (r == RELEASE_WAITS)
		arm(w);
	return r;
}

void watch_traffic_asked(struct watch *w)
{
	if (!w || !w->core || w->broken)
		return;
	health_traffic_asked(w->core, mo_clock_boot_us());
	arm(w);
}

struct health_traffic watch_traffic(const struct watch *w, int area, const char *name)
{
	return w && w->core ? health_traffic(w->core, area, name)
			    : (struct health_traffic){ MO_NONE, MO_NONE };
}

const struct health_activity *watch_activity(const struct watch *w, const char *gpu)
{
	static const struct health_activity none;

	return w && w->core ? health_activity(w->core, gpu) : &none;
}

const struct node_health *watch_results(const struct watch *w)
{
	return w && w->core ? health_results(w->core) : NULL;
}

void watch_newest(const struct watch *w, struct gpu_sensors **gpus, size_t *n_gpus,
		  struct nic_sensors **nics, size_t *n_nics)
{
	if (w && w->core)
		health_newest(w->core, gpus, n_gpus, nics, n_nics);
}

struct gpu_work watch_work(const struct watch *w, const char *gpu)
{
	struct gpu_work ret;

	gpu_work_begin(&ret);
	return w && w->core ? health_work(w->core, gpu) : ret;
}

void watch_reply(struct watch *w, const struct sync_reply *r)
{
	if (!w || !w->core)
		return;
	health_acked(w->core, r->health);
	health_orders(w->core, r->commands, r->n_commands, mo_clock_boot_us());
	if (!w->broken)
		arm(w);
}

void watch_urgent(struct watch *w, struct agent_sync *s)
{
	if (w && w->core && health_untold(w->core))
		s->health = mo_desc_dup(&node_health_desc, health_results(w->core));
}

void watch_sync(struct watch *w, struct agent_sync *s)
{
	if (!w || !w->core)
		return;
	watch_urgent(w, s);
	health_sensors(w->core, &s->sensors, &s->n_sensors);
	health_nics(w->core, &s->nics, &s->n_nics);
}

bool watch_doubts(const struct watch *w)
{
	return w && w->core && health_doubts(w->core);
}

int watch_new(struct manager *m, struct watch **ret)
{
	if (!m->config->health)
		return 0;
	struct watch *w = mo_alloc(sizeof(*w));
	w->m = m;
	int r = mo_timer_new(m->loop, on_timer, w, &w->timer);
	if (r < 0) {
		free(w);
		return r;
	}
	/* what ranks may lock is what the probe is handed; it has no limits of its own */
	if (m->config->memlock_bytes == -1)
		(void)mo_proc_raise_limit(RLIMIT_MEMLOCK, -1, NULL);
	*ret = w;
	return 0;
}

struct watch *watch_free(struct watch *w)
{
	if (!w)
		return NULL;
	if (w->core && !w->broken)
		save(w);
	helper_free(w->checks);
	while (w->n_runs > 0)
		run_free(w->runs[--w->n_runs]);
	free(w->runs);
	mo_timer_free(w->timer);
	health_free(w->core);
	free(w->checks_text);
	free(w->slots);
	free(w);
	return NULL;
}
