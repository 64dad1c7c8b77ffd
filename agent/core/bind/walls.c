/* See walls.h. */
#include "agent/core/bind/walls.h"

#include "agent/core/bind/env_nic.h"
#include "lib/model/recipe.h"

static const struct gpu_slot *slot_of(const struct nodeinfo *info, int64_t index)
{
	for (size_t i = 0; i < info->n_gpus; i++)
		if (info->gpus[i].index == index)
			return &info->gpus[i];
	return NULL;
}

bool walls_gpus(const struct launch *l, const struct nodeinfo *info)
{
	for (size_t i = 0; i < l->n_gpus; i++) {
		const struct gpu_slot *slot = slot_of(info, l->gpus[i]);

		if (!slot || slot->render_minor == MO_NONE)
			return false;
	}
	return info->walls && l->n_gpus > 0 && l->n_gpus < info->n_gpus;
}

/* The recipe names network cards itself: one that it cannot see is left out by the library without
 * a word, and the job is slow. */
static bool chooses_nics(const struct launch *l)
{
	for (size_t i = 0; i < l->n_env; i++)
		if (l->env[i].layer > ENV_PROFILE && mo_streq(l->env[i].name, "NCCL_IB_HCA"))
			return true;
	return mo_streq(l->bind.nic, "none");
}

bool walls_nics(const struct launch *l, const struct nodeinfo *info)
{
	size_t used = 0;

	if (!walls_gpus(l, info) || chooses_nics(l))
		return false;
	for (size_t i = 0; i < info->n_nics; i++) {
		bool is_used = env_nic_used(l, info, info->nics[i].name);

		if (is_used && !info->nics[i].uverbs)
			return false;
		used += is_used;
	}
	return used > 0;
}

int64_t walls_number(const struct launch *l, const struct nodeinfo *info, int64_t gpu)
{
	int64_t number = 0;

	if (!walls_gpus(l, info))
		return gpu;
	/* slots are in the order in which the runtime finds them */
	for (size_t i = 0; i < l->n_gpus; i++)
		number += l->gpus[i] < gpu;
	return number;
}

/* Why they cannot stand; NULL: they can. Caller frees. */
static char *lacks(const struct nodeinfo *info, bool able)
{
	if (!able)
		return mo_strdup("only root hides device files, and the agent is not root");
	for (size_t i = 0; i < info->n_gpus; i++) {
		const struct gpu_slot *g = &info->gpus[i];

		if (g->render_minor == MO_NONE)
			return mo_printf("the driver does not say which file is that of GPU %lld",
					 (long long)g->index);
		for (size_t k = 0; k < i; k++)
			if (info->gpus[k].render_minor == g->render_minor)
				return mo_printf("GPUs %lld and %lld have one file",
						 (long long)info->gpus[k].index,
						 (long long)g->index);
	}
	return NULL;
}

static void unsay(struct nodeinfo *info)
{
	for (size_t i = info->n_findings; i-- > 0;)
		if (mo_streq(info->findings[i].object, WALLS_OBJECT))
			mo_vec_remove(&node_finding_desc, info->findings, &info->n_findings, i);
}

void walls_settle(struct nodeinfo *info, const struct walls_terms *t)
{
	bool shareable = t->wanted && t->files && info->n_gpus > 1;

	for (size_t i = 0; i < info->n_gpus; i++)
		shareable = shareable && mo_streq(info->gpus[i].vendor, "amd");
	_cleanup_(mo_freep) char *why = shareable ? lacks(info, t->able) : NULL;

	unsay(info);
	info->walls = shareable && !why;
	if (!why)
		return;
	struct node_finding *f = MO_ADD(info, findings, &node_finding_desc);
	f->object = mo_strdup(WALLS_OBJECT);
	f->text = mo_printf("a job that shares this node can open the GPUs of the others: %s", why);
}
