/* The engine's own configuration, read where the ranks will run (config.c). */
#pragma once
#include "agent/stepd/stepd.h"

/* SX_READ_CONFIG: answered by SE_CONFIG_READ, into s->config. */
void config_start(struct stepd *s);
/* True when it was moe-config that died. */
bool config_reaped(struct stepd *s, const siginfo_t *si);
void config_tick(struct stepd *s); /* its deadline */
