/* See box_image.h. */
#include "agent/core/stepd/box_image.h"

#include <errno.h>
#include <string.h>

#define KIND "dir:"
/* where the node does not say how much memory it has */
#define SHM_BYTES_DEFAULT (INT64_C(64) << 30)

const char *const box_node_files[BOX_NODE_FILES_MAX + 1] = { "/etc/hosts", "/etc/resolv.conf",
							     NULL };

static bool has_target(const struct box *b, const char *target)
{
	for (size_t i = 0; i < b->n_mounts; i++)
		if (mo_streq(b->mounts[i].target, target))
			return true;
	return false;
}

/* What the job asks for itself counts. */
static void add(struct box *b, const char *source, const char *target, bool readonly)
{
	if (!source || has_target(b, target))
		return;
	struct container_mount *m = MO_ADD(b, mounts, &container_mount_desc);

	m->source = mo_strdup(source);
	m->target = mo_strdup(target);
	m->readonly = readonly;
}

static void add_mounts(const struct spool *s, const struct box_terms *t, struct box *b)
{
	const struct recipe_container *c = s->launch.container;

	for (size_t i = 0; i < c->n_mounts; i++)
		add(b, c->mounts[i].source, c->mounts[i].target, c->mounts[i].readonly);
	if (c->home)
		add(b, t->home, t->home, false);
	if (c->writable == WRITABLE_NO) /* a program without temporary files is rare */
		add(b, s->tmpdir ? s->tmpdir : "/tmp", "/tmp", false);
	for (size_t i = 0; t->there[i]; i++)
		add(b, t->there[i], t->there[i], true);
	add(b, t->step_dir, t->step_dir, false);
}

static int64_t shm_bytes(const struct spool *s)
{
	int64_t asked = s->launch.container->shm_bytes;

	if (asked != MO_NONE)
		return asked;
	return s->info.mem_bytes > 1 ? s->info.mem_bytes / 2 : SHM_BYTES_DEFAULT;
}

int box_image(const struct spool *s, const struct box_terms *t, struct box *ret,
	      struct mo_error *err)
{
	const struct recipe_container *c = s->launch.container;

	if (!s->own_namespace)
		return mo_error_set(err, -EINVAL,
				    "engine.container: the agent on %s is not root, and only root "
				    "gives a job an image",
				    s->node);
	if (!c->image || !mo_starts_with(c->image, KIND "/"))
		return mo_error_set(err, -EINVAL,
				    "engine.container: the agent on %s does not know images like "
				    "%s; say dir:/PATH, or install a newer agent",
				    s->node, c->image ? c->image : "none");
	ret->root = mo_strdup(c->image + strlen(KIND));
	ret->writable = c->writable;
	ret->upper = c->writable == WRITABLE_DISK ? mo_strdup(s->layer) : NULL;
	ret->uid = t->uid;
	ret->gid = t->gid;
	ret->user = mo_strdup(t->user);
	ret->home = mo_strdup(t->home);
	for (size_t i = 0; i < t->n_groups; i++)
		*MO_GROW(ret->groups, ret->n_groups) = t->groups[i];
	ret->shm_bytes = shm_bytes(s);
	add_mounts(s, t, ret);
	return 0;
}
