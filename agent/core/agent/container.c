/* See container.h. */
#include "agent/core/agent/container.h"

#include <string.h>

/* the fifth word of a line, where something is mounted */
#define BOOT_ID_PATH " /proc/sys/kernel/random/boot_id "

bool boot_id_is_hosts(const char *container, const char *mountinfo)
{
	return container && *container && !(mountinfo && strstr(mountinfo, BOOT_ID_PATH));
}
