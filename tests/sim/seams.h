/* Clocks and turns of who runs (seams.c): the controller, or an agent. */
#pragma once
#include <stdbool.h>

void seams_of_node(int node); /* -1: the controller */
