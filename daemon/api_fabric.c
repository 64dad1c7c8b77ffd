/* POST /v1/jobs/{id}/fabric: what a check of the fabric over the job's nodes found. It is checked
 * here, recorded by the core (core/rules/fabric.c), and shown by why and as `fabric` of the job. */
#include "daemon/api_fabric.h"

#include "daemon/api.h"
#include "daemon/input.h"
#include "daemon/manager.h"

static void push(struct manager *m, struct http_request *r, int64_t job,
		 const struct fabric_result *found)
{
	struct input *in = input_new(IN_FABRIC, r);

	in->core.fabric = mo_desc_new(&in_fabric_desc);
	in->core.fabric->job = job;
	mo_desc_copy(&fabric_result_desc, &in->core.fabric->found, found);
	in->answer = ANSWER_JOB;
	input_push(m, in);
}

void api_job_fabric(void *arg, struct http_request *r)
{
	struct manager *m = arg;
	const struct job *j = api_job(m, r);
	_cleanup_(mo_freep) char *problem = NULL;
	struct fabric_result found;

	if (!j)
		return;
	mo_desc_init(&fabric_result_desc, &found);
	if (api_body(r, &fabric_result_desc, &found)) {
		problem = fabric_result_problem(&found);
		if (problem)
			http_problem(r, 422, "%s", problem);
		else
			push(m, r, j->id, &found);
	}
	mo_desc_done(&fabric_result_desc, &found);
}
