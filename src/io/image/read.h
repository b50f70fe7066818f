/* io/image/read.h - reading an image without a scope. */
#pragma once

#include <koine/image.h>

/* kn_read_image_with, with a status and an owned reference. */
kn_status kn_image_read(kn_tensor **tensor, const char *path, const kn_image_params *params);
