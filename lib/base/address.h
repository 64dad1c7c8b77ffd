/* What an address or URL says about the way there. Looks nothing up. */
#pragma once
#include <stdbool.h>

/* A numeric address of this machine alone: 127.0.0.0/8, ::1, also as ::ffff:127.0.0.1. */
bool mo_address_loopback(const char *address);
/* http:// to anything but loopback: what is sent there, tokens too, can be read on the way. */
bool mo_url_clear_text(const char *url);
