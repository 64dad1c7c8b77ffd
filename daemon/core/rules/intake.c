/* See intake.h. The bounds of single values stand in the descriptions of lib/model. */
#include "daemon/core/rules/intake.h"

#include <string.h>

#include "lib/base/desc_fit.h"
#include "lib/base/utf8.h"
#include "lib/model/limits.h"

#define NOTE_BYTES 512 /* what a note costs without its texts, in bytes of text */
#define SHORT 256

static char *bad_step(const struct step_report *steps, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (steps[i].job < 1 || steps[i].attempt < 1 ||
		    MO_MAX(steps[i].job, steps[i].attempt) > MO_FIT_ITERATION)
			return mo_printf("steps[%zu]: job %lld attempt %lld: both begin with 1", i,
					 (long long)steps[i].job, (long long)steps[i].attempt);
	return NULL;
}

/* It becomes MASTER_ADDR of ranks. */
static char *bad_address(const char *address)
{
	static const char good[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.:%_-";

	if (!address || !address[strspn(address, good)])
		return NULL;
	return mo_strdup(
		"address: must be an IP address or a host name: correct `address` in agent.yaml");
}

/* A slot that two entries name would be given away twice. */
static char *bad_slots(const struct nodeinfo *info)
{
	for (size_t i = 0; i < info->n_gpus; i++)
		for (size_t k = 0; k < i; k++)
			if (info->gpus[k].index == info->gpus[i].index)
				return mo_printf("info.gpus[%zu].index: %lld, as info.gpus[%zu] "
						 "has it: each slot has its own",
						 i, (long long)info->gpus[i].index, k);
	return NULL;
}

char *intake_hello(const struct agent_hello *hello)
{
	char *why = bad_step(hello->steps, hello->n_steps);

	if (!why)
		why = bad_address(hello->address);
	if (!why)
		why = mo_desc_unfit(&agent_hello_desc, hello);
	return why ? why : bad_slots(&hello->info);
}

static void cut_notes(struct agent_sync *s)
{
	size_t left = MO_PORTION_BYTES;

	for (size_t i = 0; i < s->n_steps; i++) {
		struct step_report *r = &s->steps[i];
		size_t n = 0;

		for (; n < r->n_notes; n++) {
			size_t bytes = NOTE_BYTES + mo_desc_text_bytes(&note_desc, &r->notes[n]);

			if (bytes > left)
				break;
			left -= bytes;
		}
		mo_vec_cut(&note_desc, r->notes, &r->n_notes, n);
	}
}

static void cut_scans(struct agent_sync *s)
{
	size_t left = MO_PORTION_BYTES, n = 0;

	for (; n < s->n_scans; n++) {
		size_t bytes = mo_desc_text_bytes(&scan_result_desc, &s->scans[n]);

		if (bytes > left)
			break;
		left -= bytes;
	}
	if (n == 0 && s->n_scans > 0) { /* an agent before this one left it whole */
		scan_result_fit(&s->scans[0]);
		n = 1;
	}
	mo_vec_cut(&scan_result_desc, s->scans, &s->n_scans, n);
}

static void shorten(char *s)
{
	if (s && strnlen(s, SHORT + 1) > SHORT)
		s[mo_utf8_cut(s, SHORT)] = 0;
}

/* It comes whole or not at all: what is found stays, what it rests on is left out. */
static void cut_health(struct node_health *h)
{
	if (!h || mo_desc_text_bytes(&node_health_desc, h) <= MO_PORTION_BYTES)
		return;
	for (size_t i = 0; i < h->n_results; i++) {
		struct check_result *c = &h->results[i];

		for (size_t k = c->n_evidence; k-- > 0; c->n_evidence = k)
			free(c->evidence[k]);
		shorten(c->text);
		shorten(c->next);
	}
}

/* It is the largest thing that a note can hold, and only one note of a step is asked for it. */
static void drop_configs(struct agent_sync *s)
{
	for (size_t i = 0; i < s->n_steps; i++)
		for (size_t k = 0; k < s->steps[i].n_notes; k++) {
			struct note *n = &s->steps[i].notes[k];

			if (n->config && (n->kind != NOTE_STARTED || n->rank != 0))
				mo_str_set(&n->config, NULL);
		}
}

void intake_portion(struct agent_sync *sync)
{
	drop_configs(sync);
	cut_notes(sync);
	cut_scans(sync);
	cut_health(sync->health);
}

char *intake_sync(struct agent_sync *sync, char **ret_unfit)
{
	char *why = bad_step(sync->steps, sync->n_steps);

	*ret_unfit = why ? NULL : mo_desc_unfit(&agent_sync_desc, sync);
	if (*ret_unfit)
		mo_desc_fit(&agent_sync_desc, sync);
	return why;
}
