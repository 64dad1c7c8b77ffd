/* A dump of PyTorch's flight recorder, a pickle (protocol 2): which of the collectives that a rank
 * enqueued are not over. Pure; called by moe-recorder. The dump is a user's file: what is no dump
 * is said to be none, and what it says is cut to what a message may carry. */
#pragma once
#include "lib/model/recorder.h"

/* now_ns: of the clock that the dump was made by (since the epoch). 0 entries are one too. NULL:
 * the rest of *ret, initialised, is filled (not its rank); else why it is no dump (static text):
 * one that is being written yet is cut short. */
const char *recorder_read(const void *data, size_t n, int64_t now_ns, struct rank_recorder *ret);
