/* Hellos and beats of agents; see fleet.c. */
#pragma once

struct turn;

void fleet_hello(struct turn *t);
void fleet_sync(struct turn *t);
