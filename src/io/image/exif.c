/* io/image/exif.c - the orientation in an EXIF block: a TIFF file of its own, "II" or "MM", 42, the offset of a list of
 * entries of 12 bytes. Each offset comes from the file, and is checked. */
#include "io/image/pixels.h"

enum { ORIENTATION = 0x0112, SHORT = 3 };

typedef struct reader {
    const unsigned char *bytes;
    size_t size;
    bool little;
} reader;

/* `count` bytes at `at` as a number; 0 outside of the block. */
static uint32_t number(const reader *r, size_t at, size_t count)
{
    uint32_t value = 0;
    if (at > r->size || count > r->size - at)
        return 0;
    for (size_t i = 0; i < count; i++)
        value = value << 8 | r->bytes[at + (r->little ? count - 1 - i : i)];
    return value;
}

int kn_exif_orientation(const unsigned char *block, size_t size)
{
    const reader r = {.bytes = block, .size = size, .little = size > 0 && block[0] == 'I'};
    if (number(&r, 2, 2) != 42)
        return 0;
    const size_t list = number(&r, 4, 4), count = number(&r, list, 2);
    for (size_t i = 0; i < count; i++) {
        const size_t entry = list + 2 + 12 * i;
        if (number(&r, entry, 2) == ORIENTATION && number(&r, entry + 2, 2) == SHORT) {
            const uint32_t value = number(&r, entry + 8, 2);
            return value >= 1 && value <= 8 ? (int)value : 0;
        }
    }
    return 0;
}
