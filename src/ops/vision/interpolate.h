/* ops/vision/interpolate.h - parameters of interpolation, for layers. */
#pragma once

#include <koine/status.h>
#include <koine/vision.h>

/* Are they allowed, whatever the input? */
kn_status kn_interpolate_check(const kn_interpolate_params *params);
