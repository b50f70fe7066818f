/* dist/group/bytes.h - messages of plain bytes. */
#pragma once

#include <koine/group.h>

/* Sends `bytes` of host memory to rank `other`, or receives them from it, and waits. */
kn_status kn_group_pass_bytes(kn_group *group, void *data, size_t bytes, int other, bool sends);
