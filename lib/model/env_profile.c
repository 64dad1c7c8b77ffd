/* See env_profile.h. Called by launch_make() (daemon/core) for every launch. */
#include "lib/model/env_profile.h"

static const struct mo_field env_profile_fields[] = {
	MO_D(env_profile, name, MO_STR, "file name without .yaml"),
	MO_D_ENUM(env_profile, layer, env_layer_names,
		  "base, profile, engine or feature; later layers win"),
	MO_D(env_profile, order, MO_INT, "place within the layer: later ones override"),
	MO_D(env_profile, vendor, MO_STR,
	     "amd or nvidia, of the node's GPUs; unset: any node, also one without GPUs"),
	MO_D_LIST(env_profile, gpu, MO_STRS, "models that it is for; empty: any", .omit = true),
	MO_D_LIST(env_profile, nic, MO_STRS, "families of RDMA cards that it is for; empty: any",
		  .omit = true),
	MO_D_VEC(env_profile, items, &env_item_desc, "variables that it sets"),
};
const struct mo_desc env_profile_desc = MO_DESC(env_profile, env_profile_fields);

static const struct gpu_slot *slot_find(const struct nodeinfo *info, int64_t index)
{
	for (size_t i = 0; info && i < info->n_gpus; i++)
		if (info->gpus[i].index == index)
			return &info->gpus[i];
	return NULL;
}

static const char *family_of(const struct nodeinfo *info, const int64_t *gpus, size_t n_gpus)
{
	for (size_t i = 0; i < n_gpus; i++) {
		const struct gpu_slot *slot = slot_find(info, gpus[i]);
		for (size_t k = 0; slot && slot->nic && k < info->n_nics; k++)
			if (mo_streq(info->nics[k].name, slot->nic))
				return info->nics[k].family;
	}
	return NULL;
}

static bool listed(char *const *list, size_t n, const char *word)
{
	for (size_t i = 0; word && i < n; i++)
		if (mo_streq(list[i], word))
			return true;
	return n == 0;
}

bool env_profile_applies(const struct env_profile *p, const struct nodeinfo *info,
			 const int64_t *gpus, size_t n_gpus)
{
	const struct gpu_slot *first = n_gpus ? slot_find(info, gpus[0]) : NULL;

	if (p->vendor && (!first || !mo_streq(first->vendor, p->vendor)))
		return false;
	return listed(p->gpu, p->n_gpu, first ? first->model : NULL) &&
	       listed(p->nic, p->n_nic, family_of(info, gpus, n_gpus));
}
