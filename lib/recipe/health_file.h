/* config/health/{gpu,nic,host,active,site}.yaml -> checks, and one check for each rule of
 * klog.yaml. */
#pragma once
#include "lib/model/health.h"
#include "lib/recipe/errors.h"

/* One file's text, appended. ret must be initialised. 0, or -EINVAL with errors. */
int health_checks_parse(const char *text, size_t n, struct health_checks *ret,
			struct recipe_errors *errors);
/* The installed files (mo_data_file). site.yaml need not exist; a check of it replaces the one
 * of the same id. ret must be initialised. */
int health_checks_load(struct health_checks *ret, struct mo_error *err);
