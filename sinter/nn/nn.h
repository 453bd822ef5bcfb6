#pragma once
// Everything of nn: modules, layers, initialisation, clipping of gradients.
#include "sinter/nn/activation.h"
#include "sinter/nn/adaptive.h"
#include "sinter/nn/attention.h"
#include "sinter/nn/containers.h"
#include "sinter/nn/conv.h"
#include "sinter/nn/init.h"
#include "sinter/nn/linear.h"
#include "sinter/nn/loss.h"
#include "sinter/nn/module.h"
#include "sinter/nn/normalization.h"
