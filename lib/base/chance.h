/* The one source of chance, for ids and secrets. Not for pure rooms. */
#pragma once
#include <stddef.h>

int mo_random(void *data, size_t n); /* getrandom(2); negative errno */
