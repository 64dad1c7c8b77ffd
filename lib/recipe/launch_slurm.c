/* What a script says to a batch system: #SBATCH lines, the variables that Slurm would set, lines
 * for others. */
#include "lib/recipe/launch_slurm.h"

#include <errno.h>
#include <string.h>

#include "lib/recipe/launch_found.h"
#include "lib/recipe/launch_options.h"
#include "lib/recipe/launch_run.h"
#include "lib/recipe/shell_vars.h"

void launch_read_sbatch(struct run *r, const char *text)
{
	for (const char *p = text; p && *p; p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL) {
		if (!mo_starts_with(p, "#SBATCH"))
			continue;
		size_t n = strcspn(p, "\n");
		_cleanup_(mo_freep) char *line =
			mo_strndup(p + strlen("#SBATCH"), n - strlen("#SBATCH"));
		_cleanup_(shell_command_done) struct shell_command c = { 0 };

		shell_read(&r->shell, line, &c);
		for (size_t i = 0; i < c.words.n; i++)
			mo_strs_add(&r->sbatch.items, &r->sbatch.n, c.words.items[i]);
	}
}

bool launch_read_directives(struct run *r, const char *text)
{
	static const char *const begins[] = { "#PBS ", "#BSUB ", "#FLUX: ", "#COBALT " };
	size_t had = r->directives.n;

	for (const char *p = text; p && *p; p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL)
		for (size_t i = 0; i < ELEMENTSOF(begins); i++) {
			_cleanup_(mo_freep) char *line = mo_strndup(p, strcspn(p, "\r\n"));

			if (mo_starts_with(p, begins[i]))
				run_name(&r->directives, line);
		}
	return r->directives.n > had;
}

void launch_set_submitted(struct run *r, const char *text)
{
	static const char *const names[] = { "SLURM_SUBMIT_DIR", "PBS_O_WORKDIR", "LS_SUBCWD" };
	bool batch = r->sbatch.n > 0;

	for (size_t i = 0; i < r->before.n; i++)
		batch |= mo_streq(r->before.items[i], "sbatch");
	batch |= launch_read_directives(r, text);
	for (size_t i = 0; i < ELEMENTSOF(names) && batch && r->world && r->world->dir; i++)
		shell_set_text(&r->shell, names[i], strlen(names[i]), r->world->dir, false);
}

void launch_set_slurm(struct run *r)
{
	static const struct {
		const char *names, *vars[2];
	} said[] = {
		{ "-N --nodes", { "SLURM_NNODES", "SLURM_JOB_NUM_NODES" } },
		{ "--gpus-per-node", { "SLURM_GPUS_PER_NODE", "SLURM_GPUS_ON_NODE" } },
		{ "--ntasks-per-node", { "SLURM_NTASKS_PER_NODE", "SLURM_TASKS_PER_NODE" } },
		{ "-c --cpus-per-task", { "SLURM_CPUS_PER_TASK", NULL } },
		{ "-n --ntasks", { "SLURM_NTASKS", "SLURM_NPROCS" } },
		{ "-J --job-name", { "SLURM_JOB_NAME", NULL } },
	};

	for (size_t i = 0; i < r->sbatch.n; i++) {
		const char *word = r->sbatch.items[i], *eq = strchr(word, '=');
		const char *value = eq                    ? eq + 1
				    : i + 1 < r->sbatch.n ? r->sbatch.items[i + 1]
							  : NULL;

		for (size_t k = 0; value && k < ELEMENTSOF(said); k++)
			for (size_t v = 0; v < 2 && said[k].vars[v]; v++)
				if (launch_among(said[k].names, word, strcspn(word, "=")))
					shell_set_text(&r->shell, said[k].vars[v],
						       strlen(said[k].vars[v]), value, false);
	}
}
