/* What this machine has: runs moe-discover with a deadline. A file of a wedged device can hang
 * for ever; which one, the helper leaves in a file, and the next pass leaves that device out.
 * The last full pass is stored in state_dir/nodeinfo.json: in this boot, and with these options,
 * it stands in for what cannot be discovered, so that a restarted agent does not lose the machine
 * of running jobs. While something is missing, another round follows. Decisions:
 * agent/core/agent/discovery.h. */
#include "agent/discovery.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "agent/core/bind/walls.h"
#include "agent/helper.h"
#include "agent/messages.h"
#include "agent/queue.h"
#include "agent/service.h"
#include "agent/stuck.h"
#include "lib/base/fd.h"
#include "lib/base/identity.h"
#include "lib/base/log.h"
#include "lib/loop/loop.h"
#include "lib/model/runtime.h"
#include "lib/wire/decode.h"
#include "lib/wire/encode.h"

#define OUT_MAX (16 * 1024 * 1024)
#define AT_MAX 65536
#define AGAIN_US 60000000
#define ENDING_US 500000 /* a process that was killed a moment ago is not stuck */
/* a node whose devices all hang reports, with what is known by then */
#define PASSES_BEFORE_START 2

/* One run of moe-discover; when it was late, until its process is gone. */
struct pass {
	struct discovery *d;
	struct helper *helper;
	char *file, *at;
};
struct discovery {
	struct manager *m;
	struct left_outs left;
	struct orphans orphans; /* of agents before this one */
	bool orphans_taken;
	struct pass **passes;
	size_t n_passes;
	/* state_dir has a pass of this boot, whatever the options were */
	bool remembered;
	bool known;                /* last is there */
	struct known_machine last; /* last full pass */
	char *lacks;
	size_t n_round; /* passes of this round */
	bool settled;   /* a round has ended */
	struct mo_timer *timer;
};

static void drop(struct pass *l)
{
	struct discovery *d = l->d;
	for (size_t i = 0; i < d->n_passes; i++)
		if (d->passes[i] == l)
			d->passes[i] = d->passes[--d->n_passes];
	helper_free(l->helper);
	free(l->file);
	free(l->at);
	free(l);
}

static char *memory_path(const struct discovery *d)
{
	return mo_path(d->m->config->state_dir, "nodeinfo.json");
}
static char *at_path(const struct discovery *d)
{
	return mo_path(d->m->config->runtime_dir, "discover.at");
}
/* What that process was reading, when others came after it. */
static char *at_path_of(const struct discovery *d, pid_t pid)
{
	return mo_path(d->m->config->runtime_dir, "discover.%d.at", (int)pid);
}

/* Another boot brings another boot id, so it need not survive a power loss. */
static void keep(struct discovery *d, const struct nodeinfo *info)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	_cleanup_(mo_freep) char *path = memory_path(d);
	if (d->known && mo_desc_equal(&nodeinfo_desc, info, &d->last.info))
		return;
	mo_desc_copy(&nodeinfo_desc, &d->last.info, info);
	d->known = true;
	wire_encode(&known_machine_desc, &d->last, &b);
	int r = mo_write_file(path, b.data, b.len, 0644, false);
	if (r < 0)
		mo_log(MO_WARNING, MSG_DISCOVERY, NULL,
		       "%s: %s; when a device hangs at the agent's next start, it will not be "
		       "known",
		       path, strerror(-r));
}

static void load(struct discovery *d)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	_cleanup_(mo_freep) char *path = memory_path(d);
	struct known_machine k;
	mo_desc_init(&known_machine_desc, &k);
	d->remembered = mo_read_file(path, OUT_MAX, &b) == 0 &&
			wire_decode(&known_machine_desc, b.data ? b.data : "", b.len, false, &k,
				    NULL) == 0 &&
			mo_streq(k.boot_id, d->m->boot_id);
	if (d->remembered && mo_streq(k.options, d->last.options)) {
		mo_desc_copy(&nodeinfo_desc, &d->last.info, &k.info);
		d->known = true;
	}
	mo_desc_done(&known_machine_desc, &k);
}

