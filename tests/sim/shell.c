/* See shell.h. */
#include "tests/sim/shell.h"

#include <errno.h>
#include <stdlib.h>

#include "agent/fence.h"
#include "agent/queue.h"
#include "lib/base/fd.h"
#include "tests/unit/seams/world.h"

/* Changes of the disk within one saving of the fence. */
#define CHANGES 10

/* An agent's, while it lives. */
struct shell {
	struct agent_config config;
	struct manager m; /* of which only what the fence asks for is there */
	struct seam_life life;
};
/* On disk, by the agent's word. */
struct promised {
	int64_t job, attempt;
};

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

void shell_open(struct sim *s, int node)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	struct simnode *n = &s->nodes[node];
	struct shell *sh = n->shell = mo_alloc(sizeof(*sh));
	char boot[64];

	node_boot_name(n, boot);
	sh->config.state_dir = mo_printf("/%s/state", n->name);
	sh->m.config = &sh->config;
	sh->m.boot_id = mo_strdup(boot);
	seam_be(&sh->life);
	if (mo_mkdir_p(sh->config.state_dir, 0755, true) < 0 || fence_open(&sh->m, &err) < 0)
		sim_violation(s, "the agent of %s does not start: %s", n->name,
			      mo_error_text(&err, -EIO));
	seam_be(NULL);
	check(s, n);
	for (size_t i = 0; i < sh->m.n_queue && n->agent; i++)
		agent_event(s, node, &sh->m.queue[i]);
	if (n->shell == sh)
		queue_events_done(&sh->m);
}

/* It dies within what it does to the disk, and its node may with it. */
static void die(struct sim *s, int node)
{
	if (sim_fault(s, F_AGENT_WITH_POWER, 0.5))
		node_lose(s, node, sim_between(s, 2 * S, 60 * S));
	else
		agent_kill(s, node, sim_between(s, 50 * MS, 5 * S));
}

void shell_fence(struct sim *s, int node, const struct agent_effect *x)
{
	struct simnode *n = &s->nodes[node];
	struct agent_event e = { .type = AE_FENCE_DONE, .job = x->job, .attempt = x->attempt };
	struct shell *sh = n->shell;
	bool full = sim_fault(s, F_FENCE_FAILS, 0.01);

	seam_be(&sh->life);
	if (full)
		seam_fail_after(1 + sim_random(s) % CHANGES, ENOSPC);
	else if (sim_fault(s, F_AGENT_WITHIN, 0.01))
		seam_crash_after(1 + sim_random(s) % CHANGES);
	e.ok = fence_save(sh->m.fence, x->job, x->attempt, x->epoch) == 0;
	bool dead = seam_dead();
	seam_alive();
	seam_be(NULL);
	if (dead) {
		die(s, node);
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
	fence_free(sh->m.fence);
	queue_events_done(&sh->m);
	free(sh->m.boot_id);
	free(sh->config.state_dir);
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
}
