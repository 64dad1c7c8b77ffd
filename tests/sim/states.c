/* docs/states.md: the tables that the cores run by. */
#include "tests/sim/sim.h"

#include "daemon/core/rules/remedy.h"

/* Of the docs, from the rows that `moectl why` speaks from. */
static void waits(void)
{
	printf("\n## What a job waits for\n"
	       "In `queued`, `recovering` and `stopping`: `waiting.code` and `waiting.text` "
	       "of the Job document, the code and text of a reason of `moectl why`, the reason of "
	       "`status` and `list`. Where something happened before, the reason keeps it: with "
	       "`grace` the text follows it, with `not-gone` it stands alone. Made from the rows "
	       "in "
	       "`daemon/core/state/waiting.c`; numbers are of the last look at the queue, which "
	       "follows every change.\n"
	       "\n| code | the reason | what makes it go on |\n|--|--|--|\n");
	for (int i = WAITING_NOT + 1; i < _WAITING_N; i++)
		printf("| `%s` | %s | %s |\n", waiting_code_names[i], waiting_kinds[i].sentence,
		       waiting_kinds[i].next);
}

/* What follows which failure. */
static void failures(void)
{
	printf("\n# What follows a failure\nBy the class of the verdict (`moectl why`, "
	       "[failures](failures.md#classes-of-failures)); the first row of a class whose "
	       "condition holds is taken. `recovery.policy` of a recipe replaces the action of a "
	       "class, "
	       "but in the first row. The budget is what ends the job: failures in a row without a "
	       "new checkpoint (`recovery.max_cycles_without_progress`), or those and an hour of "
	       "them. Made from the rows in `daemon/core/rules/remedy.c`.\n\n"
	       "| class | condition | action | budget |\n|--|--|--|--|\n");
	for (size_t i = 0; i < n_remedies; i++) {
		const struct remedy *d = &remedies[i];

		printf("| `%s` | %s | `%s` | %s |\n", failure_class_names[d->class],
		       remedy_when_names[d->when], failure_action_names[d->action],
		       d->action == DO_STOP ? "" : remedy_budget_names[d->budget]);
	}
}

static void step_states(void)
{
	printf("\n# States of a step\nA job's attempt on one node, as its supervisor (moe-stepd) "
	       "has it: the table that `agent/core/stepd/stepd_core.c` runs by. "
	       "Pairs that are not listed are ignored; behind `gone` nothing follows.\n");
	for (int state = 0; stepd_state_name(state); state++) {
		bool any = false;

		for (int event = 0; stepd_event_name(event); event++) {
			const char *text = stepd_follows(state, event);

			if (text && !any)
				printf("\n## step: %s\n| what happens | what follows |\n|--|--|\n",
				       stepd_state_name(state));
			if (text)
				printf("| %s | %s |\n", stepd_event_name(event), text);
			any |= text != NULL;
		}
	}
}

void states_print(void)
{
	printf("# States of a job\nMade by `build/sim --states` from the table in "
	       "`daemon/core/rules/job_table.c`; the first row whose condition holds is taken. "
	       "Pairs that are not listed are ignored.\n");
	for (int state = 0; state < _JOB_STATE_N; state++) {
		printf("\n## %s\n| what happens | condition | next |\n|--|--|--|\n",
		       job_state_names[state]);
		for (size_t i = 0; i < n_job_rows; i++) {
			const struct job_row *r = &job_rows[i];

			if (r->state != state || r->next == NEXT_IGNORE)
				continue;
			if (r->next == NEXT_REFUSE)
				printf("| %s | %s | refused (409): %s |\n",
				       job_trigger_names[r->trigger], job_guard_names[r->guard],
				       r->text);
			else
				printf("| %s | %s | %s |\n", job_trigger_names[r->trigger],
				       job_guard_names[r->guard], job_state_names[r->next]);
		}
	}
	waits();
	failures();
	step_states();
}
