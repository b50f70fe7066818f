/* dist/zero_share.h - how the ranks give each other the parameters of a divided optimizer. */
#pragma once

#include <stdint.h>

/* Bytes of all ranks in one transfer; a test makes it smaller. */
extern _Atomic int64_t kn_zero_transfer_bytes;
