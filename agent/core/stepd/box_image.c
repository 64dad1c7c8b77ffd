/* See box_image.h. */
#include "agent/core/stepd/box_image.h"

#include <errno.h>
#include <string.h>

#include "lib/model/image.h"
#include "lib/model/runtime.h"

#define KIND IMAGE_DIR
#define SQUASHFS "squashfs:"
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

/* One that was fetched with a user's passwords is that user's alone. */
static void add_brought(const struct spool *s, const struct box_terms *t, struct box *b)
{
	_cleanup_(mo_freep) char *name = image_dir_name(s->launch.container->digest);

	b->brought = !s->launch.container->auth_file;
	b->root = b->brought ? mo_printf("%s/" IMAGE_SHARED "/%s", s->images_dir, name)
			     : mo_printf("%s/%lld/%s", s->images_dir, (long long)t->uid, name);
}

static bool is_allowed(const struct spool *s, const char *runtime)
{
	for (size_t i = 0; i < s->n_runtimes; i++)
		if (mo_streq(s->runtimes[i], runtime))
			return true;
	return false;
}

/* Where the image is. */
static int add_squashfs(const struct spool *s, const char *path, struct box *b,
			struct mo_error *err)
{
	if (!s->squashfs)
		return mo_error_set(err, -EINVAL,
				    "engine.container: %s mounts no images of users: set "
				    "`squashfs: "
				    "true` in its agent.yaml, or say dir:/PATH",
				    s->node);
	b->root = mo_strdup(path);
	b->squashfs = true;
	return 0;
}

static int add_root(const struct spool *s, struct box *b, struct mo_error *err)
{
	const char *image = s->launch.container->image, *name = NULL;
	const char *runtime = image ? runtime_of_image(image, &name) : NULL;

	if (image && mo_starts_with(image, SQUASHFS "/"))
		return add_squashfs(s, image + strlen(SQUASHFS), b, err);
	if (!image || (runtime ? !runtime_image_valid(name) : !mo_starts_with(image, KIND "/")))
		return mo_error_set(err, -EINVAL,
				    "engine.container: the agent on %s does not know images like "
				    "%s; say dir:/PATH, or install a newer agent",
				    s->node, image ? image : "none");
	b->root = mo_strdup(runtime ? image : image + strlen(KIND));
	if (!runtime)
		return 0;
	if (!is_allowed(s, runtime))
		return mo_error_set(err, -EINVAL,
				    "engine.container: %s does not use the images of %s: name it "
				    "in "
				    "`runtimes` of its agent.yaml, or say dir:/PATH",
				    s->node, runtime);
	b->holder = s->launch.container->runtime != NULL;
	b->runtime = mo_strdup(runtime);
	b->stored = mo_strdup(name);
	b->digest = mo_strdup(s->launch.container->digest);
	b->step = mo_strdup(s->step_id);
	return 0;
}

/* Who is root on the node anyway needs no namespace to be it in the image. */
static void add_user(const struct spool *s, const struct box_terms *t, struct box *b)
{
	b->uid = t->uid;
	b->gid = t->gid;
	for (size_t i = 0; i < t->n_groups; i++)
		*MO_GROW(b->groups, b->n_groups) = t->groups[i];
	b->users = s->launch.container->user == CONTAINER_ROOT && t->uid != 0 ? BOX_ROOT
		   : t->unprivileged                                          ? BOX_SELF
									      : BOX_NODE;
	b->user = mo_strdup(b->users == BOX_ROOT ? "root" : t->user);
	b->home = mo_strdup(t->home);
	b->shared_below = s->min_uid;
}

/* What no recipe that was checked asks for. */
static int check_holder(const struct spool *s, const struct box *b, struct mo_error *err)
{
	const struct recipe_container *c = s->launch.container;

	if (!c->runtime || (b->holder && mo_streq(b->runtime, c->runtime)))
		return 0;
	return mo_error_set(err, -EINVAL,
			    "engine.container.runtime: %s starts containers of images in its own "
			    "store only; say %s:NAME",
			    c->runtime, c->runtime);
}

int box_image(const struct spool *s, const struct box_terms *t, struct box *ret,
	      struct mo_error *err)
{
	const struct recipe_container *c = s->launch.container;

	if (!s->info.images)
		return mo_error_set(err, -EINVAL,
				    "engine.container: the agent on %s is not root, and that "
				    "machine gives others no user namespaces; without them only "
				    "root gives a job an image",
				    s->node);
	bool brought = s->images_dir && image_digest_valid(c->digest) &&
		       image_source(c->image) != IMAGE_OF_STORE;
	int r = brought ? 0 : add_root(s, ret, err);

	if (brought)
		add_brought(s, t, ret);
	if (r == 0)
		r = check_holder(s, ret, err);
	if (r < 0)
		return r;
	ret->writable = c->writable;
	ret->upper = c->writable == WRITABLE_DISK && !ret->holder ? mo_strdup(s->layer) : NULL;
	add_user(s, t, ret);
	ret->shm_bytes = shm_bytes(s);
	add_mounts(s, t, ret);
	return 0;
}
