/* koine/nn.h - layers: all of koine/nn/. */
#ifndef KOINE_NN_H
#define KOINE_NN_H

#include <koine/nn/activation.h>
#include <koine/nn/adaptive.h>
#include <koine/nn/attention.h>
#include <koine/nn/container.h>
#include <koine/nn/convolution.h>
#include <koine/nn/distance.h>
#include <koine/nn/dropout.h>
#include <koine/nn/fold.h>
#include <koine/nn/linear.h>
#include <koine/nn/loss.h>
#include <koine/nn/normalization.h>
#include <koine/nn/padding.h>
#include <koine/nn/pixelshuffle.h>
#include <koine/nn/pooling.h>
#include <koine/nn/rnn.h>
#include <koine/nn/shape.h>
#include <koine/nn/sparse.h>
#include <koine/nn/transformer.h>
#include <koine/nn/upsampling.h>

#endif
