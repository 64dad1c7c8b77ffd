/* What the ranks of a step did since the last reading: bytes of their logs, and of their processes'
 * reads and writes, time on processors (AX_MOTION, agent/core/agent/motion.h). All of it is the
 * kernel's own memory and the agent's own disk: nothing that a device or a file system of users
 * could hold up. What cards moved and GPUs computed is what their probes told last
 * (agent/health.c). Asked only for a job that is overdue. */
#include "agent/motion.h"

#include <string.h>
#include <sys/stat.h>

#include "agent/core/agent/motion.h"
#include "agent/health.h"
#include "agent/paths.h"
#include "agent/queue.h"
#include "agent/step_dir.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/parse.h"
#include "lib/base/proc.h"

#define IO_TEXT_MAX 4096

struct seen {
	struct motion_process *all;
	size_t n;
};

static int see(void *arg, pid_t pid)
{
	struct seen *s = arg;
	struct mo_proc p;

	if (mo_proc_read(pid, &p) == 0)
		*MO_GROW(s->all, s->n) = (struct motion_process){
			.pid = p.pid, .ppid = p.ppid, .cpu_us = p.cpu_us, .state = p.state
		};
	return 0;
}

struct motion_process *motion_processes(const struct motion_reading *ranks, size_t n_ranks,
					size_t *ret_n)
{
	struct seen s = { 0 };

	mo_proc_each(see, &s);
	motion_trees(s.all, s.n, ranks, n_ranks);
	*ret_n = s.n;
	return s.all;
}

/* What follows the key in the text of /proc/PID/io; MO_NONE. */
static int64_t io_value(const char *text, const char *key)
{
	const char *at = strstr(text, key);
	_cleanup_(mo_freep) char *word =
		at ? mo_strndup(at + strlen(key), strcspn(at + strlen(key), "\n")) : NULL;
	int64_t v;

	return word && mo_parse_i64(word, 0, INT64_MAX, &v) == 0 ? v : MO_NONE;
}

/* Bytes that the process read and wrote, by calls of any kind but those of sockets; MO_NONE: they
 * are not ours to read. */
static int64_t io_of(int64_t pid)
{
	_cleanup_(mo_freep) char *path = mo_printf("/proc/%lld/io", (long long)pid);
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	int64_t in, out;

	if (mo_read_file(path, IO_TEXT_MAX, &b) < 0 || !b.data)
		return MO_NONE;
	in = io_value(b.data, "rchar: ");
	out = io_value(b.data, "wchar: ");
	return in == MO_NONE || out == MO_NONE ? MO_NONE : in + out;
}

static int64_t log_of(const struct step_dir *d, int64_t rank)
{
	_cleanup_(mo_freep) char *dir = path_logs(d->manager->config, d->job, d->attempt);
	_cleanup_(mo_freep) char *path = mo_path(dir, "rank-%lld.log", (long long)rank);
	struct stat st;

	return mo_stat(path, &st) == 0 ? st.st_size : MO_NONE;
}

/* Its process and those below. */
static void add(struct motion_reading *r, const struct motion_process *p)
{
	int64_t io = io_of(p->pid);

	if (p->pid == r->pid) {
		r->state = motion_state(p->state);
		r->io_bytes = io;
		r->cpu_us = 0;
	} else {
		/* a loader that a file system holds up holds up its rank */
		if (r->state == PROCESS_RUNS && motion_state(p->state) == PROCESS_WAITS)
			r->state = PROCESS_WAITS;
		if (io != MO_NONE && r->io_bytes != MO_NONE)
			r->io_bytes += io;
	}
}

/* Slots of the other steps that may still send. */
static void others(const struct step_dir *d, int64_t **slots, size_t *n)
{
	const struct manager *m = d->manager;

	for (size_t i = 0; i < m->n_steps; i++) {
		const struct step_dir *o = m->steps[i];

		if (o == d || o->gone || o->forgotten)
			continue;
		for (size_t k = 0; k < o->spool.launch.n_gpus; k++)
			mo_ints_add(slots, n, o->spool.launch.gpus[k]);
	}
}

static const struct gpu_slot *slot_of(const struct nodeinfo *info, int64_t index)
{
	for (size_t i = 0; i < info->n_gpus; i++)
		if (info->gpus[i].index == index)
			return &info->gpus[i];
	return NULL;
}