static bool is_dir(const char *path)
{
	struct stat st;
	return mo_stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Below a root directory of another machine there may be anything of that name. */
static bool has_files(const char *topology, const struct nodeinfo *info)
{
	struct stat st;
	size_t n = 0;
	for (size_t i = 0; topology && i < info->n_gpus; i++) {
		if (info->gpus[i].render_minor == MO_NONE)
			continue;
		_cleanup_(mo_freep) char *path = mo_path(topology, "dev/dri/renderD%lld",
							 (long long)info->gpus[i].render_minor);
		if (mo_stat(path, &st) < 0 || !S_ISCHR(st.st_mode))
			return false;
		n++;
	}
	return !topology || n > 0;
}

static void settle_walls(const struct agent_config *c, struct nodeinfo *info)
{
	const struct walls_terms terms = { .wanted = !mo_streq(c->walls, "no"),
					   .files = has_files(c->topology, info),
					   .able = mo_uid() == 0 };
	walls_settle(info, &terms);
}

/* Steps are adopted after the first pass, health and the controller hear of each: by the turn,
 * which stands above all of them. */
static void announce(struct discovery *d)
{
	d->m->machine_changed = true;
	mo_turn_arm(d->m->turn);
}

/* The controller hears of a change with a new hello. */
static void adopt(struct discovery *d, struct nodeinfo *info, const char *problem)
{
	struct manager *m = d->m;
	_cleanup_(mo_freep) char *lacks =
		discovery_says(&d->left, problem, d->known || (problem && m->info.cpus != MO_NONE));
	settle_walls(m->config, info);
	info->image_root |= service_makes_users(m);
	info->images = mo_uid() == 0 || info->image_root;
	if (mo_uid() == 0)
		runtime_list(m->config->runtimes, &info->holders, &info->n_holders);
	bool changed = !mo_streq(lacks, d->lacks) || !mo_desc_equal(&nodeinfo_desc, info, &m->info);
	mo_str_set(&d->lacks, lacks);
	if (changed || !m->started) {
		mo_desc_copy(&nodeinfo_desc, &m->info, info);
		if (m->info.cpus != MO_NONE)
			mo_log(MO_NOTICE, MSG_DISCOVERY, NULL,
			       "found %zu GPU slots, %zu NUMA nodes, %lld CPUs%s", m->info.n_gpus,
			       m->info.n_numa, (long long)m->info.cpus,
			       m->info.simulated ? " (simulated topology)" : "");
		for (size_t i = 0; i < m->info.n_findings; i++)
			mo_log(MO_WARNING, MSG_DISCOVERY, NULL, "%s: %s",
			       m->info.findings[i].object, m->info.findings[i].text);
	}
	if (lacks)
		mo_log(changed ? MO_ERR : MO_DEBUG, MSG_DISCOVERY, NULL,
		       "this machine could not be looked at in full: %s", lacks);
	if (changed && m->started) {
		struct agent_event e = { .type = AE_NO_ANSWER, .ok = true };
		queue_event(m, &e);
	}
	announce(d);
}

/* What is known without this round: the last full pass, else what an earlier round found, or
 * nothing. */
static void stand_in(struct discovery *d, const char *problem)
{
	struct nodeinfo info;
	mo_desc_init(&nodeinfo_desc, &info);
	mo_desc_copy(&nodeinfo_desc, &info, d->known ? &d->last.info : &d->m->info);
	if (!d->known)
		mo_vec_clear(&node_finding_desc, (void **)&info.findings, &info.n_findings);
	discovery_join(&info, d->known ? &d->last.info : NULL, &d->left);
	adopt(d, &info, problem);
	mo_desc_done(&nodeinfo_desc, &info);
}

static void again_later(struct discovery *d)
{
	mo_timer_in(d->timer, MO_MIN((int64_t)AGAIN_US, d->m->config->probe_host_us));
}

static void on_gone(void *arg)
{
	struct pass *l = arg;
	struct discovery *d = l->d;
	left_outs_gone(&d->left, l->file);
	(void)mo_remove_at(AT_FDCWD, l->at, 0);
	drop(l);
	if (d->settled)
		announce(d);
}

/* What a process that hangs was reading: what it said, and where that is no file but a step
 * (within hwloc), what the kernel says. */
static char *where(const struct discovery *d, const char *at, pid_t pid)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	const char *said = mo_read_file(at, AT_MAX, &b) == 0 && b.len && *b.data ? b.data : NULL,
		   *root = d->m->config->topology;
	if (said && !strchr(said, ' '))
		return mo_strdup(said);
	_cleanup_(mo_freep) char *file = stuck_file(pid);
	size_t n = root && mo_starts_with(file, root) ? strlen(root) : 0;
	return said && file ? mo_printf("%s: %s", said, file + n)
	       : said       ? mo_strdup(said)
	       : file       ? mo_strdup(file + n)
			    : NULL;
}

