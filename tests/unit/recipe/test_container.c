/* engine.container: what is taken, what is refused, and what stands where with checkpoint.dir. */
#include <errno.h>
#include <string.h>

#include "lib/recipe/argv.h"
#include "tests/unit/recipe/read.h"

static char *recipe_in(const char *container, const char *dir)
{
	return mo_printf("recipe: 1\nname: a\ncluster: {gpus: 8}\ncheckpoint: {dir: %s}\n"
			 "engine:\n  kind: torch\n  entry: x\n  workdir: /w\n  container: %s\n",
			 dir, container);
}

static struct recipe_container *taken(const char *text, struct parsed *p)
{
	_cleanup_(mo_freep) char *said = NULL;

	*p = parse(text, NULL);
	said = errors_text(&p->errors);
	if (p->errors.n)
		fail_msg("%s\n%s", text, said);
	return p->recipe.engine.container;
}

static void a_text(void **state)
{
	_cleanup_(mo_freep) char *text = recipe_in("dir:/images//a/", "/c");
	_cleanup_(parsed_done) struct parsed p = { 0 };
	const struct recipe_container *c = taken(text, &p);
	_cleanup_(mo_freep) char *argv = NULL;

	assert_string_equal(c->image, "dir:/images/a");
	assert_int_equal(c->n_mounts, 0);
	assert_false(c->home);
	assert_int_equal(c->writable, WRITABLE_DISK);
	assert_int_equal(c->shm_bytes, MO_NONE);
	argv = argv_of(&p);
	assert_string_equal(argv, "python3 x");
}

static void a_mapping(void **state)
{
	_cleanup_(mo_freep) char *text =
		recipe_in("{image: dir:/i, mounts: [/data:ro, /nfs/me/:/work, /c:rw, /a:/b:ro], "
			  "home: true, writable: no, shm: 64G, env_drop: [HSA_*], user: self, "
			  "network: host, privileged: false}",
			  "/c");
	_cleanup_(parsed_done) struct parsed p = { 0 };
	const struct recipe_container *c = taken(text, &p);
	static const struct {
		const char *source, *target;
		bool readonly;
	} expected[] = { { "/data", "/data", true },
			 { "/nfs/me", "/work", false },
			 { "/c", "/c", false },
			 { "/a", "/b", true } };

	assert_int_equal(c->n_mounts, ELEMENTSOF(expected));
	for (size_t i = 0; i < c->n_mounts; i++) {
		assert_string_equal(c->mounts[i].source, expected[i].source);
		assert_string_equal(c->mounts[i].target, expected[i].target);
		assert_int_equal(c->mounts[i].readonly, expected[i].readonly);
	}
	assert_true(c->home);
	assert_int_equal(c->writable, WRITABLE_NO);
	assert_int_equal(c->shm_bytes, 64LL << 30);
	assert_string_equal(c->env_drop[0], "HSA_*");
	assert_int_equal(p.n_warnings, 0);
}

static void the_nodes_own_files(void **state)
{
	static const char *const words[] = { "none", "false", "null" };

	for (size_t i = 0; i < ELEMENTSOF(words); i++) {
		_cleanup_(mo_freep) char *text = recipe_in(words[i], "/c");
		_cleanup_(parsed_done) struct parsed p = { 0 };

		assert_null(taken(text, &p));
	}
}

static void shared_memory_of_the_node(void **state)
{
	_cleanup_(mo_freep) char *text = recipe_in("{image: dir:/i, shm: host}", "/c");
	_cleanup_(parsed_done) struct parsed p = { 0 };

	assert_int_equal(taken(text, &p)->shm_bytes, 0);
}

/* dir is mounted by the controller where the recipe does not. */
static void a_directory_in_no_mount(void **state)
{
	_cleanup_(mo_freep) char *text = recipe_in("dir:/i", "'/c/{user}'");
	_cleanup_(parsed_done) struct parsed p = { 0 };

	taken(text, &p);
	assert_int_equal(p.n_warnings, 1);
	assert_non_null(strstr(p.warnings[0], "4:19: checkpoint.dir: no mount of engine.container "
					      "has it: ranks see /c/{user} of the nodes"));
}

static void a_file_that_the_image_has_not(void **state)
{
	_cleanup_(parsed_done) struct parsed p = { 0 };

	taken("recipe: 1\nname: a\ncluster: {gpus: 8}\nengine: {kind: torch, container: dir:/i, "
	      "entry: engines/tiny_moe/train.py}\n",
	      &p);
	assert_int_equal(p.n_warnings, 2);
	assert_non_null(strstr(p.warnings[0], "4:49: engine.entry: engines/tiny_moe/train.py is "
					      "moectl's own"));
	assert_non_null(strstr(p.warnings[1], "4:34: engine.container: without checkpoint.dir all "
					      "that ranks write is gone"));
}

static void the_innermost_mount(void **state)
{
	_cleanup_(mo_freep) char *text = recipe_in("{image: dir:/i, mounts: [/nfs:ro, /nfs/me, "
						   "/other:/nfs/more, /:/host]}",
						   "/nfs/me/c");
	_cleanup_(parsed_done) struct parsed p = { 0 };
	const struct recipe_container *c = taken(text, &p);

	assert_string_equal(container_mount_of(c, "/nfs/me/c")->source, "/nfs/me");
	assert_string_equal(container_mount_of(c, "/nfs/men")->source, "/nfs");
	assert_string_equal(container_mount_of(c, "/nfs/more")->source, "/other");
	assert_null(container_mount_of(c, "/nf"));
	assert_int_equal(p.n_warnings, 0);
}