/* Of one slot: the links of its GPU, the card beside it. */
static void cards_of(const struct step_dir *d, int64_t slot, const int64_t *taken, size_t n_taken,
		     struct motion_card **cards, size_t *n)
{
	const struct nodeinfo *info = &d->manager->info;
	const struct gpu_slot *g = slot_of(info, slot);

	for (int nic = 0; g && nic < 2; nic++) {
		const char *name = nic ? g->nic : g->bdf;
		struct health_traffic t;

		if (!name)
			continue;
		t = watch_traffic(d->manager->watch, nic ? PROBE_NIC : PROBE_GPU, name);
		*MO_GROW(*cards, *n) =
			(struct motion_card){ t.read_at, t.moved_at,
					      motion_shared(info, g, nic, taken, n_taken) };
	}
}

/* A rank of all GPUs of the node sends by the cards of all of them. */
static int64_t net_of(const struct step_dir *d, int64_t rank, const int64_t *taken, size_t n_taken,
		      int64_t now)
{
	const struct launch *l = &d->spool.launch;
	struct motion_card *cards = NULL;
	size_t n = 0;
	int64_t ret;

	for (size_t i = 0; i < l->n_gpus; i++)
		if (l->n_local == 1 || (int64_t)i == rank - l->first_rank)
			cards_of(d, l->gpus[i], taken, n_taken, &cards, &n);
	ret = motion_net(cards, n, now);
	free(cards);
	return ret;
}

/* Its GPUs, as long as nobody else has a part of them: no other step, no other rank of this one. */
static struct motion_work work_of(const struct step_dir *d, int64_t rank, const int64_t *taken,
				  size_t n_taken, int64_t now)
{
	const struct nodeinfo *info = &d->manager->info;
	const struct launch *l = &d->spool.launch;
	struct motion_gpu *gpus = NULL;
	int64_t *peers = NULL;
	struct motion_work ret;
	size_t n = 0, n_peers = 0;

	for (size_t i = 0; i < l->n_gpus; i++)
		if (l->n_local > 1 && (int64_t)i != rank - l->first_rank)
			mo_ints_add(&peers, &n_peers, l->gpus[i]);
	for (size_t i = 0; i < l->n_gpus; i++) {
		const struct gpu_slot *g = slot_of(info, l->gpus[i]);
		struct gpu_work w;

		if (l->n_local > 1 && (int64_t)i != rank - l->first_rank)
			continue;
		w = watch_work(d->manager->watch, g ? g->bdf : NULL);
		*MO_GROW(gpus, n) = (struct motion_gpu){
			.read_at = w.read_at,
			.worked_at = w.worked_at,
			.spins_since = w.spins_since,
			.shared = g && (motion_shared(info, g, false, taken, n_taken) ||
					motion_shared(info, g, false, peers, n_peers)),
		};
	}
	ret = motion_work(gpus, n, now);
	free(gpus);
	free(peers);
	return ret;
}

void motion_look(struct step_dir *d)
{
	struct agent_event e = { .type = AE_MOTION, .job = d->job, .attempt = d->attempt };
	struct motion_reading *ranks =
		agent_core_ranks(d->manager->core, d->job, d->attempt, &e.n_readings);
	size_t n_taken = 0, n = 0;
	struct motion_process *all = motion_processes(ranks, e.n_readings, &n);
	int64_t *taken = NULL;

	watch_traffic_asked(d->manager->watch);
	others(d, &taken, &n_taken);
	for (size_t i = 0; i < e.n_readings; i++) {
		ranks[i].log_bytes = log_of(d, ranks[i].rank);
		ranks[i].net_at = net_of(d, ranks[i].rank, taken, n_taken, mo_clock_boot_us());
		ranks[i].work = work_of(d, ranks[i].rank, taken, n_taken, mo_clock_boot_us());
		/* itself first: what cannot be read of it is not made up by its children */
		for (int pass = 0; pass < 2; pass++)
			for (size_t k = 0; k < n; k++)
				if (all[k].root == ranks[i].pid &&
				    (all[k].pid == ranks[i].pid) == (pass == 0))
					add(&ranks[i], &all[k]);
		for (size_t k = 0; k < n && ranks[i].cpu_us != MO_NONE; k++)
			if (all[k].root == ranks[i].pid)
				ranks[i].cpu_us += all[k].cpu_us;
	}
	free(taken);
	free(all);
	e.readings = ranks;
	queue_event(d->manager, &e);
}
