/* Scans of a checkpoint directory are ordered by kind and id (enum scan_order, command.order and
 * .id), and an answer names the same two. Peers of before that know one number only, `attempt`:
 *   scan        its id, which is the attempt that it is made for
 *   verify      below -(2^56)
 *   last_scan   below -(2^55)
 *   prune       negative
 * So each message carries that number too, and what comes without an order is read from it. This
 * is the only place that knows the numbers: called where a message leaves or comes in, and where
 * a stored record of before is read. A controller of before orders its last scans as scans.
 * Pure. */
#pragma once
#include "lib/model/message.h"

/* Controller: its reply is about to leave. */
void orders_to_wire(struct sync_reply *reply);
/* Agent: a reply has come in. */
void orders_from_wire(struct sync_reply *reply);
/* Agent: its sync or urgent message is about to leave. named, space: the controller's welcome said
 * that it knows orders, and free_bytes; one of before refuses a message with keys that it does not
 * know. */
void answers_to_wire(struct agent_sync *sync, bool named, bool space);
/* Controller: a sync or urgent message has come in. */
void answers_from_wire(struct agent_sync *sync);
/* One answer alone, as records keep it. */
void answer_from_wire(struct scan_result *scan);
