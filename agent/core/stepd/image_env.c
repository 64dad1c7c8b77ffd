/* See image_env.h. */
#include "agent/core/stepd/image_env.h"

#include <fnmatch.h>

#include "lib/base/assert.h"

static bool dropped(const struct recipe_container *c, const char *name)
{
	for (size_t i = 0; i < c->n_env_drop; i++)
		if (fnmatch(c->env_drop[i], name, 0) == 0)
			return true;
	return false;
}

void image_apply(const struct image_config *image, struct launch *l)
{
	mo_assert(l->container);
	for (size_t i = 0; i < image->n_env; i++) {
		if (dropped(l->container, image->env[i].name))
			continue;
		struct env_item *item = MO_ADD(l, env, &env_item_desc);

		item->name = mo_strdup(image->env[i].name);
		item->value = mo_strdup(image->env[i].value);
		item->layer = ENV_IMAGE;
		item->source =
			mo_printf("image %s%s%s", l->container->image, image->digest ? " " : "",
				  image->digest ? image->digest : "");
		item->reason = mo_strdup("the image says it of its programs");
	}
	if (!l->workdir && image->workdir)
		l->workdir = mo_strdup(image->workdir);
}
