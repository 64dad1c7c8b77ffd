/* config/health/klog.yaml -> rules. Patterns are compiled while reading, so that a bad one is
 * found with its place. */
#pragma once
#include "lib/model/klog.h"
#include "lib/recipe/errors.h"

/* each may give 12 readings; a probe holds MO_READINGS_MAX */
#define KLOG_RULES_MAX 40

/* ret must be initialised. 0, or -EINVAL with errors. */
int klog_rules_parse(const char *text, size_t n, struct klog_rules *ret,
		     struct recipe_errors *errors);
/* The installed file (mo_data_file). */
int klog_rules_load(struct klog_rules *ret, struct mo_error *err);
