/* See shell.h. */
#include "tests/sim/shell.h"

#include <errno.h>
#include <stdlib.h>

#include "agent/discovery.h"
#include "agent/fence.h"
#include "agent/link.h"
#include "agent/metrics.h"
#include "agent/queue.h"
#include "agent/start.h"
#include "agent/step_dir.h"
#include "lib/base/fd.h"
#include "tests/sim/seams.h"
#include "tests/sim/steps.h"

/* Changes of the disk within one saving of the fence. */
#define CHANGES 10

/* On disk, by the agent's word. */
struct promised {
	int64_t job, attempt;
};

void shell_enter(struct shell *sh)
{
	seam_be(&sh->life);
	seams_of_node(sh->node);
}

void shell_leave(void)
{
	seam_be(NULL);
	seams_of_node(-1);
}

struct shell *shell_of(struct manager *m)
{
	return (struct shell *)(void *)((char *)m - offsetof(struct shell, m));
}

struct simnode *shell_node(const struct shell *sh)
{
	return &sh->sim->nodes[sh->node];
}

/* agent/discovery.h: no GPU is ever missing. */
bool discovery_missing(struct discovery *d, const struct nodeinfo *before)
{
	return false;
}

static void promise(struct simnode *n, const struct agent_effect *x)
{
	struct promised *p = NULL;

	n->obeyed = MO_MAX(n->obeyed, x->epoch);
	for (size_t i = 0; i < n->n_promised; i++)
		if (n->promised[i].job == x->job)
			p = &n->promised[i];
	if (x->job <= 0)
		return;
	if (!p)
		p = MO_GROW(n->promised, n->n_promised);
	p->job = x->job;
	p->attempt = MO_MAX(p->attempt, x->attempt);
}

/* Attempts are not promised beyond a loss of power: another boot is given none of before. */
static void check(struct sim *s, const struct simnode *n)
{
	const struct manager *m = &n->shell->m;
	int64_t epoch = 0;

	for (size_t i = 0; i < m->n_queue; i++)
		epoch = MO_MAX(epoch, m->queue[i].epoch);
	if (epoch < n->obeyed)
		sim_violation(s, "%s has obeyed epoch %lld, and knows of %lld", n->name,
			      (long long)n->obeyed, (long long)epoch);
	for (size_t i = 0; i < n->n_promised; i++) {
		bool known = false;

		for (size_t k = 0; k < m->n_queue; k++)
			known |= m->queue[k].job == n->promised[i].job &&
				 m->queue[k].attempt >= n->promised[i].attempt;
		if (!known)
			sim_violation(s,
				      "%s was given attempt %lld of j-%lld, and has forgotten it",
				      n->name, (long long)n->promised[i].attempt,
				      (long long)n->promised[i].job);
	}
}

static void fill(struct sim *s, int node, struct shell *sh)
{
	struct simnode *n = &s->nodes[node];
	char boot[64];

	node_boot_name(n, boot);
	*sh = (struct shell){ .sim = s,
			      .node = node,
			      .config = { .controller = (char *)"http://moed",
					  .token_file = token_file(n),
					  .node = n->name,
					  .address = mo_printf("10.0.0.%d", node),
					  .state_dir = mo_printf("/%s/state", n->name),
					  .runtime_dir = mo_printf("/%s/run", n->name),
					  .tmpdir = (char *)"/tmp",
					  .log_bytes = 1 << 20 } };
	sh->watch.shell = sh;
	sh->m.config = &sh->config;
	sh->m.boot_id = mo_strdup(boot);
	sh->m.core = n->agent;
	sh->m.watch = &sh->watch;
	mo_desc_init(&nodeinfo_desc, &sh->m.info);
	sh->m.info.images = sh->m.info.image_root = node_runs_images(s, node);
	for (int64_t i = 0; i < GPUS; i++) {
		struct gpu_slot *g = MO_ADD(&sh->m.info, gpus, &gpu_slot_desc);

		g->index = i;
		g->vendor = mo_strdup("amd");
		g->model = mo_strdup("mi300x");
	}
}

void shell_open(struct sim *s, int node)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	struct simnode *n = &s->nodes[node];
	struct shell *sh = n->shell = mo_alloc(sizeof(*sh));

	fill(s, node, sh);
	_cleanup_(mo_freep) char *steps = mo_path(sh->config.runtime_dir, "steps");

	shell_enter(sh);
	if (mo_mkdir_p(sh->config.state_dir, 0755, true) < 0 ||
	    mo_mkdir_p(steps, 0700, false) < 0 || starter_new(&sh->m, &sh->m.starter, &err) < 0 ||
	    fence_open(&sh->m, &err) < 0 || link_new(&sh->m, &sh->m.link, &err) < 0)
		sim_violation(s, "the agent of %s does not start: %s", n->name,
			      mo_error_text(&err, -EIO));
	shell_leave();
	check(s, n);
	token_check_kept(s, n);
	shell_drain(s, node);
}

