/* io/image/pixels.h - decoded images as the libraries deliver and take them: rows of interleaved bytes. */
#pragma once

#include <koine/image.h>
#include <koine/status.h>
#include <stddef.h>

#define KN_IMAGE_MOST_PIXELS ((uint64_t)1 << 27)

typedef struct kn_pixels {
    unsigned char *bytes; /* freed by kn_free */
    int64_t width, height;
    int channels;    /* 1 to 4: gray, gray and alpha, RGB, RGB and alpha */
    int orientation; /* EXIF's, 1 to 8; 0: not given */
} kn_pixels;

/* Allocates `bytes` after checking the size, which comes from a file. The message has no file name. */
kn_status kn_pixels_allocate(kn_pixels *pixels, uint64_t width, uint64_t height, int channels);

/* Decoders. Failures are KN_ERR_FORMAT or KN_ERR_MEMORY, with a message without the file's name; `pixels` then still
 * has to be freed. `gray`: a decoder that can deliver gray directly may do so. */
kn_status kn_png_decode(kn_pixels *pixels, const unsigned char *data, size_t size);
kn_status kn_jpeg_decode(kn_pixels *pixels, const unsigned char *data, size_t size, bool gray);

/* Encoders: a new block, which the caller frees with kn_free. */
kn_status kn_png_encode(unsigned char **data, size_t *size, const kn_pixels *pixels, int compression_level);
kn_status kn_jpeg_encode(unsigned char **data, size_t *size, const kn_pixels *pixels, int quality);

/* The orientation in an EXIF block that starts with its TIFF header; 0 if there is none, or none that makes sense. */
int kn_exif_orientation(const unsigned char *block, size_t size);
