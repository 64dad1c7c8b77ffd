/* engine.container beside checkpoint.dir: moectl looks for checkpoints on the nodes, ranks write
 * them in the image, and both must mean the same directory. */
#include "lib/recipe/rules_container.h"

#include "lib/base/fd.h"
#include "lib/recipe/container_read.h"

static void check_mount(struct rules *k, const struct ynode *place, const char *dir,
			const struct container_mount *m)
{
	_cleanup_(mo_freep) char *source = container_source(m, dir);

	if (m->readonly)
		errors_at(k->errors, place, "leave out its :ro",
			  "checkpoint.dir: ranks cannot write to %s: the mount of %s in "
			  "engine.container is :ro",
			  dir, m->target);
	else if (!mo_streq(source, dir))
		errors_at(k->errors, place, "mount it at the path that it has on the nodes",
			  "checkpoint.dir: %s in the image is %s on the nodes, and moectl looks "
			  "for checkpoints there",
			  dir, source);
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

void rules_container(struct rules *k)
{
	const struct recipe_container *c = k->recipe->engine.container;
	const char *dir = k->recipe->checkpoint.dir;
	const struct ynode *place = PLACE(k, "checkpoint.dir");
	const struct container_mount *m = c && dir ? container_mount_of(c, dir) : NULL;
	const char *made = c && dir ? container_made(dir) : NULL;

	if (c)
		check_entry(k);
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
