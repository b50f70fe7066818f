/* io/image/write.h - shared by the functions that write images. */
#pragma once

#include <koine/image.h>

typedef struct kn_image_format {
    bool is_jpeg; /* else PNG */
    int level;    /* of compression; of a JPEG its quality */
} kn_image_format;

/* Checks the image, whose error messages begin with `function`, and writes it. */
kn_status kn_image_write(const char *function, kn_tensor *image, const char *path, const kn_image_format *format);
