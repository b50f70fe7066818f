/* data/transforms/affine.c - turned, scaled, sheared and moved pictures: each pixel of the result is looked up in the
 * source, as torch.nn.functional.grid_sample does. */
#include <math.h>
#include <string.h>

#include <koine/vision.h>

#include "base/error.h"
#include "data/transforms/picture.h"

#define RADIANS (3.14159265358979323846 / 180)

/* The inverse of the matrix that turns, scales, shears and moves. */
void kn_affine_matrix(double matrix[6], double angle, const double translate[2], double scale, const double shear[2])
{
    const double turn = angle * RADIANS, sx = shear[0] * RADIANS, sy = shear[1] * RADIANS;
    const double a = cos(turn - sy) / cos(sy), b = -(a * tan(sx) + sin(turn));
    const double c = sin(turn - sy) / cos(sy), d = cos(turn) - c * tan(sx);
    matrix[0] = d / scale;
    matrix[1] = -b / scale;
    matrix[3] = -c / scale;
    matrix[4] = a / scale;
    matrix[2] = -matrix[0] * translate[0] - matrix[1] * translate[1];
    matrix[5] = -matrix[3] * translate[0] - matrix[4] * translate[1];
}

static float element(const kn_picture *p, int64_t plane, int64_t y, int64_t x)
{
    const int64_t at = (plane * p->height + y) * p->width + x;
    return p->dtype == KN_U8 ? ((const uint8_t *)p->data)[at] : ((const float *)p->data)[at];
}

static bool is_inside(const kn_picture *p, int64_t y, int64_t x)
{
    return y >= 0 && y < p->height && x >= 0 && x < p->width;
}

static float nearest(const kn_picture *p, int64_t plane, float y, float x, float fill)
{
    const int64_t row = (int64_t)rintf(y), column = (int64_t)rintf(x);
    return is_inside(p, row, column) ? element(p, plane, row, column) : fill;
}

/* As torchvision blends: by the weight of what is inside, of which the sum is made already. */
static float bilinear(const kn_picture *p, int64_t plane, float y, float x, float fill)
{
    const float top = floorf(y), left = floorf(x);
    float sum = 0, inside = 0;
    for (int corner = 0; corner < 4; corner++) {
        const float row = top + (float)(corner / 2), column = left + (float)(corner % 2);
        if (!is_inside(p, (int64_t)row, (int64_t)column))
            continue;
        const float weight = (1 - fabsf(y - row)) * (1 - fabsf(x - column));
        sum += weight * element(p, plane, (int64_t)row, (int64_t)column);
        inside += weight;
    }
    return (sum - fill) * inside + fill;
}

kn_status kn_picture_affine(kn_picture *picture, const double matrix[6], int interpolation, double fill)
{
    kn_picture made;
    KN_TRY(kn_picture_new(&made, picture, picture->height, picture->width));
    const double middle_x = 0.5 * (double)(made.width - 1), middle_y = 0.5 * (double)(made.height - 1);
    for (int64_t plane = 0; plane < made.channels; plane++)
        for (int64_t y = 0; y < made.height; y++)
            for (int64_t x = 0; x < made.width; x++) {
                const double dx = (double)x - middle_x, dy = (double)y - middle_y;
                const float from_x = (float)(matrix[0] * dx + matrix[1] * dy + matrix[2] + middle_x);
                const float from_y = (float)(matrix[3] * dx + matrix[4] * dy + matrix[5] + middle_y);
                const float value = interpolation == KN_INTERPOLATE_NEAREST
                                        ? nearest(picture, plane, from_y, from_x, (float)fill)
                                        : bilinear(picture, plane, from_y, from_x, (float)fill);
                kn_picture_store(&made, (plane * made.height + y) * made.width + x, 1, &value);
            }
    kn_picture_replace(picture, &made);
    return KN_OK;
}

/* --- quarter turns ------------------------------------------------------------------------------------------------ */

static kn_status turn_quarters(kn_picture *picture, int quarters)
{
    kn_picture made;
    const size_t size = kn_picture_element(picture);
    const int64_t height = picture->height, width = picture->width;
    KN_TRY(kn_picture_new(&made, picture, height, width));
    for (int64_t plane = 0; plane < made.channels; plane++)
        for (int64_t y = 0; y < height; y++)
            for (int64_t x = 0; x < width; x++) {
                const int64_t row = quarters == 1 ? x : quarters == 2 ? height - 1 - y : height - 1 - x;
                const int64_t column = quarters == 1 ? width - 1 - y : quarters == 2 ? width - 1 - x : y;
                memcpy((char *)made.data + (size_t)((plane * height + y) * width + x) * size,
                       (const char *)picture->data + (size_t)((plane * height + row) * width + column) * size, size);
            }
    kn_picture_replace(picture, &made);
    return KN_OK;
}

kn_status kn_picture_rotate(kn_picture *picture, double angle, int interpolation, double fill)
{
    double matrix[6];
    angle = fmod(angle, 360);
    angle += angle < 0 ? 360 : 0;
    if (angle == 0)
        return KN_OK;
    if (angle == 180 || (picture->height == picture->width && (angle == 90 || angle == 270)))
        return turn_quarters(picture, (int)(angle / 90));
    kn_affine_matrix(matrix, -angle, (const double[]){0, 0}, 1, (const double[]){0, 0});
    return kn_picture_affine(picture, matrix, interpolation, fill);
}
