/* koine/nn.h - layers: all of koine/nn/. */
#ifndef KOINE_NN_H
#define KOINE_NN_H

#include <koine/nn/activation.h>
#include <koine/nn/container.h>
#include <koine/nn/convolution.h>
#include <koine/nn/distance.h>
#include <koine/nn/dropout.h>
#include <koine/nn/linear.h>
#include <koine/nn/loss.h>
#include <koine/nn/normalization.h>
#include <koine/nn/pooling.h>
#include <koine/nn/rnn.h>
#include <koine/nn/shape.h>

#endif
