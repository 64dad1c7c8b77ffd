/* engine.kind: command never starts a container client or another launcher, however it is spelled;
 * what only looks so passes. */
#include <string.h>

#include "tests/unit/recipe/read.h"

struct row {
	const char *argv;
	const char *says; /* "LINE:COLUMN what", NULL = it passes */
};
static const struct row rows[] = {
	{ "[docker, run, --rm, image, python, train.py]", "3:32 engine.argv: 'docker'" },
	{ "[podman, run, image]", "3:32 engine.argv: 'podman'" },
	{ "[nerdctl, run, image]", "3:32 engine.argv: 'nerdctl'" },
	{ "[apptainer, exec, a.sif, python]", "3:32 engine.argv: 'apptainer'" },
	{ "[singularity, exec, a.sif, python]", "3:32 engine.argv: 'singularity'" },
	{ "[enroot, start, image]", "3:32 engine.argv: 'enroot'" },
	{ "[srun, python, train.py]", "3:32 engine.argv: 'srun'" },
	{ "[/usr/bin/docker, run, image]", "3:32 engine.argv: '/usr/bin/docker'" },
	{ "[env, A=b, docker, run, image]", "3:42 engine.argv: 'docker'" },
	{ "[/usr/bin/env, -i, -u, X, A=b, podman, run, image]", "3:62 engine.argv: 'podman'" },
	{ "[sudo, -n, docker, run, image]", "3:42 engine.argv: 'docker'" },
	{ "[timeout, -s, KILL, 10m, srun, hostname]", "3:56 engine.argv: 'srun'" },
	{ "[nice, -n, 5, nohup, docker, run, image]", "3:52 engine.argv: 'docker'" },
	{ "[bash, -c, 'docker run image']", "3:42 engine.argv: 'docker'" },
	{ "[/bin/sh, -lc, 'cd /x && exec env A=b /usr/bin/docker run image']",
	  "3:46 engine.argv: '/usr/bin/docker'" },
	{ "[bash, -e, -c, \"set -x\\nif true; then podman run image; fi\"]",
	  "3:46 engine.argv: 'podman'" },
	{ "[bash, -c, 'A=1 srun hostname | tee log']", "3:42 engine.argv: 'srun'" },
	{ "[env, bash, -c, '(docker --context x run image)']", "3:47 engine.argv: 'docker'" },
	{ "[bash, -c, 'docker compose up']", "3:42 engine.argv: 'docker'" },
	/* what only looks so */
	{ "[python3, docker]", NULL },
	{ "[./docker.sh]", NULL },
	{ "[env, A=docker, python3, srun]", NULL },
	{ "[bash, train.sh, docker]", NULL },
	{ "[bash, -c, 'echo \"no; docker run here\"']", NULL },
	{ "[bash, -c, 'echo docker run']", NULL },
	{ "[bash, -c, 'docker pull image; docker info; exec python3 train.py']", NULL },
	{ "[bash, -c, 'python3 train.py # docker run']", NULL },
	{ "[timeout, 10m, python3]", NULL },
	{ "[env]", NULL },
	{ "[bash, -c]", NULL },
	{ "[bash, -c, '']", NULL },
	{ "[bash, -c, 'unclosed \"quote']", NULL },
};

static void each_row(void **state)
{
	size_t n_wrong = 0;

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		_cleanup_(mo_freep) char *text =
			mo_printf("recipe: 1\nname: a\nengine: {kind: command, argv: %s}\ncluster: "
				  "{gpus: 1}\n",
				  rows[i].argv);
		_cleanup_(parsed_done) struct parsed p = parse(text, NULL);
		_cleanup_(mo_freep) char *said = errors_text(&p.errors);
		bool right = rows[i].says ? p.errors.n == 1 && mo_starts_with(said, rows[i].says)
					  : p.errors.n == 0;

		if (!right)
			print_message("%s: expected %s, got %s\n", rows[i].argv,
				      rows[i].says ? rows[i].says : "no error",
				      *said ? said : "none\n");
		n_wrong += !right;
	}
	assert_int_equal(n_wrong, 0);
}

/* What is wrong with it and what to do instead; and no other message sends a user there. */
static void the_way_out(void **state)
{
	_cleanup_(parsed_done) struct parsed docker =
		parse("recipe: 1\nname: a\nengine: {kind: command, argv: [docker, run, "
		      "x]}\ncluster: {gpus: 1}\n",
		      NULL);
	_cleanup_(parsed_done) struct parsed srun =
		parse("recipe: 1\nname: a\nengine: {kind: command, argv: [srun, x]}\ncluster: "
		      "{gpus: 1}\n",
		      NULL);
	_cleanup_(parsed_done) struct parsed container =
		parse("recipe: 1\nname: a\nengine: {kind: torch, entry: x, container: "
		      "-image}\ncluster: {gpus: 1}\n",
		      NULL);
	_cleanup_(mo_freep) char *by_docker = errors_text(&docker.errors),
				 *by_srun = errors_text(&srun.errors),
				 *by_key = errors_text(&container.errors);

	assert_non_null(strstr(by_docker, "outlive the job"));
	assert_non_null(
		strstr(by_docker, "the image that engine.container names (docs/recipe.md)"));
	assert_non_null(strstr(by_srun, "outlive the job"));
	assert_non_null(strstr(by_srun, "cluster.gpus"));
	assert_non_null(strstr(by_key, "is no name of an image; write HOST/NAME:TAG"));
	assert_null(strstr(by_key, "command"));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(each_row),
					    cmocka_unit_test(the_way_out) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
