/* engine.container beside checkpoint.dir: ranks write checkpoints in the image, moectl looks for
 * them on the nodes, where they must be after the step. And beside what else the engine writes:
 * what lies in no mount is gone with the step. */
#include "lib/recipe/rules_container.h"

#include <string.h>

#include "lib/base/fd.h"
#include "lib/model/image.h"
#include "lib/model/runtime.h"
#include "lib/recipe/args.h"
#include "lib/recipe/container_read.h"

static void check_mount(struct rules *k, const struct ynode *place, const char *dir,
			const struct container_mount *m)
{
	if (m->readonly)
		errors_at(k->errors, place, "leave out its :ro",
			  "checkpoint.dir: ranks cannot write to %s: the mount of %s in "
			  "engine.container is :ro",
			  dir, m->target);
}

/* A data file of ours, which each node has and the image has not. */
static void check_entry(struct rules *k)
{
	const char *entry = k->recipe->engine.entry;
	_cleanup_(mo_freep) char *file =
		entry && entry[0] != '/' && !rules_leads_out(entry) ? mo_data_file(entry) : NULL;

	if (file)
		rules_warn(k, PLACE(k, "engine.entry"),
			   "engine.entry: %s is moectl's own, and ranks look for it in the image, "
			   "in engine.workdir: mount its directory and name it by its whole path",
			   entry);
}

/* Which image a name means only its source knows. */
static void check_pull(struct rules *k)
{
	const struct recipe_container *c = k->recipe->engine.container;
	int source = image_source(c->image ? c->image : IMAGE_DIR);

	if (c->pull == PULL_NEVER && source != IMAGE_OF_DIR && source != IMAGE_OF_STORE &&
	    source != IMAGE_OF_FILE && !strstr(c->image, "@sha256:"))
		errors_at(k->errors, PLACE(k, "engine.container.pull"),
			  "write the image as NAME@sha256:DIGEST",
			  "engine.container.pull: never: %.200s names no digest, and only its "
			  "source knows which image that is",
			  c->image);
	if (c->auth_file && source != IMAGE_OF_REGISTRY)
		errors_at(k->errors, PLACE(k, "engine.container.auth"), "leave it out",
			  "engine.container.auth: %.200s is in no registry", c->image);
}

/* What a container of the site's runtime can be: an image of its own store, written to by it. */
static void check_runtime(struct rules *k, const struct recipe_container *c)
{
	const struct ynode *place = PLACE(k, "engine.container.runtime");
	const char *name, *of = c->image ? runtime_of_image(c->image, &name) : NULL;

	if (!c->runtime)
		return;
	if (c->image && !mo_streq(of, c->runtime)) {
		_cleanup_(mo_freep) char *hint =
			mo_printf("write engine.container.image: %s:NAME, for an image that each "
				  "node has "
				  "(%s pull NAME), or leave out engine.container.runtime",
				  c->runtime, c->runtime);
		errors_at(k->errors, place, hint,
			  "engine.container.runtime: %s starts containers of images in its own "
			  "store "
			  "only, and %.200s is not one",
			  c->runtime, c->image);
	}
	if (c->user == CONTAINER_ROOT)
		errors_at(k->errors, place,
			  "leave out engine.container.runtime (moectl then makes the container, "
			  "also "
			  "of this image unpacked), or engine.container.user",
			  "engine.container.runtime: in a container of %s ranks are the job's "
			  "user, "
			  "not root (engine.container.user)",
			  c->runtime);
	if (c->writable != WRITABLE_DISK)
		errors_at(k->errors, place,
			  "leave out engine.container.writable, or engine.container.runtime",
			  "engine.container.runtime: what ranks write in a container of %s lies on "
			  "its disk (engine.container.writable: disk)",
			  c->runtime);
}

/* Where the path is in the image; NULL: nobody knows yet. Caller frees. */
static char *inside(const struct rules *k, const char *path)
{
	const char *workdir = k->recipe->engine.workdir;
	_cleanup_(mo_freep) char *whole = NULL;

	if (path[0] == '/')
		return mo_path_clean(path);
	if (!workdir || workdir[0] != '/' || strchr(path, ':')) /* s3://... */
		return NULL;
	whole = mo_path(workdir, "%s", path);
	return mo_path_clean(whole);
}

/* What the engine writes beside its checkpoints and nobody mounts is gone with each attempt. */
static void check_outputs(struct rules *k, const struct recipe_container *c)
{
	const struct engine_checks *checks = k->engine->checks;
	const char *dir = k->recipe->checkpoint.dir;
	struct args args;

	args_read(k, &args);
	for (size_t i = 0; checks && !c->home && i < checks->n_outputs; i++) {
		const struct arg *arg = args_find(&args, checks->outputs[i]);
		_cleanup_(mo_freep) char *path =
			arg && arg->value && !arg->off ? inside(k, arg->value) : NULL;

		if (path && !container_mount_of(c, path) && !(dir && path_lies_in(path, dir)) &&
		    !rules_unchecked(k, arg->flag))
			errors_at(k->errors, arg->at_value,
				  "mount a directory of the nodes there; "
				  "engine.args_unchecked: [KEY] lets it pass",
				  "engine.args: %s: no mount of engine.container has %s: what is "
				  "written there is gone with each attempt",
				  arg->flag, path);
	}
	args_done(&args);
}

void rules_container(struct rules *k)
{
	const struct recipe_container *c = k->recipe->engine.container;
	const char *dir = k->recipe->checkpoint.dir;
	const struct ynode *place = PLACE(k, "checkpoint.dir");
	const struct container_mount *m = c && dir ? container_mount_of(c, dir) : NULL;
	const char *made = c && dir ? container_made(dir) : NULL;

	if (c) {
		check_entry(k);
		check_pull(k);
		check_runtime(k, c);
		check_outputs(k, c);
	}
	if (c && !dir)
		rules_warn(k, PLACE(k, "engine.container"),
			   "engine.container: without checkpoint.dir all that ranks write is gone "
			   "with each attempt, but for what lies in a mount");
	if (!c || !dir)
		return;
	if (m)
		check_mount(k, place, dir, m);
	else if (made)
		errors_at(k->errors, place, "name a directory that all nodes have",
			  "checkpoint.dir: %s is made for each step in an image, and gone with it",
			  made);
	else
		rules_warn(k, place,
			   "checkpoint.dir: no mount of engine.container has it: ranks see %s of "
			   "the nodes at the same path",
			   dir);
}