void shell_drain(struct sim *s, int node)
{
	struct simnode *n = &s->nodes[node];
	struct shell *sh = n->shell;
	bool answered = false;

	if (!sh || sh->draining || !n->agent)
		return;
	sh->draining = true;
	while (n->shell == sh && sh->taken < sh->m.n_queue) {
		struct agent_event e = sh->m.queue[sh->taken++];

		if (e.type == AE_REPLY && e.ok)
			health_reply(s, n, e.reply);
		answered |= e.type == AE_REPLY;
		agent_event(s, node, &e);
		queue_event_done(&e);
	}
	if (n->shell != sh)
		return;
	queue_events_done(&sh->m);
	sh->taken = 0;
	sh->draining = false;
	if (answered)
		steps_trim(s, node);
	steps_tidy(s, node);
}

static struct shell *begin(struct sim *s, int node)
{
	struct shell *sh = s->nodes[node].shell;

	sh->m.end.leaving = s->nodes[node].leaving;
	shell_enter(sh);
	return sh;
}

void shell_hello(struct sim *s, int node)
{
	link_hello(begin(s, node)->m.link);
	shell_leave();
}

void shell_sync(struct sim *s, int node)
{
	link_sync(begin(s, node)->m.link);
	shell_leave();
}

void shell_urgent(struct sim *s, int node)
{
	link_urgent(begin(s, node)->m.link);
	shell_leave();
}

/* It dies within what it does to the disk, and its node may with it. */
void shell_die(struct sim *s, int node)
{
	if (sim_fault(s, F_AGENT_WITH_POWER, 0.5))
		node_lose(s, node, sim_between(s, 2 * S, 60 * S));
	else
		agent_kill(s, node, sim_between(s, 50 * MS, 5 * S));
}

void shell_risk(struct shell *sh)
{
	if (sim_fault(sh->sim, F_TOKEN_UNKEPT, 0.02))
		seam_fail_after(1 + sim_random(sh->sim) % CHANGES, ENOSPC);
	else if (sim_fault(sh->sim, F_TOKEN_WITHIN, 0.05))
		seam_crash_after(1 + sim_random(sh->sim) % CHANGES);
}

void shell_fence(struct sim *s, int node, const struct agent_effect *x)
{
	struct simnode *n = &s->nodes[node];
	struct agent_event e = { .type = AE_FENCE_DONE, .job = x->job, .attempt = x->attempt };
	struct shell *sh = n->shell;
	bool full = sim_fault(s, F_FENCE_FAILS, 0.01);

	shell_enter(sh);
	if (full)
		seam_fail_after(1 + sim_random(s) % CHANGES, ENOSPC);
	else if (sim_fault(s, F_AGENT_WITHIN, 0.01))
		seam_crash_after(1 + sim_random(s) % CHANGES);
	e.ok = fence_save(sh->m.fence, x->job, x->attempt, x->epoch) == 0;
	bool dead = seam_dead();
	seam_alive();
	shell_leave();
	if (dead) {
		shell_die(s, node);
		return;
	}
	if (e.ok) {
		promise(n, x);
	} else {
		e.text = "no space left on device";
		if (x->job > 0)
			sim_harm(s, x->job, x->attempt);
	}
	agent_later(s, node, sim_between(s, 100, 2 * MS), &e);
}

void shell_close(struct simnode *n)
{
	struct shell *sh = TAKE_PTR(n->shell);

	if (!sh)
		return;
	while (sh->taken < sh->m.n_queue)
		queue_event_done(&sh->m.queue[sh->taken++]);
	queue_events_done(&sh->m);
	link_free(sh->m.link);
	while (sh->m.n_steps > 0)
		step_dir_free(sh->m.steps[--sh->m.n_steps]);
	free(sh->m.steps);
	starter_free(sh->m.starter);
	fence_free(sh->m.fence);
	mo_desc_done(&nodeinfo_desc, &sh->m.info);
	free(sh->m.boot_id);
	free(sh->config.address);
	free(sh->config.token_file);
	free(sh->config.state_dir);
	free(sh->config.runtime_dir);
	free(sh);
}

void shell_power_loss(struct sim *s, int node)
{
	struct simnode *n = &s->nodes[node];
	_cleanup_(mo_freep) char *disk = mo_printf("/%s", n->name);

	shell_close(n);
	seam_power_loss_of(disk, 1 + sim_random(s) % 1000000);
	free(n->promised);
	n->promised = NULL;
	n->n_promised = 0;
}

void shell_free(struct simnode *n)
{
	shell_close(n);
	free(n->promised);
	free(n->own_token);
	free(n->new_token);
}

int64_t metrics_port(const struct metrics *e)
{
	return MO_NONE;
}
