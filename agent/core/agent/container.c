/* See container.h. */
#include "agent/core/agent/container.h"

#include <string.h>

#define BOOT_ID_PATH " /proc/sys/kernel/random/boot_id "     /* the fifth word of a line, where something is mounted */

bool boot_id_is_hosts(const char *container, const char *mountinfo)
{
	return container && *container && !(mountinfo && strstr(mountinfo, BOOT_ID_PATH));
}
