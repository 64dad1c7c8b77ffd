/* See discovery.h. */
#include "agent/core/agent/discovery.h"

#include <string.h>

#include "lib/base/buf.h"
#include "lib/model/limits.h"

#define LEFT_OUT_MAX 64 /* in one round; each costs a deadline */

static const struct mo_field known_machine_fields[] = {
	MO_D(known_machine, boot_id, MO_STR, "boot in which it was discovered"),
	MO_D(known_machine, options, MO_STR, "options of moe-discover in that run, between blanks"),
	MO_D_SUB(known_machine, info, MO_STRUCT, &nodeinfo_desc, "what was found"),
};
const struct mo_desc known_machine_desc = MO_DESC(known_machine, known_machine_fields);

/* Where the files of one device are; the device is the next part of the path. */
static const struct {
	const char *above, *name;
	bool gpu;
} places[] = {
	{ "/sys/bus/pci/devices/", "", false },
	{ "/sys/class/infiniband/", "", false },
	{ "/sys/class/kfd/kfd/topology/nodes/", "KFD node ", true },
	{ "/proc/driver/nvidia/gpus/", "", true },
	{ "/dev/dri/", "", false },
	{ "/dev/", "", false },
};

static size_t place_of(const char *file)
{
	size_t i = 0;

	while (i < ELEMENTSOF(places) && !(mo_starts_with(file, places[i].above) &&
					   strcspn(file + strlen(places[i].above), "/") > 0))
		i++;
	return i;
}

static void left_out_done(struct left_out *o)
{
	free(o->dir);
	free(o->object);
	free(o->file);
}

void left_outs_done(struct left_outs *l)
{
	for (size_t i = 0; i < l->n; i++)
		left_out_done(&l->items[i]);
	free(l->items);
	*l = (struct left_outs){ 0 };
}

bool left_outs_begin(struct left_outs *l)
{
	struct left_outs retained = { 0 };
	bool can = true;

	for (size_t i = 0; i < l->n; i++) {
		if (l->items[i].stuck) {
			*MO_GROW(retained.items, retained.n) = l->items[i];
			can = can && l->items[i].dir;
		} else
			left_out_done(&l->items[i]);
	}
	free(l->items);
	*l = retained;
	return can;
}

bool left_outs_add(struct left_outs *l, const char *file)
{
	size_t place = file ? place_of(file) : ELEMENTSOF(places);
	struct left_out new = { .file = file ? mo_strdup(file) : NULL, .stuck = 1 };
	bool again = place < ELEMENTSOF(places) && l->n < LEFT_OUT_MAX;

	if (again) {
		const char *name = file + strlen(places[place].above);
		size_t n = strcspn(name, "/");
		new.dir = mo_strndup(file, (size_t)(name - file) + n);
		new.object = mo_printf("%s%.*s", places[place].name, (int)n, name);
	}
	/* left out and yet read: it has another name */
	for (size_t i = 0; i < l->n && again; i++)
		if (mo_streq(l->items[i].dir, new.dir)) {
			mo_str_set(&new.dir, NULL);
			mo_str_set(&new.object, NULL);
			again = false;
		}
	*MO_GROW(l->items, l->n) = new;
	return again;
}

const char *left_outs_orphan(struct left_outs *l, const char *file, int64_t pid)
{
	size_t place = place_of(file),
	       n = place < ELEMENTSOF(places) ? strlen(places[place].above) : 0;

	n += n ? strcspn(file + n, "/") : strlen(file);
	for (size_t i = 0; i < l->n; i++) {
		const char *is = l->items[i].dir ? l->items[i].dir : l->items[i].file;
		if (is && strlen(is) == n && strncmp(is, file, n) == 0) {
			l->items[i].stuck++;
			return l->items[i].file;
		}
	}
	left_outs_add(l, file);
	l->items[l->n - 1].orphan = pid;
	return l->items[l->n - 1].file;
}

void left_outs_gone(struct left_outs *l, const char *file)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->items[i].stuck && mo_streq(l->items[i].file, file)) {
			l->items[i].stuck--;
			return;
		}
}

/* ---- what it means */

bool discovery_has(const struct nodeinfo *info, const char *bdf)
{
	for (size_t i = 0; i < info->n_gpus; i++)
		if (mo_streq(info->gpus[i].bdf, bdf))
			return true;
	return false;
}

static bool named(const struct left_outs *l, const char *object)
{
	for (size_t i = 0; i < l->n; i++)
		if (object && mo_streq(l->items[i].object, object))
			return true;
	return false;
}

/* A GPU cannot be seen without its file, so that one which is missing may be it. */
static bool hides_gpus(const struct left_outs *l)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->items[i].dir && places[place_of(l->items[i].dir)].gpu)
			return true;
	return false;
}

static const struct gpu_slot *same_gpu(const struct nodeinfo *info, const struct gpu_slot *g)
{
	for (size_t i = 0; i < info->n_gpus; i++)
		if (g->bdf && mo_streq(info->gpus[i].bdf, g->bdf) &&
		    info->gpus[i].partition == g->partition)
			return &info->gpus[i];
	return NULL;
}