static void a_directory_for_each_user(void **state)
{
	_cleanup_(mo_freep) char *text =
		recipe_in("{image: dir:/i, mounts: ['/nfs/{user}', '/h/{user}:/h']}",
			  "'/nfs/{user}/c'");
	_cleanup_(parsed_done) struct parsed p = { 0 };
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	const struct recipe_container *c = taken(text, &p);

	assert_int_equal(p.n_warnings, 0);
	assert_int_equal(recipe_for_user(&p.recipe, "a b", &err), -EINVAL);
	assert_int_equal(recipe_for_user(&p.recipe, "ada", NULL), 1);
	assert_string_equal(p.recipe.checkpoint.dir, "/nfs/ada/c");
	assert_string_equal(c->mounts[0].source, "/nfs/ada");
	assert_string_equal(c->mounts[0].target, "/nfs/ada");
	assert_string_equal(c->mounts[1].source, "/h/ada");
	assert_string_equal(c->mounts[1].target, "/h");
	assert_int_equal(recipe_for_user(&p.recipe, "bob", NULL), 0);
}

struct bad {
	const char *container, *dir, *said;
};

static void what_is_refused(void **state)
{
	static const struct bad rows[] = {
		{ "[a]", "/c", "9:14 engine.container: expected an image, or a mapping" },
		{ "/i", "/c",
		  "9:14 engine.container: '/i': a directory with an unpacked image is "
		  "written dir:/i" },
		{ "dir:i", "/c", "engine.container: 'i' is no absolute path" },
		{ "dir:/i/../j", "/c", "engine.container: '/i/../j' has a part '..'" },
		{ "dir:/./", "/c", "engine.container: / is no image" },
		{ "docker.io/rocm/primus:v26.5", "/c", "moe-image fetch docker://HOST" },
		{ "docker://rocm/primus", "/c", "moe-image fetch docker://HOST" },
		{ "oci:/nfs/primus", "/c", "[unpack it on each node: moe-image unpack oci:" },
		{ "squashfs:/nfs/p.sqsh", "/c", "unsquashfs -d" },
		{ "docker:primus", "/c", "docker save -o FILE IMAGE, and unpack it on each node" },
		{ "podman:primus", "/c", "podman save" },
		{ "docker-archive:/p.tar", "/c", "moe-image unpack docker-archive:FILE" },
		{ "{mounts: [/c]}", "/c", "9:14 missing key 'engine.container.image'" },
		{ "{image: dir:/i, mount: [/c]}", "/c",
		  "9:30 unknown key 'engine.container.mount' [did you mean 'mounts'?]" },
		{ "{image: dir:/i, mounts: /c}", "/c", "[write it as [a, b]]" },
		{ "{image: dir:/i, mounts: [c]}", "/c", "'c' is no absolute path" },
		{ "{image: dir:/i, mounts: ['/c:']}", "/c", "expected SOURCE[:TARGET][:ro]" },
		{ "{image: dir:/i, mounts: ['/c:/d:rx']}", "/c", "expected SOURCE[:TARGET][:ro]" },
		{ "{image: dir:/i, mounts: [/c, /d/../c:/e]}", "/c", "has a part '..'" },
		{ "{image: dir:/i, mounts: [/c, /d:/c/]}", "/c",
		  "9:43 engine.container.mounts: /c "
		  "is the target of /c already" },
		{ "{image: dir:/i, mounts: [/c, /d:/]}", "/c", "would cover the whole image" },
		{ "{image: dir:/i, mounts: [/c, /proc/sys]}", "/c", "/proc is made for each step" },
		{ "{image: dir:/i, mounts: [/c, /dev/shm]}", "/c",
		  "[the node's own is engine.container.shm: host]" },
		{ "{image: dir:/i, mounts: [/c, /a:/run/moe-step]}", "/c",
		  "/run/moe-step is made for each step" },
		{ "{image: dir:/i, mounts: [/c:ro]}", "/c/d",
		  "4:19 checkpoint.dir: ranks cannot write to /c/d: the mount of /c" },
		{ "{image: dir:/i, mounts: [/n:/c]}", "/c/d",
		  "4:19 checkpoint.dir: /c/d in the image is /n/d on the nodes" },
		{ "dir:/i", "/dev/shm/c", "checkpoint.dir: /dev is made for each step" },
		{ "{image: dir:/i, shm: 50%}", "/c", "expected a size such as 64G, or host" },
		{ "{image: dir:/i, shm: 0}", "/c", "expected a size such as 64G, or host" },
		{ "{image: dir:/i, writable: true}", "/c", "expected one of disk, tmpfs, no" },
		{ "{image: dir:/i, privileged: true}", "/c",
		  "leave it out: ranks in an image run" },
		{ "{image: dir:/i, volumes: [/a]}", "/c", "engine.container.mounts: [/data:ro" },
		{ "{image: dir:/i, user: root}", "/c", "as the user who submits" },
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		_cleanup_(mo_freep) char *text = recipe_in(rows[i].container, rows[i].dir);
		_cleanup_(parsed_done) struct parsed p = parse(text, NULL);
		_cleanup_(mo_freep) char *said = errors_text(&p.errors);

		if (p.errors.n != 1 || !strstr(said, rows[i].said))
			fail_msg("%s: %zu errors\n%s", rows[i].container, p.errors.n, said);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_text),
		cmocka_unit_test(a_mapping),
		cmocka_unit_test(the_nodes_own_files),
		cmocka_unit_test(shared_memory_of_the_node),
		cmocka_unit_test(a_directory_in_no_mount),
		cmocka_unit_test(a_file_that_the_image_has_not),
		cmocka_unit_test(the_innermost_mount),
		cmocka_unit_test(a_directory_for_each_user),
		cmocka_unit_test(what_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
