/* rt/device/ranks_beside.h - other processes that use this host's cores. */
#pragma once

/* How many ranks a launcher has started on this host, or at most, this one included; 1: none did. */
int kn_ranks_beside(void);
