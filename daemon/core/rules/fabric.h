/* What a check of the fabric found is taken into the job that it was made for
 * (daemon/core/state/fabric_check.h): recorded and told, and nothing follows. */
#pragma once

struct turn;

/* IN_FABRIC. Answered with 200, or 404. */
void job_fabric(struct turn *t);
