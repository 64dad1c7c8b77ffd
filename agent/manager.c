/* The agent's turn, start-up and end; see manager.h for who is below.
 *
 * Called by agent/main.c. Every source (a supervisor's socket, a child's end, a message, a timer)
 * only queues an event and arms the turn. The turn gives one event after the other to the pure core
 * (agent_core_decide()) and carries out its effects in their order before the next event, so that
 * what must be on disk first is: spool entry, then fence, then start. An effect that ends at once
 * queues its answer into the same turn.
 *
 * What never happens: a step that is started before its fence is on disk; a step that is killed
 * because its supervisor is silent (hung is reported, not ended); a decision here: what to do is
 * the core's word, what came of it goes back as an event. When the agent ends or is upgraded, its
 * steps run on under their supervisors, and the next one adopts them. */
#include "agent/manager.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "agent/core/agent/container.h"
#include "agent/cgroup.h"
#include "agent/discovery.h"
#include "agent/ending.h"
#include "agent/fence.h"
#include "agent/health.h"
#include "agent/images.h"
#include "agent/journal.h"
#include "agent/layers.h"
#include "agent/runtimes.h"
#include "agent/link.h"
#include "agent/exec.h"
#include "agent/image_asks.h"
#include "agent/logs.h"
#include "agent/messages.h"
#include "agent/metrics.h"
#include "agent/queue.h"
#include "agent/release.h"
#include "agent/scan.h"
#include "agent/start.h"
#include "agent/step_effect.h"
#include "agent/step_entry.h"
#include "agent/step_talk.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/identity.h"
#include "lib/base/log.h"
#include "lib/loop/loop.h"

/* Unsaved: tried again with the next one, and the core takes no launch before. */
static void save_fence(struct manager *m, const struct agent_effect *x)
{
	const char *dir = m->config->state_dir;
	int r = fence_save(m->fence, x->job, x->attempt, x->epoch);
	char *why = r < 0 ? mo_printf("%s/fence.log on %s could not be written: %s", dir,
				      m->config->node, strerror(-r))
			  : NULL;

	if (r < 0 && !m->fence_logged)
		mo_log(MO_ERR, NULL, NULL,
		       "%s/fence.log cannot be written: %s; running steps go on, new ones are "
		       "refused until it can: free space there",
		       dir, strerror(-r));
	m->fence_logged = r < 0;
	queue_event(m, &(struct agent_event){ .type = AE_FENCE_DONE,
					      .job = x->job,
					      .attempt = x->attempt,
					      .ok = r == 0,
					      .text = why });
}

static void carry_out(struct manager *m, struct agent_effect *x)
{
	switch (x->type) {
	case AX_FENCE: save_fence(m, x); break;
	case AX_SCAN: scan_start(m, x->command); break;
	case AX_IMAGE: images_bring(m->images, x->image, x->command->image); break;
	case AX_IMAGE_STOP: images_stop(m->images, x->image); break;
	case AX_IMAGES_TIDY: images_tidy(m->images); break;
	case AX_QUERY:
		if (!exec_query(m->execs, x->command) && !image_query(m->image_asks, x->command))
			logs_query(m->logs, x->command);
		break;
	case AX_HELLO:
		m->sync_due = m->urgent_due = false;
		link_hello(m->link);
		break;
	case AX_SYNC: m->sync_due = true; break;
	case AX_SEND_URGENT: m->urgent_due = true; break;
	default: step_effect(m, x);
	}
}

/* What was decided is under way: now the controller hears of it, once and of everything, and then
 * disks are tidied. */
static void end_turn(struct manager *m)
{
	watch_steps(m->watch);
	if (m->urgent_due && !m->end.asking)
		link_urgent(m->link);
	if (m->sync_due && !m->end.asking)
		link_sync(m->link);
	if (!m->end.asking)
		m->urgent_due = m->sync_due = false;
	for (size_t i = m->n_steps; i-- > 0;)
		if (m->steps[i]->forgotten)
			step_dir_remove(m->steps[i]);
}

