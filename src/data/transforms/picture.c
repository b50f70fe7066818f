/* data/transforms/picture.c - memory, access to elements, cropping with padding. */
#include "data/transforms/picture.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

void kn_picture_free(kn_picture *picture)
{
    if (picture->owned)
        kn_free(picture->data);
    picture->data = NULL;
    picture->owned = false;
}

kn_status kn_picture_new(kn_picture *made, const kn_picture *picture, int64_t height, int64_t width)
{
    *made = *picture;
    made->height = height;
    made->width = width;
    made->data = kn_malloc((size_t)(made->channels * height * width) * kn_picture_element(made));
    made->owned = true;
    return made->data ? KN_OK : KN_ERR_MEMORY;
}

void kn_picture_replace(kn_picture *picture, const kn_picture *by)
{
    kn_picture_free(picture);
    *picture = *by;
}

/* --- elements ----------------------------------------------------------------------------------------------------- */

void kn_picture_load(const kn_picture *picture, int64_t at, int64_t count, float *values)
{
    if (picture->dtype == KN_F32) {
        memcpy(values, (const float *)picture->data + at, (size_t)count * sizeof *values);
        return;
    }
    const uint8_t *from = (const uint8_t *)picture->data + at;
    for (int64_t i = 0; i < count; i++)
        values[i] = from[i];
}

static inline float limited(float value) { return fminf(fmaxf(value, 0), 255); }

void kn_picture_store(kn_picture *picture, int64_t at, int64_t count, const float *values)
{
    if (picture->dtype == KN_F32) {
        memcpy((float *)picture->data + at, values, (size_t)count * sizeof *values);
        return;
    }
    uint8_t *to = (uint8_t *)picture->data + at;
    for (int64_t i = 0; i < count; i++)
        to[i] = (uint8_t)rintf(limited(values[i]));
}

void kn_picture_store_cut(kn_picture *picture, int64_t at, int64_t count, const float *values)
{
    if (picture->dtype == KN_F32) {
        memcpy((float *)picture->data + at, values, (size_t)count * sizeof *values);
        return;
    }
    uint8_t *to = (uint8_t *)picture->data + at;
    for (int64_t i = 0; i < count; i++)
        to[i] = (uint8_t)limited(values[i]);
}

/* --- cropping ----------------------------------------------------------------------------------------------------- */

/* Where the element for place `at` of a row of `size` is taken from; -1: nowhere. */
static int64_t source_of(int64_t at, int64_t size, kn_padding_mode mode)
{
    if (at >= 0 && at < size)
        return at;
    switch (mode) {
    case KN_PAD_REPLICATE:
        return at < 0 ? 0 : size - 1;
    case KN_PAD_CIRCULAR:
        return (at % size + size) % size;
    case KN_PAD_REFLECT: {
        if (size == 1)
            return 0;
        const int64_t period = 2 * (size - 1), place = (at % period + period) % period;
        return place < size ? place : period - place;
    }
    default:
        return -1;
    }
}

static void put(const kn_picture *to, int64_t at, const kn_picture *from, int64_t source, double fill)
{
    if (to->dtype == KN_U8)
        ((uint8_t *)to->data)[at] = source < 0 ? (uint8_t)limited((float)fill) : ((const uint8_t *)from->data)[source];
    else
        ((float *)to->data)[at] = source < 0 ? (float)fill : ((const float *)from->data)[source];
}

/* The elements of a row of the result from `begin` to `end`; y is its row in the source, -1: none. */
static void fill_part(const kn_picture *made, const kn_picture *from, kn_box box, int64_t row, int64_t y, int64_t begin,
                      int64_t end, kn_padding_mode mode, double fill)
{
    const int64_t plane = row / box.height;
    for (int64_t x = begin; x < end; x++) {
        const int64_t column = source_of(box.left + x, from->width, mode);
        const int64_t source = y < 0 || column < 0 ? -1 : (plane * from->height + y) * from->width + column;
        put(made, row * box.width + x, from, source, fill);
    }
}

kn_status kn_picture_crop(kn_picture *picture, kn_box box, kn_padding_mode mode, double fill)
{
    kn_picture made;
    KN_TRY(kn_picture_new(&made, picture, box.height, box.width));
    const size_t element = kn_picture_element(picture);
    const int64_t begin = box.left < 0 ? (-box.left < box.width ? -box.left : box.width) : 0;
    int64_t end = picture->width - box.left < box.width ? picture->width - box.left : box.width;
    end = end < begin ? begin : end; /* from begin to end the row is copied */
    for (int64_t row = 0; row < picture->channels * box.height; row++) {
        const int64_t y = source_of(box.top + row % box.height, picture->height, mode);
        fill_part(&made, picture, box, row, y, 0, y < 0 ? box.width : begin, mode, fill);
        if (y < 0)
            continue;
        const int64_t source = (row / box.height * picture->height + y) * picture->width + box.left + begin;
        memcpy((char *)made.data + (size_t)(row * box.width + begin) * element,
               (const char *)picture->data + (size_t)source * element, (size_t)(end - begin) * element);
        fill_part(&made, picture, box, row, y, end, box.width, mode, fill);
    }
    kn_picture_replace(picture, &made);
    return KN_OK;
}