static void begin_pass(struct discovery *d);

static void on_late(struct pass *l, const char *problem)
{
	struct discovery *d = l->d;
	pid_t pid = helper_pid(l->helper);
	_cleanup_(mo_freep) char *at = at_path(d);
	l->file = where(d, at, pid);
	l->at = at_path_of(d, pid);
	(void)mo_rename(at, l->at); /* an agent that comes after this one reads it */
	bool again = left_outs_add(&d->left, l->file);
	d->settled |= !again;
	helper_on_end(TAKE_PTR(l->helper), on_gone, l);
	if (!again || (!d->m->started && (d->known || d->n_round >= PASSES_BEFORE_START)))
		stand_in(d, problem);
	if (again)
		begin_pass(d);
	else
		again_later(d);
}

static void on_pass(void *arg, int status, const char *out, size_t n, const char *problem)
{
	struct pass *l = arg;
	struct discovery *d = l->d;
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	struct nodeinfo info;
	if (l->helper && helper_is_late(l->helper)) {
		on_late(l, problem);
		return;
	}
	l->helper = NULL; /* frees itself */
	drop(l);
	d->settled = true;
	mo_desc_init(&nodeinfo_desc, &info);
	_cleanup_(mo_freep) char *at = at_path(d),
				 *file = problem && WIFSIGNALED(status) ? where(d, at, 0) : NULL;
	int r = problem ? mo_error_set(&err, -EIO, "%s%s%s", problem,
				       file ? ", while it read " : "", file ? file : "")
			: wire_decode(&nodeinfo_desc, out, n, false, &info, &err);
	if (r < 0)
		stand_in(d, mo_error_text(&err, r));
	else {
		if (d->left.n)
			discovery_join(&info, d->known ? &d->last.info : NULL, &d->left);
		else {
			discovery_vanished(&info, d->known ? &d->last.info : NULL);
			keep(d, &info);
		}
		adopt(d, &info, NULL);
	}
	mo_desc_done(&nodeinfo_desc, &info);
	if (r < 0 || d->left.n)
		again_later(d);
}

/* What the configuration says of moe-discover. */
static void configured(const struct agent_config *c, char ***argv, size_t *n)
{
	_cleanup_(mo_freep) char *gpus = c->gpus > 0 ? mo_printf("%lld", (long long)c->gpus) : NULL;
	const struct {
		const char *option, *value;
	} all[] = {
		{ c->topology && is_dir(c->topology) ? "--root" : "--xml", c->topology },
		{ "--fake-gpus", gpus },
		{ "--cpus", c->cpus },
		{ "--gpus", c->use_gpus },
	};
	for (size_t i = 0; i < ELEMENTSOF(all); i++)
		if (all[i].value) {
			mo_strs_add(argv, n, all[i].option);
			mo_strs_add(argv, n, all[i].value);
		}
	if (c->only_fake_gpus)
		mo_strs_add(argv, n, "--only-fake");
}