/* Decides on everything queued so far. */
static void drain(struct manager *m)
{
	if (m->draining)
		return;
	m->draining = true;
	bool replied = false;
	for (size_t i = 0; i < m->n_queue; i++) { /* effects may queue more */
		struct agent_event e = m->queue[i];
		struct agent_out out = { 0 };
		if (e.type == AE_REPLY && e.ok)
			watch_reply(m->watch, e.reply);
		replied |= e.type == AE_REPLY || e.type == AE_WELCOME;
		agent_core_decide(m->core, &e, mo_clock_boot_us(), &out);
		for (size_t k = 0; k < out.n_effects; k++)
			carry_out(m, &out.effects[k]);
		agent_out_done(&out);
		queue_event_done(&e);
	}
	queue_events_done(m);
	for (size_t i = 0; replied && i < m->n_steps; i++)
		journal_trim(&m->steps[i]->journal,
			     agent_core_through(m->core, m->steps[i]->job, m->steps[i]->attempt));
	end_turn(m);
	ending_check(m);
	m->draining = false;
}

static void on_deadline(void *arg)
{
	struct agent_event e = { .type = AE_TICK };
	queue_event(arg, &e);
}

/* Once, when this machine was discovered. Steps first: what is left of dead ones is killed before
 * the controller hears of this node. */
static void start(struct manager *m)
{
	struct agent_event started = { .type = AE_STARTED };
	if (m->started)
		return;
	m->started = true;
	m->adopting = true;
	step_entries_adopt(m);
	m->adopting = false;
	queue_event(m, &started);
	drain(m);
	for (size_t i = 0; i < m->n_steps; i++)
		step_talk_connect(m->steps[i]);
	logs_retain(m->logs);
	layers_sweep(m->layers);
	images_tidy(m->images);
	runtimes_sweep(m->runtimes);
	mo_loop_notify("READY=1");
}

static void on_turn(void *arg)
{
	struct manager *m = arg;
	if (m->machine_changed) {
		m->machine_changed = false;
		start(m);
		watch_devices(m->watch);
	}
	drain(m);
	mo_timer_at(m->deadline, agent_core_deadline(m->core));
}

static int make_directories(struct manager *m, struct mo_error *err)
{
	const char *runtime = m->config->runtime_dir, *state = m->config->state_dir;
	_cleanup_(mo_freep) char *steps = mo_path(runtime, "steps");
	_cleanup_(mo_freep) char *lock = mo_path(runtime, "lock");
	mode_t mode = mo_uid() == 0 ? 0711 : 0700; /* root's ranks of other users pass through */
	int r = mo_mkdir_p(steps, mode, false);
	if (r < 0 || mo_chmod(runtime, mode) < 0 || mo_chmod(steps, mode) < 0)
		return mo_error_set(err, r < 0 ? r : -errno, "runtime_dir: %s: %s", runtime,
				    strerror(r < 0 ? -r : errno));
	r = mo_mkdir_p(state, 0755, true);
	if (r < 0)
		return mo_error_set(err, r, "state_dir: %s: %s", state, strerror(-r));
	m->lock_fd = mo_lock_file_soon(lock);
	if (m->lock_fd == -EWOULDBLOCK)
		return mo_error_set(err, -EBUSY,
				    "runtime_dir: %s belongs to another agent that is running; "
				    "stop it, or set runtime_dir and state_dir",
				    runtime);
	return m->lock_fd < 0 ? mo_error_set(err, m->lock_fd, "%s: %s", lock, strerror(-m->lock_fd))
			      : 0;
}

static int find_helpers(struct manager *m, struct mo_error *err)
{
	static const char *const names[] = { "moe-stepd", "moe-discover", "moe-ckpt",
					     "moe-probe", "moe-image",    "moe-recorder" };
	char **paths[] = { &m->stepd_path, &m->discover_path, &m->ckpt_path,
			   &m->probe_path, &m->image_path,    &m->recorder_path };
	for (size_t i = 0; i < ELEMENTSOF(names); i++) {
		*paths[i] = mo_libexec(names[i]);
		if (!*paths[i])
			return mo_error_set(err, -ENOENT,
					    "%s is missing: neither beside this program nor in %s; "
					    "install it",
					    names[i], MO_LIBEXECDIR);
	}
	return 0;
}

