/* dist/group/bytes.h - plain bytes between ranks. */
#pragma once

#include <koine/group.h>

/* Sends `bytes` of host memory to rank `other`, or receives them from it, and waits. */
kn_status kn_group_pass_bytes(kn_group *group, void *data, size_t bytes, int other, bool sends);

/* Each rank's `bytes` bytes, one after the other, in memory for kn_free; NULL with an error. */
void *kn_group_gather_bytes(kn_group *group, const void *mine, size_t bytes);