static void strings_free(char **argv, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(argv[i]);
	free(argv);
}

static void begin_pass(struct discovery *d)
{
	struct manager *m = d->m;
	_cleanup_(mo_freep) char *at = at_path(d);
	struct pass *l = mo_alloc(sizeof(*l));
	char **argv = NULL;
	size_t n = 0;
	mo_strs_add(&argv, &n, "moe-discover");
	configured(m->config, &argv, &n);
	for (size_t i = 0; i < d->left.n; i++)
		if (d->left.items[i].dir) {
			mo_strs_add(&argv, &n, "--leave-out");
			mo_strs_add(&argv, &n, d->left.items[i].dir);
		}
	mo_strs_add(&argv, &n, "--at");
	mo_strs_add(&argv, &n, at);
	*MO_GROW(argv, n) = NULL;
	(void)mo_remove_at(AT_FDCWD, at, 0); /* of an earlier pass; this one makes its own */
	*l = (struct pass){ .d = d };
	*MO_GROW(d->passes, d->n_passes) = l;
	d->n_round++;
	int r = helper_start(m->loop, m->discover_path, argv, m->config->discover_deadline_us,
			     OUT_MAX, on_pass, l, &l->helper);
	strings_free(argv, n);
	_cleanup_(mo_freep) char *problem =
		r < 0 ? mo_printf("%s: %s", m->discover_path, strerror(-r)) : NULL;
	if (r < 0)
		on_pass(l, 0, "", 0, problem);
}

static void on_orphan_ended(void *arg, struct orphan *o)
{
	struct discovery *d = arg;
	mo_log(MO_NOTICE, MSG_DISCOVERY, NULL,
	       "process %d of an agent before this one, which hung, has ended", (int)o->pid);
	if (o->file)
		left_outs_gone(&d->left, o->file);
	if (o->at)
		(void)mo_remove_at(AT_FDCWD, o->at, 0);
	orphans_drop(&d->orphans, o);
	if (d->settled)
		announce(d);
}

/* What hangs since an earlier agent is not tried again. Where it is not known what that is,
 * nothing is left out. */
static void take_orphan(struct discovery *d, struct orphan *o)
{
	_cleanup_(mo_freep) char *usual = at_path(d), *at = at_path_of(d, o->pid);
	const char *why = "reads";
	if (o->at) {
		if (mo_streq(o->at, usual) && mo_access(at, F_OK) < 0)
			(void)mo_rename(usual, at);
		mo_str_set(&o->at, at);
		o->file = where(d, at, o->pid);
		if (o->file)
			mo_str_set(&o->file, left_outs_orphan(&d->left, o->file, o->pid));
		why = o->file ? o->file : "an unknown file";
	} else
		why = o->object ? o->object : o->area;
	mo_log(MO_WARNING, MSG_DISCOVERY, NULL,
	       "process %d of an agent before this one hangs, and not even SIGKILL ends it: %s",
	       (int)o->pid, why);
}

static void on_round(void *arg)
{
	struct discovery *d = arg;
	d->n_round = 0;
	for (size_t i = 0; !d->orphans_taken && i < d->orphans.n; i++)
		take_orphan(d, d->orphans.items[i]);
	d->orphans_taken = true;
	if (left_outs_begin(&d->left)) {
		begin_pass(d);
		return;
	}
	if (!d->m->started) {
		d->settled = true;
		stand_in(d, "a process hangs");
	}
	again_later(d);
}

/* Or nobody can say: where the bus is not shown (a container without /sys), nothing has left it. */
static bool on_the_bus(const struct discovery *d, const char *bdf)
{
	const char *topology = d->m->config->topology;
	_cleanup_(mo_freep) char *bus = mo_path(topology ? topology : "/", "sys/bus/pci/devices"),
				 *path = mo_path(bus, "%s", bdf);
	return mo_access(path, F_OK) == 0 || errno != ENOENT || mo_access(bus, F_OK) < 0;
}

