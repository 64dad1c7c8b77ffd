/* Supervisors as transient systemd services (unit.c). */
#pragma once
#include "agent/starter.h"

/* 1: there is no systemd here. */
int unit_starter_new(struct manager *m, struct starter **ret, struct mo_error *err);
