/* What is posted to a webhook. */
#pragma once
#include "daemon/core/rules/webhook.h"
#include "daemon/manager.h"

/* Appends the JSON of these events, without lines of output where `visibility` keeps them to a
 * job's owner. */
void webhook_body(const struct manager *m, const struct webhook *w,
		  const struct webhook_batch *batch, struct mo_buf *b);
