/* What a step in an image is asked to have, and what the image says of the environment. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "agent/core/stepd/box_image.h"
#include "agent/core/stepd/image_env.h"
#include "lib/model/recipe.h"

struct bed {
	struct spool spool;
	struct box box;
	struct box_terms terms;
	struct recipe_container *c;
};

static const int64_t groups[] = { 44, 109 };
static const char *const there[] = { "/etc/hosts", NULL };

static int setup(void **state)
{
	struct bed *b = mo_alloc(sizeof(*b));

	mo_desc_init(&spool_desc, &b->spool);
	mo_desc_init(&box_desc, &b->box);
	b->c = b->spool.launch.container = mo_desc_new(&recipe_container_desc);
	b->c->image = mo_strdup("dir:/images/primus");
	b->c->writable = WRITABLE_DISK;
	b->c->shm_bytes = MO_NONE;
	b->spool.info.images = true;
	b->spool.node = mo_strdup("n0");
	b->spool.layer = mo_strdup("/state/layers/j1.a1");
	b->spool.info.mem_bytes = 1000;
	b->terms = (struct box_terms){ .step_dir = "/run/steps/j1.a1",
				       .uid = 1000,
				       .gid = 100,
				       .groups = groups,
				       .n_groups = 2,
				       .user = "u",
				       .home = "/home/u",
				       .there = there };
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	struct bed *b = *state;

	mo_desc_done(&spool_desc, &b->spool);
	mo_desc_done(&box_desc, &b->box);
	free(b);
	return 0;
}

static void mount(struct bed *b, const char *source, const char *target)
{
	struct container_mount *m = MO_ADD(b->c, mounts, &container_mount_desc);

	m->source = mo_strdup(source);
	m->target = mo_strdup(target);
}

static void make(struct bed *b)
{
	struct mo_error err = { 0 };

	if (box_image(&b->spool, &b->terms, &b->box, &err) < 0)
		fail_msg("%s", mo_error_text(&err, -1));
}

static const char *source_of(const struct bed *b, const char *target)
{
	const char *found = NULL;

	for (size_t i = 0; i < b->box.n_mounts; i++)
		if (mo_streq(b->box.mounts[i].target, target)) {
			assert_null(found); /* one place, one mount */
			found = b->box.mounts[i].source;
		}
	return found;
}

static void test_box(void **state)
{
	struct bed *b = *state;

	mount(b, "/data", "/in/data");
	make(b);
	assert_string_equal(b->box.root, "/images/primus");
	assert_string_equal(b->box.upper, "/state/layers/j1.a1");
	assert_int_equal(b->box.uid, 1000);
	assert_int_equal(b->box.gid, 100);
	assert_int_equal(b->box.n_groups, 2);
	assert_int_equal(b->box.groups[1], 109);
	assert_string_equal(b->box.user, "u");
	assert_string_equal(b->box.home, "/home/u");
	assert_int_equal(b->box.shm_bytes, 500);
	assert_int_equal(b->box.n_mounts, 3);
	assert_string_equal(source_of(b, "/in/data"), "/data");
	assert_string_equal(source_of(b, "/etc/hosts"), "/etc/hosts");
	assert_string_equal(source_of(b, "/run/steps/j1.a1"), "/run/steps/j1.a1");
}

static void test_asked_for_counts(void **state)
{
	struct bed *b = *state;

	mount(b, "/site/hosts", "/etc/hosts");
	b->c->home = true;
	b->c->shm_bytes = 0;
	make(b);
	assert_string_equal(source_of(b, "/etc/hosts"), "/site/hosts");
	assert_string_equal(source_of(b, "/home/u"), "/home/u");
	assert_int_equal(b->box.shm_bytes, 0);
}

static void test_nowhere_to_write(void **state)
{
	struct bed *b = *state;

	b->c->writable = WRITABLE_NO;
	b->spool.tmpdir = mo_strdup("/scratch");
	make(b);
	assert_null(b->box.upper);
	assert_string_equal(source_of(b, "/tmp"), "/scratch");
}

static void refused(struct bed *b, const char *text)
{
	struct mo_error err = { 0 };

	assert_true(box_image(&b->spool, &b->terms, &b->box, &err) < 0);
	if (!strstr(mo_error_text(&err, -1), text))
		fail_msg("'%s' lacks '%s'", mo_error_text(&err, -1), text);
	mo_error_done(&err);
	mo_desc_done(&box_desc, &b->box);
	mo_desc_init(&box_desc, &b->box);
}

static void test_root(void **state)
{
	struct bed *b = *state;

	b->c->user = CONTAINER_ROOT;
	b->spool.min_uid = 500;
	make(b);
	assert_int_equal(b->box.users, BOX_ROOT);
	assert_int_equal(b->box.uid, 1000);
	assert_string_equal(b->box.user, "root");
	assert_string_equal(b->box.home, "/home/u");
	assert_int_equal(b->box.shared_below, 500);
}

/* Who is root on the node is so inside, without a namespace. */
static void test_root_anyway(void **state)
{
	struct bed *b = *state;

	b->c->user = CONTAINER_ROOT;
	b->terms.uid = 0;
	b->terms.user = "root";
	make(b);
	assert_int_equal(b->box.users, BOX_NODE);
}

/* Of an earlier version, whose recipes do not say it. */
static void test_self(void **state)
{
	struct bed *b = *state;

	b->c->user = -1;
	make(b);
	assert_int_equal(b->box.users, BOX_NODE);
	assert_string_equal(b->box.user, "u");
}

static void test_unprivileged(void **state)
{
	struct bed *b = *state;

	b->terms.unprivileged = true;
	make(b);
	assert_int_equal(b->box.users, BOX_SELF);
	assert_string_equal(b->box.user, "u");
}

