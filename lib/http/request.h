/* One request, from its head to its handler: callbacks of MHD. */
#pragma once
#include "lib/http/internal.h"

enum MHD_Result request_access(void *cls, struct MHD_Connection *mhd, const char *url,
			       const char *method, const char *version, const char *data, size_t *n,
			       void **con_cls);
void request_completed(void *cls, struct MHD_Connection *mhd, void **con_cls,
		       enum MHD_RequestTerminationCode code);
