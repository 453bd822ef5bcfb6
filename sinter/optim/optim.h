#pragma once
// Everything of optim: optimisers and schedules of the learning rate.
#include "sinter/optim/adam.h"
#include "sinter/optim/lr_scheduler.h"
#include "sinter/optim/optimizer.h"
#include "sinter/optim/sgd.h"
