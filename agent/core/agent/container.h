/* Whether the boot id that this node shows is its own. In a system container (LXC, Docker) it is
 * the kernel's, which is the host's: the container may be started anew under the same id, and then
 * nothing proves to the controller that its steps are gone. systemd-nspawn puts an id of each start
 * over it. Pure; called by agent/manager.c. */
#pragma once
#include <stdbool.h>

/* container: what runs it, NULL = none. mountinfo: /proc/self/mountinfo. */
bool boot_id_is_hosts(const char *container, const char *mountinfo);
