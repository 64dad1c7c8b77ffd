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
	assert_int_equal(c->user, CONTAINER_SELF);
	assert_int_equal(c->shm_bytes, MO_NONE);
	argv = argv_of(&p);
	assert_string_equal(argv, "python3 x");
}

static void a_mapping(void **state)
{
	_cleanup_(mo_freep) char *text =
		recipe_in("{image: dir:/i, mounts: [/data:ro, /nfs/me/:/work, /c:rw, /a:/b:ro], "
			  "home: true, writable: no, shm: 64G, env_drop: [HSA_*], user: root, "
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

	assert_int_equal(c->user, CONTAINER_ROOT);
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

/* Checkpoints are looked for on the nodes, where another path may be theirs. */
static void a_directory_at_another_path(void **state)
{
	static const struct {
		const char *container, *dir, *on_node;
	} rows[] = {
		{ "none", "/c/d/", "/c/d" },
		{ "dir:/i", "/c/d", "/c/d" },
		{ "{image: dir:/i, mounts: [/n:/c]}", "/c/./d//", "/n/d" },
		{ "{image: dir:/i, mounts: [/n:/c]}", "/c", "/n" },
		{ "{image: dir:/i, mounts: [/n:/c]}", "/cd", "/cd" },
		{ "{image: dir:/i, mounts: [/n:/c, /m/x:/c/d]}", "/c/d/e", "/m/x/e" },
		{ "{image: dir:/i, mounts: [/:/host]}", "/host/c", "/c" },
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		_cleanup_(mo_freep) char *text = recipe_in(rows[i].container, rows[i].dir);
		_cleanup_(parsed_done) struct parsed p = { 0 };

		taken(text, &p);
		_cleanup_(mo_freep) char *dir = recipe_save_dir(&p.recipe);
		assert_string_equal(dir, rows[i].on_node);
	}
}

static void of_a_store_and_a_file(void **state)
{
	_cleanup_(mo_freep) char *text = recipe_in("podman:localhost/primus:v1", "/c");
	_cleanup_(parsed_done) struct parsed p = { 0 };

	_cleanup_(mo_freep) char *file = recipe_in("squashfs:/nfs//p.sqsh", "/c");
	_cleanup_(parsed_done) struct parsed q = { 0 };

	assert_string_equal(taken(text, &p)->image, "podman:localhost/primus:v1");
	assert_string_equal(taken(file, &q)->image, "squashfs:/nfs/p.sqsh");
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
		{ "docker.io/ROCm/primus:v26.5", "/c",
		  "9:14 engine.container: docker.io/ROCm/primus:v26.5 is no name of an image" },
		{ "docker://rocm/primus@sha256:1", "/c", "is no name of an image" },
		{ "http://host/rocm/primus", "/c", "others are oci:DIR[:TAG], docker-archive:" },
		{ "oci:nfs/primus", "/c", "engine.container: 'nfs/primus' is no absolute path" },
		{ "oci:/nfs/../primus", "/c", "has a part '..'" },
		{ "{image: rocm/primus, pull: always}", "/c", "expected one of missing, never" },
		{ "{image: rocm/primus, pull: never}", "/c", "rocm/primus names no digest" },
		{ "{image: 'oci:/a', auth: {file: /h/c}}", "/c", "oci:/a is in no registry" },
		{ "{image: rocm/primus, auth: {user: u}}", "/c", "unknown key" },
		{ "squashfs:p.sqsh", "/c", "'p.sqsh' is no absolute path" },
		{ "docker:--privileged", "/c", "'docker:--privileged' names no image" },
		{ "'podman:a b'", "/c",
		  "9:14 engine.container: 'podman:a b' names no image [write" },
		{ "'podman:'", "/c", "names no image" },
		{ "docker-archive:p.tar", "/c", "'p.tar' is no absolute path" },
		{ "{mounts: [/c]}", "/c", "9:14 missing key 'engine.container.image'" },
		{ "{image: dir:/i, mount: [/c]}", "/c",
		  "9:30 unknown key 'engine.container.mount' [did you mean 'mounts'?]" },
		{ "{image: dir:/i, mounts: /c}", "/c", "[write it as [/c]]" },
		{ "{image: dir:/i, mounts: [{source: /c}]}", "/c",
		  "expected a text SOURCE[:TARGET][:ro], got a mapping [write it as "
		  "SOURCE:TARGET]" },
		{ "{image: dir:/i, cap-add: [a]}", "/c",
		  "unknown key 'engine.container.cap-add' [leave it out: ranks in an image" },
		{ "{image: dir:/i, shm-size: 1g}", "/c", "write it as engine.container.shm: 64G" },
		{ "{image: dir:/i, ulimit: [a]}", "/c", "limits are those of the nodes" },
		{ "{image: dir:/i, group-add: [video]}", "/c", "the groups that their user has" },
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
		{ "dir:/i", "/dev/shm/c", "checkpoint.dir: /dev is made for each step" },
		{ "{image: dir:/i, shm: 50%}", "/c", "expected a size such as 64G, or host" },
		{ "{image: dir:/i, shm: 0}", "/c", "expected a size such as 64G, or host" },
		{ "{image: dir:/i, writable: true}", "/c", "expected one of disk, tmpfs, no" },
		{ "{image: dir:/i, privileged: true}", "/c",
		  "leave it out: ranks in an image run" },
		{ "{image: dir:/i, volumes: [/a]}", "/c", "engine.container.mounts: [/data:ro" },
		{ "{image: dir:/i, user: alice}", "/c", "user" },
		{ "{image: 'docker:x', runtime: runc}", "/c",
		  "9:43 engine.container.runtime: expected builtin, docker or podman" },
		{ "{image: rocm/primus, runtime: docker}", "/c",
		  "docker starts containers of images in its own store only, and rocm/primus is "
		  "not one [write engine.container.image: docker:NAME" },
		{ "{image: 'podman:x', runtime: docker}", "/c", "and podman:x is not one" },
		{ "{image: 'squashfs:/i', runtime: podman}", "/c", "(podman pull NAME)" },
		{ "{image: 'docker:x', runtime: docker, user: root}", "/c",
		  "in a container of docker ranks are the job's user" },
		{ "{image: 'docker:x', runtime: docker, writable: tmpfs}", "/c",
		  "lies on its disk (engine.container.writable: disk)" },
		{ "{image: 'docker:x', runtime: docker, writable: no}", "/c", "lies on its disk" },
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		_cleanup_(mo_freep) char *text = recipe_in(rows[i].container, rows[i].dir);
		_cleanup_(parsed_done) struct parsed p = parse(text, NULL);
		_cleanup_(mo_freep) char *said = errors_text(&p.errors);

		if (p.errors.n != 1 || !strstr(said, rows[i].said))
			fail_msg("%s: %zu errors\n%s", rows[i].container, p.errors.n, said);
	}
}

/* What the engine writes beside its checkpoints (`outputs` of its file); said NULL: it is taken. */
static void outputs_in_no_mount(void **state)
{
	static const struct {
		const char *mounts, *args, *said;
	} rows[] = {
		{ "[]", "{tensorboard-dir: /logs/tb}",
		  "8:27 engine.args: tensorboard-dir: no mount of engine.container has /logs/tb: "
		  "what is written there is gone with each attempt [mount a directory of the" },
		{ "[]", "[--tensorboard-dir, tb, --wandb-save-dir=/w]", "has /w/tb: what" },
		{ "[]", "[--wandb-save-dir=/wandb]", "8:10 engine.args: --wandb-save-dir: no" },
		{ "[]", "{tensorboard_dir: /tmp/tb}", "has /tmp/tb: what" },
		{ "[/logs]", "{tensorboard-dir: /logs/tb}", NULL },
		{ "['/nfs/me:/w']", "{tensorboard-dir: tb}", NULL },
		{ "[]", "{tensorboard-dir: /c/tb}", NULL },
		{ "[]", "{tensorboard-dir: 's3://a/tb', data-path: /opt/data}", NULL },
		{ "[]", "{tensorboard-dir: /x}\n  args_unchecked: [tensorboard-dir]", NULL },
		{ "[], home: true", "{tensorboard-dir: /home/me/tb}", NULL },
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		_cleanup_(mo_freep) char *text =
			mo_printf("recipe: 1\nname: a\ncluster: {gpus: 8}\ncheckpoint: {dir: "
				  "/c}\nsteps: 9\n"
				  "engine: {kind: megatron-lm, workdir: /w,\n"
				  "  container: {image: dir:/i, mounts: %s},\n  args: %s}\n",
				  rows[i].mounts, rows[i].args);
		char *newline = strstr(text, "\n  args_unchecked");
		if (newline)
			*newline = ',';
		_cleanup_(parsed_done) struct parsed p = parse(text, NULL);
		_cleanup_(mo_freep) char *said = errors_text(&p.errors);

		if (rows[i].said ? !strstr(said, rows[i].said) : p.errors.n > 0)
			fail_msg("%s: %zu errors\n%s", rows[i].args, p.errors.n, said);
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
		cmocka_unit_test(a_directory_at_another_path),
		cmocka_unit_test(of_a_store_and_a_file),
		cmocka_unit_test(what_is_refused),
		cmocka_unit_test(outputs_in_no_mount),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