static void add_slot(struct gpu_slot **slots, size_t *n, const struct gpu_slot *g, int64_t index)
{
	struct gpu_slot *slot = mo_vec_add(&gpu_slot_desc, (void **)slots, n);

	mo_desc_copy(&gpu_slot_desc, slot, g);
	slot->index = index;
}

/* Slots keep the numbers that they had: running jobs were given them. missing: those that were
 * not seen keep theirs too. */
static void join_gpus(struct nodeinfo *info, const struct nodeinfo *before,
		      const struct left_outs *l, bool missing)
{
	struct gpu_slot *slots = NULL;
	size_t n = 0;
	bool back = false;

	for (size_t i = 0; i < before->n_gpus; i++) {
		const struct gpu_slot *old = &before->gpus[i], *now = same_gpu(info, old);
		if (!now && (!missing || !old->bdf || discovery_has(info, old->bdf)))
			continue;
		add_slot(&slots, &n, now && !named(l, old->bdf) ? now : old, old->index);
		back |= !now;
	}
	for (size_t i = 0; i < info->n_gpus; i++)
		if (!same_gpu(before, &info->gpus[i]))
			add_slot(&slots, &n, &info->gpus[i],
				 n ? slots[n - 1].index + 1 : info->gpus[i].index);
	mo_vec_clear(&gpu_slot_desc, (void **)&info->gpus, &info->n_gpus);
	info->gpus = slots;
	info->n_gpus = n;
	if (!back)
		return;
	mo_vec_clear(&gpu_link_desc, (void **)&info->links, &info->n_links);
	for (size_t i = 0; i < before->n_links; i++)
		mo_desc_copy(&gpu_link_desc, MO_ADD(info, links, &gpu_link_desc),
			     &before->links[i]);
	if (!info->driver)
		mo_str_set(&info->driver, before->driver);
}

static void join_nics(struct nodeinfo *info, const struct nodeinfo *before,
		      const struct left_outs *l)
{
	for (size_t i = 0; i < info->n_nics; i++)
		for (size_t k = 0; k < before->n_nics && named(l, info->nics[i].name); k++)
			if (mo_streq(before->nics[k].name, info->nics[i].name))
				mo_desc_copy(&nic_info_desc, &info->nics[i], &before->nics[k]);
}

static char *late_text(const struct left_out *o)
{
	_cleanup_(mo_freep) char *orphan =
		o->orphan && o->stuck
			? mo_printf(" (process %lld of an agent before this one hangs there)",
				    (long long)o->orphan)
			: mo_strdup("");
	return o->file ? mo_printf("%s could not be read in time%s", o->file, orphan)
		       : mo_strdup("moe-discover did not finish in time");
}

static char *one_says(const struct left_out *o, bool before)
{
	_cleanup_(mo_freep) char *late = late_text(o);
	return mo_printf("%s; %s", late,
			 before ? "what is known of it is from an earlier look in this boot"
				: "what it would say is unknown");
}

void discovery_join(struct nodeinfo *info, const struct nodeinfo *before, const struct left_outs *l)
{
	if (before && l->n) {
		join_gpus(info, before, l, hides_gpus(l));
		join_nics(info, before, l);
	}
	for (size_t i = 0; i < l->n; i++) {
		const struct left_out *o = &l->items[i];
		struct node_finding *f = MO_ADD(info, findings, &node_finding_desc);
		f->object = mo_strdup(o->object ? o->object : "discovery");
		f->text = one_says(o, before != NULL);
	}
}

void discovery_vanished(struct nodeinfo *info, const struct nodeinfo *before)
{
	const char *last = NULL;
	size_t gone = 0;

	for (size_t i = 0; before && i < before->n_gpus; i++)
		gone += before->gpus[i].bdf && !discovery_has(info, before->gpus[i].bdf);
	if (!gone)
		return;
	for (size_t i = 0; i < before->n_gpus; i++) {
		const char *bdf = before->gpus[i].bdf;
		if (!bdf || mo_streq(bdf, last) || discovery_has(info, bdf))
			continue;
		struct node_finding *f = MO_ADD(info, findings, &node_finding_desc);
		f->object = mo_strdup(bdf);
		f->text = mo_strdup("it was there earlier in this boot and is not any more; its "
				    "slot keeps its number");
		last = bdf;
	}
	join_gpus(info, before, &(const struct left_outs){ 0 }, true);
}

char *discovery_says(const struct left_outs *l, const char *problem, bool before)
{
	struct mo_buf b = { 0 };

	for (size_t i = 0; i < l->n; i++) {
		const struct left_out *o = &l->items[i];
		_cleanup_(mo_freep) char *late = late_text(o);
		mo_buf_printf(&b, "%s%s%s%s", b.len ? ", " : "", o->object ? o->object : "",
			      o->object ? " is left out: " : "", late);
	}
	if (problem && !l->n)
		mo_buf_str(&b, problem);
	if (!b.len)
		return NULL;
	if (before && problem)
		mo_buf_str(&b, "; what is known is from an earlier look in this boot");
	else if (before)
		mo_buf_str(&b, "; what is known of that is from an earlier look in this boot");
	else if (problem)
		mo_buf_str(&b, "; nothing is known of this machine");
	else
		mo_buf_str(&b, "; what it would say is unknown");
	return mo_buf_take(&b);
}