struct manager *manager_free(struct manager *m)
{
	if (!m)
		return NULL;
	image_asks_free(m->image_asks);
	discovery_free(m->discovery);
	metrics_free(m->metrics);
	watch_free(m->watch);
	releases_free(m->releases);
	scans_free(m);
	logs_free(m->logs);
	execs_free(m->execs);
	layers_free(m->layers);
	images_free(m->images);
	runtimes_free(m->runtimes);
	link_free(m->link);
	while (m->n_steps > 0)
		step_dir_free(m->steps[--m->n_steps]);
	free(m->steps);
	starter_free(m->starter);
	fence_free(m->fence);
	for (size_t i = 0; i < m->n_queue; i++)
		queue_event_done(&m->queue[i]);
	queue_events_done(m);
	mo_timer_free(m->deadline);
	ending_done(m);
	mo_turn_free(m->turn);
	agent_core_free(m->core);
	mo_desc_done(&nodeinfo_desc, &m->info);
	free(m->cgroup_base);
	free(m->stepd_path);
	free(m->discover_path);
	free(m->ckpt_path);
	free(m->probe_path);
	free(m->image_path);
	free(m->recorder_path);
	free(m->boot_id);
	free(m->instance);
	mo_close(m->lock_fd);
	free(m);
	return NULL;
}

/* What runs this container, as systemd or the runtime left word of it; NULL = no container.
 * Caller frees. */
static char *container_name(void)
{
	static const struct {
		const char *path, *name;
	} marks[] = {
		{ "/.dockerenv", "docker" },
		{ "/run/.containerenv", "podman" },
	};
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	if (mo_read_file("/run/systemd/container", 256, &b) == 0 && b.data)
		return mo_strndup(b.data, strcspn(b.data, "\n"));
	for (size_t i = 0; i < ELEMENTSOF(marks); i++)
		if (mo_access(marks[i].path, F_OK) == 0)
			return mo_strdup(marks[i].name);
	return NULL;
}

static void tell_container(void)
{
	_cleanup_(mo_freep) char *name = container_name();
	_cleanup_(mo_buf_done) struct mo_buf mounts = { 0 };

	if (!name || mo_read_file("/proc/self/mountinfo", 1024 * 1024, &mounts) < 0 ||
	    !boot_id_is_hosts(name, mounts.data))
		return;
	mo_log(MO_WARNING, NULL, NULL,
	       "this node is a container (%s) whose boot id is its host's: starting it anew proves "
	       "nothing to the controller, and its jobs wait. Steps that ran in it are then shown "
	       "as step.missing: when no process of one is left, say `moectl resolve STEP --gone`",
	       name);
}

static int open_parts(struct manager *m, struct mo_error *err)
{
	_cleanup_(mo_error_done) struct mo_error cgroup_err = { 0 };
	int r = find_helpers(m, err);
	if (r == 0)
		r = make_directories(m, err);
	if (r < 0)
		return r;
	m->boot_id = mo_boot_id();
	m->instance = mo_random_hex(16);
	if (!m->boot_id)
		return mo_error_set(err, -EIO, "/proc/sys/kernel/random/boot_id cannot be read");
	tell_container();
	image_asks_new(m, &m->image_asks);
	m->releases = releases_new(m);
	m->core = agent_core_new(m->config->node, m->boot_id, m->instance);
	r = starter_new(m, &m->starter, err);
	if (r < 0)
		return r;
	m->cgroup_base = m->starter->in_units ? NULL : cgroup_find_base(m->config, &cgroup_err);
	if (!m->starter->in_units && !m->cgroup_base && mo_streq(m->config->use_cgroup, "yes"))
		return mo_error_set(err, -EIO, "%s", mo_error_text(&cgroup_err, -EIO));
	if (mo_turn_new(m->loop, on_turn, m, &m->turn) < 0 ||
	    mo_timer_new(m->loop, on_deadline, m, &m->deadline) < 0 ||
	    discovery_new(m, &m->discovery) < 0 || logs_new(m, &m->logs) < 0 ||
	    execs_new(m, &m->execs) < 0 || layers_new(m, &m->layers) < 0 ||
	    runtimes_new(m, &m->runtimes) < 0 || images_new(m, &m->images) < 0 ||
	    watch_new(m, &m->watch) < 0)
		return mo_error_set(err, -EIO, "timers: %s", strerror(errno));
	m->metrics = metrics_new(m);
	r = fence_open(m, err);
	return r < 0 ? r : link_new(m, &m->link, err);
}

int manager_new(const struct agent_config *config, sd_event *loop, struct manager **ret,
		struct mo_error *err)
{
	_cleanup_(manager_freep) struct manager *m = mo_alloc(sizeof(*m));
	m->config = config;
	m->loop = loop;
	m->lock_fd = -1;
	mo_desc_init(&nodeinfo_desc, &m->info);
	int r = open_parts(m, err);
	if (r < 0)
		return r;
	discovery_begin(m->discovery);
	*ret = TAKE_PTR(m);
	return 0;
}