/* Those that are on the bus were left out on purpose (use_gpus) or are of another driver. */
bool discovery_missing(struct discovery *d, const struct nodeinfo *before)
{
	struct nodeinfo info, was;
	if (d->remembered || !d->settled || d->left.n ||
	    (d->m->config->topology && !is_dir(d->m->config->topology)))
		return false;
	mo_desc_init(&nodeinfo_desc, &info);
	mo_desc_init(&nodeinfo_desc, &was);
	mo_desc_copy(&nodeinfo_desc, &info, &d->m->info);
	mo_desc_copy(&nodeinfo_desc, &was, before);
	for (size_t i = was.n_gpus; i-- > 0;)
		if (!was.gpus[i].bdf ||
		    (!discovery_has(&info, was.gpus[i].bdf) && on_the_bus(d, was.gpus[i].bdf)))
			mo_vec_remove(&gpu_slot_desc, was.gpus, &was.n_gpus, i);
	discovery_vanished(&info, &was);
	bool changed = info.n_gpus != d->m->info.n_gpus;
	if (changed) {
		mo_log(MO_WARNING, MSG_DISCOVERY, NULL,
		       "the controller knows GPUs of this boot that are no longer on the bus; this "
		       "agent has no memory of its own (%s)",
		       d->m->config->state_dir);
		keep(d, &info);
		adopt(d, &info, NULL);
	}
	mo_desc_done(&nodeinfo_desc, &info);
	mo_desc_done(&nodeinfo_desc, &was);
	return changed;
}

void discovery_begin(struct discovery *d)
{
	const char *root = d->m->config->topology && is_dir(d->m->config->topology)
				   ? d->m->config->topology
				   : NULL;
	orphans_find(d->m->loop, root, on_orphan_ended, d, &d->orphans);
	if (d->orphans.n)
		mo_timer_in(d->timer, ENDING_US);
	else
		on_round(d);
}

const char *discovery_lacks(const struct discovery *d, bool *ret_nothing)
{
	*ret_nothing = d->m->info.cpus == MO_NONE;
	return d->lacks;
}

void discovery_held(const struct discovery *d, char ***ret, size_t *n_ret)
{
	/* before, a process that was killed a moment ago counts as stuck */
	for (size_t i = 0; d->settled && i < d->left.n; i++)
		if (d->left.items[i].stuck && d->left.items[i].object)
			mo_strs_add(ret, n_ret, d->left.items[i].object);
	for (size_t i = 0; d->settled && i < d->orphans.n; i++)
		if (d->orphans.items[i]->area)
			mo_strs_add(ret, n_ret,
				    d->orphans.items[i]->object ? d->orphans.items[i]->object
								: d->orphans.items[i]->area);
}

struct discovery *discovery_free(struct discovery *d)
{
	if (!d)
		return NULL;
	while (d->n_passes > 0)
		drop(d->passes[0]);
	free(d->passes);
	mo_timer_free(d->timer);
	orphans_done(&d->orphans);
	left_outs_done(&d->left);
	mo_desc_done(&known_machine_desc, &d->last);
	free(d->lacks);
	free(d);
	return NULL;
}

int discovery_new(struct manager *m, struct discovery **ret)
{
	struct discovery *d = mo_alloc(sizeof(*d));
	struct mo_buf options = { 0 };
	char **argv = NULL;
	size_t n = 0;
	*d = (struct discovery){ .m = m };
	mo_desc_init(&known_machine_desc, &d->last);
	configured(m->config, &argv, &n);
	for (size_t i = 0; i < n; i++)
		mo_buf_printf(&options, "%s%s", i ? " " : "", argv[i]);
	strings_free(argv, n);
	d->last.boot_id = mo_strdup(m->boot_id);
	d->last.options = mo_buf_take(&options);
	int r = mo_timer_new(m->loop, on_round, d, &d->timer);
	if (r < 0) {
		discovery_free(d);
		return r;
	}
	load(d);
	*ret = d;
	return 0;
}