/* What no user may enter is opened as root; a user's own image he opens himself. */
static void test_brought(void **state)
{
	struct bed *b = *state;
	_cleanup_(mo_freep) char *hex =
		mo_strdup("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef");
	_cleanup_(mo_freep) char *shared = mo_printf("/state/images/shared/sha256-%s", hex),
				 *own = mo_printf("/state/images/1000/sha256-%s", hex);

	make(b);
	assert_false(b->box.brought);
	mo_desc_done(&box_desc, &b->box);
	b->spool.images_dir = mo_strdup("/state/images");
	b->c->digest = mo_printf("sha256:%s", hex);
	make(b);
	assert_string_equal(b->box.root, shared);
	assert_true(b->box.brought);
	mo_desc_done(&box_desc, &b->box);
	b->c->auth_file = mo_strdup("/home/u/auth.json");
	make(b);
	assert_string_equal(b->box.root, own);
	assert_false(b->box.brought);
}

static void test_refused(void **state)
{
	struct bed *b = *state;

	mo_str_set(&b->c->image, "oci:/x");
	refused(b, "does not know images like oci:/x");
	mo_str_set(&b->c->image, NULL);
	refused(b, "does not know images like none");
	mo_str_set(&b->c->image, "dir:relative");
	refused(b, "dir:relative");
	b->spool.info.images = false;
	refused(b, "the agent on n0 is not root");
}

static void test_of_a_store(void **state)
{
	struct bed *b = *state;

	mo_str_set(&b->c->image, "podman:x:1");
	b->spool.step_id = mo_strdup("j1.a1.n0.0123456789abcdef");
	refused(b, "n0 does not use the images of podman");
	mo_strs_add(&b->spool.runtimes, &b->spool.n_runtimes, "docker");
	refused(b, "name it in `runtimes` of its agent.yaml");
	mo_strs_add(&b->spool.runtimes, &b->spool.n_runtimes, "podman");
	mo_str_set(&b->box.root, NULL);
	make(b);
	assert_string_equal(b->box.root, "podman:x:1");
	assert_string_equal(b->box.runtime, "podman");
	assert_string_equal(b->box.stored, "x:1");
	assert_string_equal(b->box.step, b->spool.step_id);
	mo_str_set(&b->c->image, "podman:-x");
	refused(b, "does not know images like podman:-x");
}

/* A container of the runtime's is asked for of its own images only. */
static void test_held(void **state)
{
	struct bed *b = *state;

	b->spool.step_id = mo_strdup("j1.a1.n0.0123456789abcdef");
	mo_strs_add(&b->spool.runtimes, &b->spool.n_runtimes, "podman");
	b->c->runtime = mo_strdup("podman");
	refused(b, "podman starts containers of images in its own store only; say podman:NAME");
	mo_str_set(&b->c->image, "podman:x:1");
	mo_str_set(&b->c->runtime, "docker");
	mo_str_set(&b->box.root, NULL);
	refused(b, "docker starts containers of images in its own store only");
	mo_str_set(&b->c->runtime, "podman");
	make(b);
	assert_true(b->box.holder);
	assert_string_equal(b->box.runtime, "podman");
	assert_null(b->box.upper);
}

static void test_of_a_file(void **state)
{
	struct bed *b = *state;

	mo_str_set(&b->c->image, "squashfs:/nfs/p.sqsh");
	refused(b, "set `squashfs: true` in its agent.yaml");
	b->spool.squashfs = true;
	make(b);
	assert_string_equal(b->box.root, "/nfs/p.sqsh");
	assert_true(b->box.squashfs);
	assert_null(b->box.runtime);
	mo_str_set(&b->c->image, "squashfs:p.sqsh");
	refused(b, "does not know images like squashfs:p.sqsh");
}

static void say(struct image_config *c, const char *name, const char *value)
{
	struct image_variable *v = MO_ADD(c, env, &image_variable_desc);

	v->name = mo_strdup(name);
	v->value = mo_strdup(value);
}

static void test_image_speaks(void **state)
{
	struct bed *b = *state;
	struct launch *l = &b->spool.launch;
	struct image_config c;

	mo_desc_init(&image_config_desc, &c);
	say(&c, "PATH", "/opt/bin");
	say(&c, "HSA_X", "1");
	say(&c, "MY_HSA_X", "2");
	c.workdir = mo_strdup("/workspace");
	mo_strs_add(&b->c->env_drop, &b->c->n_env_drop, "HSA_*");
	image_apply(&c, l);
	assert_int_equal(l->n_env, 2);
	assert_string_equal(l->env[0].name, "PATH");
	assert_string_equal(l->env[0].source, "image dir:/images/primus");
	assert_int_equal(l->env[0].layer, ENV_IMAGE);
	assert_string_equal(l->env[1].name, "MY_HSA_X");
	assert_string_equal(l->workdir, "/workspace");
	mo_str_set(&l->workdir, "/mine");
	c.digest = mo_strdup("sha256:77");
	image_apply(&c, l);
	assert_string_equal(l->env[3].source, "image dir:/images/primus sha256:77");
	assert_string_equal(l->workdir, "/mine");
	mo_desc_done(&image_config_desc, &c);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_box),
		T(test_asked_for_counts),
		T(test_nowhere_to_write),
		T(test_brought),
		T(test_refused),
		T(test_image_speaks),
		T(test_of_a_store),
		T(test_held),
		T(test_of_a_file),
		T(test_root),
		T(test_self),
		T(test_root_anyway),
		T(test_unprivileged),
	};

	return cmocka_run_group_tests_name("acore/box_image", tests, NULL, NULL);
}
