/* rt/stream/host_wait.h - tracking calls that make the host wait for a device. */
#pragma once

#include <koine/status.h>

/* Counts a call; `what` is for the message. An error if kn_set_sync_debug_mode demands one. */
kn_status kn_note_host_wait(const char *what);
