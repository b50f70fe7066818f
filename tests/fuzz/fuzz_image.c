/* fuzz_image.c - feeds the image decoders with anything. */
#include <koine/image.h>

#include "fuzz_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    kn_tensor *image = kn_decode_image(data, size, .mode = KN_IMAGE_RGB, .apply_exif_orientation = true);
    if (image != NULL)
        kn_release(image);
    else
        fuzz_expect_message();
    return 0;
}
